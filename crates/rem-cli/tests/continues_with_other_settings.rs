//! `rem train --resume RUN --set …` continues a run with settings that do not affect its past, exactly.

mod support;

use std::fs;
use std::path::Path;

use support::*;

const EPOCHS: &str = "--set train.epochs=";
/// Without the number of epochs. Collection goes on in epochs 3 and 4.
const SETTINGS: &str = "--set collect.epochs=4 --set evaluate.every=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=1";

/// A run of three epochs.
fn short(dir: &Path) {
    succeeds(&mut debug_run(dir, &format!("{SETTINGS} {EPOCHS}3")));
}

fn extend(dir: &Path) -> std::process::Command {
    let mut command = resume(dir);
    command.args(["--set", "train.epochs=6"]);
    command
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Weights, moments and experience of an extended run are those of a run that was as long from the start.
#[test]
fn an_extended_run_is_a_longer_run() {
    let temp = temp_dir();
    let (whole, dir) = (temp.path().join("whole"), temp.path().join("run"));
    succeeds(&mut debug_run(&whole, &format!("{SETTINGS} {EPOCHS}6")));
    short(&dir);
    let before = json(&dir.join("protocol.json"));
    let text = stderr(&succeeds(&mut extend(&dir)));
    assert!(text.contains("6 epochs in "), "{text}");

    let trained = |dir: &Path| {
        let mut files = reproducible_files(dir);
        files.retain(|name, _| {
            name.starts_with("replay/")
                || name.starts_with("checkpoints/") && !name.ends_with("json")
        });
        files
    };
    assert_same(&trained(&dir), &trained(&whole));
    // The config is the same, so that checkpoints name it.
    let read = |dir: &Path, name| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read(&dir, "config.toml"), read(&whole, "config.toml"));
    // What was the final evaluation is one of several.
    let scores = json(&dir.join("scores.json"));
    let epochs: Vec<_> = scores["evaluations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["epoch"])
        .collect();
    assert_eq!(epochs, [2, 3, 4, 6]);
    assert_eq!(scores["final"], json(&whole.join("scores.json"))["final"]);

    let protocol = json(&dir.join("protocol.json"));
    let segments = protocol["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0]["after_epoch"], 3);
    assert_eq!(
        segments[0]["changes"],
        serde_json::json!({"train.epochs": {"from": 3, "to": 6}})
    );
    assert_eq!(before["environment_steps"], 120);
    assert_eq!(protocol["environment_steps"], 160);
    assert!(before.get("segments").is_none());
}

/// Killed at any moment after the change, and before the first checkpoint with it.
#[test]
fn an_extended_run_resumes_exactly() {
    let temp = temp_dir();
    let (whole, dir) = (temp.path().join("whole"), temp.path().join("run"));
    short(&whole);
    copy_dir(&whole, &dir);
    succeeds(&mut extend(&whole));
    let expected = reproducible_files(&whole);
    let mut killed = 0;
    for (i, (epoch, phase)) in [(4, "collect"), (5, "tokenizer"), (6, "world_model")]
        .into_iter()
        .enumerate()
    {
        let mut command = if i == 0 { extend(&dir) } else { resume(&dir) };
        let was_running = kill_when(start(&mut command), || has_line(&dir, epoch, phase));
        killed += usize::from(was_running);
        // Readers find the agent, also with the checkpoint from before the change.
        succeeds(rem().args(["eval", "--episodes", "1"]).arg(&dir));
    }
    assert!(killed > 0, "every kill came too late");
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &expected);
}

/// After a crash between the writes of protocol and config, the run is still the one before.
#[test]
fn a_change_that_was_interrupted_is_dropped() {
    let temp = temp_dir();
    let (changed, dir) = (temp.path().join("changed"), temp.path().join("run"));
    short(&dir);
    let before = reproducible_files(&dir);
    copy_dir(&dir, &changed);
    succeeds(&mut extend(&changed));
    fs::copy(changed.join("protocol.json"), dir.join("protocol.json")).unwrap();
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &before);
    // Or made again.
    fs::copy(changed.join("protocol.json"), dir.join("protocol.json")).unwrap();
    succeeds(&mut extend(&dir));
    assert_same(&reproducible_files(&dir), &reproducible_files(&changed));
}

#[test]
fn threads_and_evaluations_can_change_too() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    short(&dir);
    let mut command = resume(&dir);
    command.args(["--threads", "1", "--set", "evaluate.final_episodes=3"]);
    succeeds(command.args(["--set", "train.epochs=4"]));
    let protocol = json(&dir.join("protocol.json"));
    assert_eq!(
        (&protocol["threads"], &protocol["final_episodes"]),
        (&1.into(), &3.into())
    );
    let changes = protocol["segments"][0]["changes"].as_object().unwrap();
    let keys: Vec<&String> = changes.keys().collect();
    assert_eq!(keys, ["evaluate.final_episodes", "threads", "train.epochs"]);
    let eval = stdout(&succeeds(rem().args(["eval", "--json"]).arg(&dir)));
    let returns = json(&dir.join("scores.json"))["final"]["returns"].clone();
    let eval: serde_json::Value = serde_json::from_str(&eval).unwrap();
    assert_eq!(eval["returns"], returns);
    // A second change, with the old value as another change.
    succeeds(resume(&dir).args(["--threads", "2", "--set", "train.epochs=5"]));
    let protocol = json(&dir.join("protocol.json"));
    assert_eq!(protocol["segments"].as_array().unwrap().len(), 2);
    assert_eq!(protocol["segments"][1]["after_epoch"], 4);
}

#[test]
fn other_settings_are_refused_and_change_nothing() {
    let run = finished(&format!("{SETTINGS} {EPOCHS}3"));
    let before = all_files(run.dir());
    let cases: [(&[&str], &str, &str); 6] = [
        (
            &["--seed", "2"],
            "`seed` cannot change in a run: it determines all random",
            "--fork",
        ),
        (
            &["--game", "paddle"],
            "`env.game` cannot change in a run: it determines the experience",
            "--fork",
        ),
        (
            &["--set", "world_model.layers=3"],
            "`world_model.layers` cannot change",
            "--fork",
        ),
        (
            &["--set", "train.epochs=3", "--set", "evaluate.every=1"],
            "but 3 epochs are complete",
            "4 or more",
        ),
        (
            &["--set", "train.epochs=2"],
            "`train.epochs = 2`, but 3 epochs are complete",
            "4 or more",
        ),
        (
            &["--set", "train.epoch=9"],
            "unknown config key `train.epoch`",
            "train.epochs",
        ),
    ];
    for (args, expected, hint) in cases {
        let (error, found) = fails(resume(run.dir()).args(args));
        assert!(error.contains(expected), "{error}");
        assert!(found.contains(hint), "{found}");
        assert_same(&all_files(run.dir()), &before);
    }
    // A learning rate that falls until the last epoch.
    let decay = "--set world_model.optimizer.final_lr_fraction=0.1";
    let run = finished(&format!("{SETTINGS} {EPOCHS}3 {decay}"));
    let (error, hint) = fails(&mut extend(run.dir()));
    assert!(
        error.contains("the learning rate of `world_model` falls"),
        "{error}"
    );
    assert!(hint.contains("--fork"), "{hint}");
}
