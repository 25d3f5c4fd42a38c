//! A mistake on the command line is one line of error and one of hint, and nothing is written or lost.

mod support;

use std::fs;

use support::*;

/// `rem train` with `words` is refused for a reason with `part` in it, with `advice` in the hint; no run appears.
#[track_caller]
fn train_is_refused(words: &str, part: &str, advice: &str) {
    let place = place();
    let dir = place.path().join("run");
    let (error, hint) = refused(&mut debug_run(&dir, words));
    assert!(error.contains(part), "{error}");
    assert!(hint.contains(advice), "{hint}");
    assert!(!dir.exists(), "{words}: the run directory appeared");
}

#[test]
fn a_mistake_in_the_config() {
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
            "`tokenizer.vocabulary`",
            "rem config",
        ),
        (
            "--set world_model.heads=5",
            "`world_model.heads = 5`",
            "--set world_model.heads=",
        ),
        ("--set seed=-1", "`seed`", "rem config"),
        (
            "--set world_model.dropout=nan",
            "`world_model.dropout = NaN`",
            "--set world_model.dropout=",
        ),
        (
            "--set tokenizer.perceptual=maybe",
            "`tokenizer.perceptual`",
            "rem config",
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
        train_is_refused(words, part, advice);
    }
}

#[test]
fn an_unknown_preset() {
    let place = place();
    let dir = place.path().join("run");
    let args = ["train", "--preset", "qick", "--run-dir"];
    let (error, hint) = refused(rem().args(args).arg(&dir));
    assert!(
        error.contains("unknown preset `qick`") && hint.contains("quick"),
        "{error}\n{hint}"
    );
    assert!(!dir.exists());
    let (error, _) = refused(rem().args(["config", "qick"]));
    assert!(error.contains("unknown preset `qick`"), "{error}");
}

#[test]
fn an_unknown_game() {
    train_is_refused("--game cach", "unknown game `cach`", "`catch`");
    train_is_refused(
        "--set env.game=solitaire",
        "unknown game `solitaire`",
        "catch, paddle, crossing",
    );
}

#[test]
fn a_device_that_is_not_there() {
    train_is_refused("--device nonsense", "unknown device `nonsense`", "flex");
    train_is_refused("--device flex:1", "device `flex:1`", "--device flex");
    train_is_refused("--device cuda:x", "device `cuda:x`", "cuda:0");
    if !cfg!(feature = "cuda") {
        train_is_refused("--device cuda", "built without `cuda`", "--features cuda");
    }
}

#[test]
fn a_directory_without_a_run() {
    let place = place();
    let absent = place.path().join("absent");
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for dir in [&absent, &empty] {
        for command in [&mut resume(dir), rem().arg("eval").arg(dir)] {
            let (error, hint) = refused(command);
            assert!(error.contains("there is no run in it"), "{error}");
            assert!(hint.contains("rem train"), "{hint}");
        }
    }
    assert!(!absent.exists());
    assert_eq!(
        fs::read_dir(&empty).unwrap().count(),
        0,
        "something was written"
    );
}

#[test]
fn a_directory_that_holds_a_run_already_or_cannot_be_one() {
    let run = finished(SHORT);
    let before = all_files(run.dir());
    let (error, hint) = refused(&mut debug_run(run.dir(), SHORT));
    assert!(error.contains("there is a run in it already"), "{error}");
    assert!(hint.contains("--resume"), "{hint}");
    assert_same(&all_files(run.dir()), &before);

    let file = run.dir().join("config.toml");
    let (error, _) = refused(&mut debug_run(&file, SHORT));
    assert_eq!(error.matches("exists").count(), 1, "said twice: {error}");
    assert_same(&all_files(run.dir()), &before);
}

#[test]
fn more_threads_than_any_machine_has() {
    train_is_refused("--threads 1000000", "1000000", "--threads");
}

#[test]
fn config_prints_toml_that_a_run_reads_back() {
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
        "[tokenizer.optimise]\n",
        "learning_rate = ",
        "[world_model]\n",
        "[actor_critic]\n",
        "lstm = ",
    ] {
        assert!(quick.contains(part), "no `{part}` in\n{quick}");
    }
    // A run's config is the same text, and a resume parses it.
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
fn help_names_commands_and_flags() {
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
