//! Bad input to `rem sweep` prints one error and one hint, and leaves everything as it is.

mod support;

use std::fs;

use support::study::*;
use support::*;

/// Asserts that `rem sweep new` with `words` fails with `part` in the error and `advice` in the hint, and makes nothing.
#[track_caller]
fn assert_new_rejects(words: &str, part: &str, advice: &str) {
    let temp = temp_dir();
    let study = temp.path().join("study");
    let (error, hint) = fails(&mut sweep("new", &study, words));
    assert!(error.contains(part), "{error}");
    assert!(hint.contains(advice), "{hint}");
    assert!(!study.exists(), "{words}: made a directory");
}

#[test]
fn typos_get_the_nearest_key_game_or_form() {
    for (words, part, advice) in [
        (
            "--grid tokenizer.vocabulry=8,16",
            "unknown config key `tokenizer.vocabulry`",
            "did you mean `tokenizer.vocabulary`?",
        ),
        (
            "--grid tokeniser.vocabulary=8,16",
            "unknown config key `tokeniser.vocabulary`",
            "`tokenizer",
        ),
        (
            "--grid tokenizer.vocabulary=8,many",
            "`tokenizer.vocabulary = many`: must be a whole number, 2 to 65536",
            "--set tokenizer.vocabulary=…",
        ),
        (
            "--grid world_model.heads=4,5",
            "`world_model.heads = 5`",
            "world_model.heads",
        ),
        (
            "--grid preset=debug,debgu",
            "unknown preset `debgu`",
            "debug",
        ),
        ("--grid precision", "key=a,b,c", "--grid"),
        ("--grid seed=1,2", "sets `seed` itself", "--seeds"),
        ("--set env.game=catch", "sets `env.game` itself", "--games"),
        ("--set world_model.layer=3", "`world_model.layer`", "layers"),
        ("--games cach", "unknown game `cach`", "`catch`"),
        ("--games catch,catch", "twice", "--seeds"),
        ("--seeds 5..1", "--seeds 5..1", "`1..5`"),
        ("--preset qick", "unknown preset `qick`", "quick"),
    ] {
        assert_new_rejects(words, part, advice);
    }
}

#[test]
fn a_study_does_not_change() {
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    let before = all_files(&study);
    let (error, hint) = fails(&mut sweep("new", &study, "--preset debug"));
    assert!(error.contains("a study does not change"), "{error}");
    assert!(hint.contains("rem sweep run"), "{hint}");
    assert_same(&all_files(&study), &before);

    let file = study.join("study.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("rem sweep new "), "{text}");
    assert!(file.metadata().unwrap().permissions().readonly());
    fs::remove_file(&file).unwrap();
    fs::write(&file, text.replace("epochs = 30", "epochs = 31")).unwrap();
    for command in ["run", "status", "collect", "cancel"] {
        let (error, hint) = fails(&mut sweep(command, &study, ""));
        assert!(
            error.contains("was changed after it was written"),
            "{error}"
        );
        assert!(hint.contains("restore it"), "{hint}");
    }
    assert_eq!(fs::read_dir(&study).unwrap().count(), 1);
}

#[test]
fn directories_without_a_study_are_rejected() {
    let temp = temp_dir();
    for command in ["run", "status", "collect", "cancel"] {
        let (error, hint) = fails(&mut sweep(command, temp.path(), ""));
        assert!(error.contains("there is no study.toml"), "{error}");
        assert!(hint.contains("rem sweep new"), "{hint}");
    }
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn options_of_the_other_place_are_rejected() {
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    let before = all_files(&study);
    for (words, part) in [
        ("--partition gpu", "`--partition` is for `--on slurm`"),
        ("--time 1:00:00 --jobs 2", "`--time` is for `--on slurm`"),
        ("--on slurm --jobs 2", "`--jobs` is for `--on local`"),
    ] {
        let (error, _) = fails(&mut sweep("run", &study, words));
        assert!(error.contains(part), "{error}");
    }
    let (error, _) = fails(&mut sweep("collect", &study, ""));
    assert!(error.contains("no run is finished yet"), "{error}");
    assert_same(&all_files(&study), &before);
}

/// A run directory that holds another run is not continued, and not overwritten.
#[test]
fn foreign_runs_in_a_study_are_left_alone() {
    let temp = temp_dir();
    let brief = STUDY
        .replace("catch,paddle,crossing", "catch")
        .replace("train.epochs=30", "train.epochs=2")
        .replace("collect.epochs=20", "collect.epochs=2");
    let study = new_study(temp.path(), "study", &brief);
    let foreign = study.join("catch-seed1");
    let child = start(&mut debug_run(&foreign, "--set train.epochs=100000"));
    assert!(kill_when(child, || checkpoint(&foreign, 1).exists()));
    let before = all_files(&foreign);
    let output = output_of(&mut sweep("run", &study, ""));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = status(&mut sweep("status", &study, "--json"));
    assert_eq!(states(&found), ["failed", "done"]);
    let reason = found["runs"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("another config than the study's"),
        "{found}"
    );
    assert_same(&all_files(&foreign), &before);
}

#[test]
fn a_dry_run_lists_the_runs_and_writes_nothing() {
    let temp = temp_dir();
    let study = temp.path().join("study");
    let words = "--preset atari100k --games all --seeds 1..5 --dry-run";
    let output = succeeds(&mut sweep("new", &study, words));
    assert_eq!(stdout(&output).lines().count(), 130);
    assert!(!study.exists());
}
