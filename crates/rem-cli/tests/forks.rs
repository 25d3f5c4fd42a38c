//! `rem train --resume RUN --fork NEW_RUN` continues a copy of a run with any settings, and leaves the run as it is.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::*;

const SETTINGS: &str = "--set collect.epochs=4 --set evaluate.every=0 --set train.epochs=4 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=1";

/// Forks the checkpoint of epoch 3 of a run of four epochs.
fn fork(origin: &Path, to: &Path, words: &str) -> Command {
    let mut command = resume(origin);
    command
        .args(["--from-epoch", "3", "--fork"])
        .arg(to)
        .args(words.split_whitespace());
    command
}

fn protocol(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(dir.join("protocol.json")).unwrap()).unwrap()
}

/// With the same settings, the fork becomes what the run became.
#[test]
fn a_fork_without_changes_ends_like_its_origin() {
    let origin = finished(SETTINGS);
    let before = all_files(origin.dir());
    let temp = temp_dir();
    let dir = temp.path().join("fork");
    succeeds(&mut fork(origin.dir(), &dir, ""));
    assert_same(&all_files(origin.dir()), &before);
    let trained = |dir: &Path| {
        let mut files = reproducible_files(dir);
        files.retain(|name, _| {
            name.starts_with("replay/")
                || name.starts_with("checkpoints/epoch-000004") && !name.ends_with("json")
        });
        files
    };
    assert_same(&trained(&dir), &trained(origin.dir()));
    let from = &protocol(&dir)["origin"];
    assert_eq!(from["run"], origin.dir().to_str().unwrap());
    assert_eq!(
        (&from["epoch"], &from["changes"]),
        (&3.into(), &serde_json::json!({}))
    );
    assert_eq!(protocol(&dir)["preset"], "debug");
    // Its logs are its own.
    assert!(!has_line(&dir, 3, "tokenizer") && has_line(&dir, 4, "tokenizer"));
    // Without its origin it is still a run.
    fs::remove_dir_all(origin.dir()).unwrap();
    succeeds(resume(&dir).args(["--set", "train.epochs=5"]));
    succeeds(rem().arg("episodes").arg(&dir));
}

#[test]
fn a_fork_takes_any_settings_that_keep_the_models() {
    let origin = finished(SETTINGS);
    let before = all_files(origin.dir());
    let temp = temp_dir();
    for (name, last_epoch, words) in [
        ("seed", 4, "--seed 7"),
        (
            "rate",
            6,
            "--set actor_critic.optimizer.learning_rate=1e-4 --set train.epochs=6",
        ),
        ("slow", 4, "--set actor_critic.slow_critic=target"),
        ("game", 4, "--game crossing"),
        ("envs", 4, "--set collect.envs=2"),
    ] {
        let dir = temp.path().join(name);
        succeeds(&mut fork(origin.dir(), &dir, words));
        assert!(checkpoint(&dir, last_epoch).exists(), "{name}");
        assert!(dir.join("scores.json").exists(), "{name}");
        let changes = protocol(&dir)["origin"]["changes"].clone();
        assert!(!changes.as_object().unwrap().is_empty(), "{name}");
        assert_same(&all_files(origin.dir()), &before);
    }
}

/// A fork that is killed and resumed writes the same bytes.
#[test]
fn a_fork_resumes_exactly() {
    let origin = finished(SETTINGS);
    let temp = temp_dir();
    let words = "--seed 7 --set train.epochs=6";
    let (whole, dir) = (temp.path().join("whole"), temp.path().join("killed"));
    succeeds(&mut fork(origin.dir(), &whole, words));
    let killed = kill_when(start(&mut fork(origin.dir(), &dir, words)), || {
        has_line(&dir, 5, "tokenizer")
    });
    assert!(killed, "the kill came too late");
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &reproducible_files(&whole));
}

#[test]
fn a_fork_that_cannot_be_is_refused_without_a_trace() {
    let origin = finished(SETTINGS);
    let before = all_files(origin.dir());
    let temp = temp_dir();
    let dir = temp.path().join("fork");
    for (words, expected, hint) in [
        (
            "--set world_model.layers=3",
            "its models do not fit these settings: ",
            "sizes",
        ),
        (
            "--set tokenizer.vocabulary=32",
            "its models do not fit these settings: ",
            "sizes",
        ),
        (
            "--set env.frame_size=64",
            "its frames have 32 pixels, not 64",
            "sizes",
        ),
        (
            "--set train.epochs=3",
            "the checkpoint is of epoch 3",
            "4 or more",
        ),
        ("--set seed=x", "`seed = x`: must be", "--seed"),
    ] {
        let (error, found) = fails(&mut fork(origin.dir(), &dir, words));
        assert!(error.contains(expected), "{error}");
        assert!(found.contains(hint), "{found}");
        assert!(!dir.exists(), "{words}");
        assert_same(&all_files(origin.dir()), &before);
    }
    // Into a run.
    let (error, _) = fails(&mut fork(origin.dir(), origin.dir(), "--seed 2"));
    assert!(error.contains("it already contains a run"), "{error}");
    assert_same(&all_files(origin.dir()), &before);
    let output = output_of(rem().args(["train", "--fork", "x"]));
    assert_eq!(output.status.code(), Some(2));
}
