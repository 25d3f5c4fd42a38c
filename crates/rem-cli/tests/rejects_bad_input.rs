//! Bad command-line input prints one error and one hint, and leaves all files unchanged.

mod support;

use std::fs;

use support::*;

/// Asserts that `rem train` with `words` fails with `part` in the error and `advice` in the hint, and creates no run.
#[track_caller]
fn assert_train_rejects(words: &str, part: &str, advice: &str) {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let (error, hint) = fails(&mut debug_run(&dir, words));
    assert!(error.contains(part), "{error}");
    assert!(hint.contains(advice), "{hint}");
    assert!(!dir.exists(), "{words}: created the run directory");
}

#[test]
fn invalid_config_values_are_rejected() {
    let cases = [
        (
            "--set tokenizer.vocabulry=3",
            "unknown config key `tokenizer.vocabulry`",
            "`tokenizer.vocabulary`",
        ),
        (
            "--set tokeniser.vocabulary=3",
            "unknown config key `tokeniser.vocabulary`",
            "`tokenizer",
        ),
        (
            "--set tokenizer.vocabulary=many",
            "`tokenizer.vocabulary = many`: must be a whole number, 2 to 65536",
            "--set tokenizer.vocabulary=…",
        ),
        (
            "--set world_model.heads=5",
            "`world_model.heads = 5`",
            "--set world_model.heads=",
        ),
        (
            "--set seed=-1",
            "`seed = -1`: must be a whole number",
            "--seed …",
        ),
        (
            "--set world_model.dropout=nan",
            "`world_model.dropout = NaN`",
            "--set world_model.dropout=",
        ),
        (
            "--set tokenizer.perceptual=maybe",
            "`tokenizer.perceptual = maybe`: must be auto, off or required",
            "--set tokenizer.perceptual=…",
        ),
        (
            "--set tokenizer.perceptual=required",
            "lpips.safetensors",
            "rem import lpips",
        ),
        (
            "--set tokenizer=3",
            "`tokenizer` is a section",
            "--set tokenizer.",
        ),
        ("--set seed", "not of the form key=value", "--set"),
    ];
    for (words, part, advice) in cases {
        assert_train_rejects(words, part, advice);
    }
}

#[test]
fn unknown_presets_are_rejected() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let args = ["train", "--preset", "qick", "--run-dir"];
    let (error, hint) = fails(rem().args(args).arg(&dir));
    assert!(
        error.contains("unknown preset `qick`") && hint.contains("quick"),
        "{error}\n{hint}"
    );
    assert!(!dir.exists());
    let (error, _) = fails(rem().args(["config", "qick"]));
    assert!(error.contains("unknown preset `qick`"), "{error}");
}

#[test]
fn unknown_games_are_rejected() {
    assert_train_rejects("--game cach", "unknown game `cach`", "`catch`");
    assert_train_rejects(
        "--set env.game=solitaire",
        "unknown game `solitaire`",
        "catch, paddle, crossing",
    );
}

#[test]
fn unavailable_devices_are_rejected() {
    assert_train_rejects("--device nonsense", "unknown device `nonsense`", "flex");
    assert_train_rejects("--device flex:1", "device `flex:1`", "--device flex");
    assert_train_rejects("--device cuda:x", "device `cuda:x`", "cuda:0");
    if !cfg!(feature = "cuda") {
        assert_train_rejects("--device cuda", "built without `cuda`", "--features cuda");
    }
}

#[test]
fn directories_without_a_run_are_rejected() {
    let temp = temp_dir();
    let absent = temp.path().join("absent");
    let empty = temp.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for dir in [&absent, &empty] {
        for command in [&mut resume(dir), rem().arg("eval").arg(dir)] {
            let (error, hint) = fails(command);
            assert!(error.contains("does not contain a run"), "{error}");
            assert!(hint.contains("rem train"), "{hint}");
        }
    }
    assert!(!absent.exists());
    assert_eq!(
        fs::read_dir(&empty).unwrap().count(),
        0,
        "a file was written"
    );
}

#[test]
fn occupied_run_directories_are_rejected() {
    let run = finished(SHORT);
    let before = all_files(run.dir());
    let (error, hint) = fails(&mut debug_run(run.dir(), SHORT));
    assert!(error.contains("already contains a run"), "{error}");
    assert!(hint.contains("--resume"), "{hint}");
    assert_same(&all_files(run.dir()), &before);

    let file = run.dir().join("config.toml");
    let (error, _) = fails(&mut debug_run(&file, SHORT));
    assert_eq!(error.matches("exists").count(), 1, "said twice: {error}");
    assert_same(&all_files(run.dir()), &before);
}

#[test]
fn too_many_threads_are_rejected() {
    let temp = temp_dir();
    let output = output_of(&mut debug_run(
        &temp.path().join("run"),
        "--threads 1000000",
    ));
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("a whole number from 0 to 1024"), "{error}");
}

#[test]
fn config_output_round_trips_through_a_run() {
    let quick = stdout(&succeeds(rem().args(["config", "quick"])));
    assert_eq!(
        quick,
        stdout(&succeeds(rem().arg("config"))),
        "quick is the default"
    );
    for part in [
        "seed = ",
        "[env]\n",
        "game = \"catch\"",
        "[collect]\n",
        "steps_per_epoch = ",
        "[train]\n",
        "[evaluate]\n",
        "[tokenizer]\n",
        "vocabulary = ",
        "[tokenizer.optimizer]\n",
        "learning_rate = ",
        "[world_model]\n",
        "[actor_critic]\n",
        "lstm_dim = ",
    ] {
        assert!(quick.contains(part), "no `{part}` in\n{quick}");
    }
    // A run stores the same text, and resume parses it.
    let set = "--set threads=2 --set train.epochs=1 --set tokenizer.vocabulary=17";
    let printed = stdout(&succeeds(
        rem().args(["config", "debug"]).args(set.split(' ')),
    ));
    assert!(printed.contains("vocabulary = 17"), "{printed}");
    let run = finished(set);
    assert_eq!(
        printed,
        fs::read_to_string(run.dir().join("config.toml")).unwrap()
    );
    succeeds(&mut resume(run.dir()));
}

#[test]
fn help_lists_commands_and_flags() {
    let help = stdout(&succeeds(rem().arg("--help")));
    for word in ["train", "eval", "import", "config"] {
        assert!(
            help.contains(&format!("\n  {word} ")),
            "no {word} in\n{help}"
        );
    }
    let help = stdout(&succeeds(rem().args(["train", "--help"])));
    for flag in [
        "--preset",
        "--game",
        "--set",
        "--seed",
        "--device",
        "--threads",
        "--run-dir",
        "--resume",
        "--from-epoch",
    ] {
        assert!(help.contains(flag), "no {flag} in\n{help}");
    }
}
