//! `rem doctor` passes on a machine that can run the preset and names what is missing on one that cannot.

mod support;

use std::fs;
use std::process::{Command, Output};

use support::*;

fn doctor(words: &str) -> (tempfile::TempDir, Command) {
    let temp = temp_dir();
    let mut command = rem();
    command
        .arg("doctor")
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(temp.path().join("runs"));
    (temp, command)
}

/// The line of one check.
#[track_caller]
fn line(output: &Output, check: &str) -> String {
    let text = stdout(output);
    let line = text.lines().find(|line| line.starts_with(check));
    line.unwrap_or_else(|| panic!("no {check} in\n{text}"))
        .to_owned()
}

#[test]
fn default_preset_passes() {
    let (temp, mut command) = doctor("");
    let output = succeeds(&mut command);
    for check in ["machine", "device", "game", "LPIPS", "memory", "disk"] {
        line(&output, check);
    }
    assert!(stdout(&output).contains("ready for `rem train --preset quick`"));
    // Slow machines get an estimate, fast ones "less than 10 min".
    assert!(line(&output, "time").contains(" min"));
    // The metrics were recorded with AVX-512.
    let test = line(&output, "self-test");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        assert!(test.contains("match the recorded ones exactly"), "{test}");
    }
    assert!(test.contains("match the recorded ones"), "{test}");
    let left = fs::read_dir(temp.path()).unwrap().count();
    assert_eq!(left, 0, "the self-test left files behind");
}

#[test]
fn both_precisions_and_the_portable_kernels_pass_the_self_test() {
    for (precision, simd) in [
        ("mixed", "avx512"),
        ("f32", "portable"),
        ("mixed", "portable"),
    ] {
        let (_temp, mut command) = doctor(&format!("--set precision={precision} --threads 1"));
        let output = succeeds(command.env("REM_SIMD", simd));
        let test = line(&output, "self-test");
        assert!(
            test.contains("match the recorded ones"),
            "{precision} {simd}: {test}"
        );
        assert!(line(&output, "device").contains(precision));
    }
}

#[test]
fn training_time_of_a_long_run_is_estimated() {
    let (_temp, mut command) = doctor("--preset debug --set train.epochs=1000000000");
    let output = succeeds(&mut command);
    let time = line(&output, "time");
    for part in ["about", "days (tokenizer", "world model", "controller"] {
        assert!(time.contains(part), "{time}");
    }
}

#[test]
fn missing_resources_devices_and_weights_fail() {
    // More memory than any machine has.
    let (_temp, mut command) = doctor(
        "--set world_model.optimizer.batch_size=100000000 --set collect.steps_per_epoch=1000000000000",
    );
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "memory").contains("FAIL"));
    assert!(line(&output, "device").contains("ok"));
    assert!(stderr(&output).contains("1 of "), "{}", stderr(&output));
    assert!(!stdout(&output).contains("\ntime"), "{}", stdout(&output));

    let (_temp, mut command) = doctor("--device cuda:99");
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "device").contains("FAIL"));

    let (_temp, mut command) = doctor("--set tokenizer.perceptual=required");
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "LPIPS").contains("FAIL"));
}

#[cfg(not(feature = "atari"))]
#[test]
fn atari_game_fails_without_the_atari_feature() {
    let (_temp, mut command) = doctor("--game breakout");
    let output = output_of(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "game").contains("FAIL"));
    assert!(stdout(&output).contains("--features atari"));
}

#[cfg(feature = "atari")]
#[test]
fn roms_are_verified() {
    let (_temp, mut command) = doctor("--game breakout");
    let output = succeeds(&mut command);
    assert!(line(&output, "ROMs").contains("26 of 26 benchmark ROMs"));

    let roms = temp_dir();
    fs::write(roms.path().join("breakout.bin"), b"not a game").unwrap();
    let (_temp, mut command) = doctor("--game breakout");
    let output = output_of(command.arg("--rom-dir").arg(roms.path()));
    assert_eq!(output.status.code(), Some(1));
    assert!(line(&output, "game").contains("FAIL"));
    assert!(line(&output, "ROMs").contains("25 of 26 benchmark ROMs"));
}
