//! `rem doctor`: what it says of a machine that is ready for a run, and of one that is not.

mod support;

use std::fs;
use std::process::{Command, Output};

use support::*;

fn doctor(words: &str) -> (tempfile::TempDir, Command) {
    let place = place();
    let mut command = rem();
    command
        .arg("doctor")
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(place.path().join("runs"));
    (place, command)
}

/// What it says of one thing.
#[track_caller]
fn line(output: &Output, what: &str) -> String {
    let text = stdout(output);
    let line = text.lines().find(|line| line.starts_with(what));
    line.unwrap_or_else(|| panic!("no {what} in\n{text}"))
        .to_owned()
}

#[test]
fn the_default_run_can_be_started() {
    let (place, mut command) = doctor("");
    let output = succeeds(&mut command);
    for what in ["machine", "device", "game", "LPIPS", "memory", "disk"] {
        line(&output, what);
    }
    assert!(stdout(&output).contains("ready for `rem train --preset quick`"));
    // Where vectors are as wide as on the machine that recorded it, every digit is the same.
    let test = line(&output, "self-test");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        assert!(test.contains("to the last digit as recorded"), "{test}");
    }
    assert!(test.contains("as recorded"), "{test}");
    let left = fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 0, "the self-test left something behind");
}

#[test]
fn both_precisions_and_the_portable_kernels_pass_the_self_test() {
    for (precision, simd) in [
        ("mixed", "avx512"),
        ("f32", "portable"),
        ("mixed", "portable"),
    ] {
        let (_place, mut command) = doctor(&format!("--set precision={precision} --threads 1"));
        let output = succeeds(command.env("REM_SIMD", simd));
        let test = line(&output, "self-test");
        assert!(test.contains("as recorded"), "{precision} {simd}: {test}");
        assert!(line(&output, "device").contains(precision));
    }
}

#[test]
fn what_cannot_be_started_is_wrong() {
    // More than any machine has, of memory and of disk.
    let (_place, mut command) = doctor(
        "--set world_model.optimise.batch=100000000 --set collect.steps_per_epoch=1000000000000",
    );
    let output = outcome(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "memory").contains("WRONG"));
    assert!(line(&output, "disk").contains("WRONG"));
    assert!(line(&output, "device").contains("ok"));
    assert!(stderr(&output).contains("2 of "), "{}", stderr(&output));

    let (_place, mut command) = doctor("--device cuda:99");
    let output = outcome(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "device").contains("WRONG"));

    let (_place, mut command) = doctor("--set tokenizer.perceptual=required");
    let output = outcome(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "LPIPS").contains("WRONG"));
}

#[cfg(not(feature = "atari"))]
#[test]
fn an_atari_game_without_atari_is_wrong() {
    let (_place, mut command) = doctor("--game breakout");
    let output = outcome(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "game").contains("WRONG"));
    assert!(stdout(&output).contains("--features atari"));
}

#[cfg(feature = "atari")]
#[test]
fn roms_are_verified() {
    let (_place, mut command) = doctor("--game breakout");
    let output = succeeds(&mut command);
    assert!(line(&output, "ROMs").contains("26 of the benchmark's 26"));

    let roms = place();
    fs::write(roms.path().join("breakout.bin"), b"not a game").unwrap();
    let (_place, mut command) = doctor("--game breakout");
    let output = outcome(command.arg("--rom-dir").arg(roms.path()));
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "game").contains("WRONG"));
    assert!(line(&output, "ROMs").contains("25 of the benchmark's 26"));
}
