//! Atari runs: resume after a kill is exact, games are found by any spelling, wrong ROMs are rejected.
#![cfg(feature = "atari")]

mod support;

use std::fs;

use support::*;

/// Small networks with the benchmark's protocol.
const SETTINGS: &str = "--game breakout --set env.max_steps.train=20000 --set env.max_steps.test=400 --set train.epochs=5 \
    --set collect.epochs=4 --set collect.steps_per_epoch=60 --sticky 0.25";

#[test]
fn resume_restores_the_emulator_exactly() {
    let temp = temp_dir();
    let whole = temp.path().join("whole");
    succeeds(&mut debug_run(&whole, SETTINGS));
    let dir = temp.path().join("killed");
    kill_and_resume(&dir, SETTINGS, &[(2, "world_model"), (4, "collect")]);
    assert_same(&reproducible_files(&dir), &reproducible_files(&whole));

    let protocol = fs::read_to_string(dir.join("protocol.json")).unwrap();
    for line in [
        "\"frame_skip\": 4",
        "\"sticky_actions\": 0.25",
        "\"max_noops_train\": 30",
        "\"max_noops_test\": 1",
        "\"ale_version\": \"0.12.1\"",
    ] {
        assert!(protocol.contains(line), "no {line} in {protocol}");
    }
    let played = succeeds(rem().args(["eval", "--episodes", "3"]).arg(&dir));
    assert!(
        stdout(&played).contains("mean return"),
        "{}",
        stdout(&played)
    );
}

#[test]
fn game_names_accept_any_spelling() {
    let shown = succeeds(rem().args(["config", "atari100k", "--set", "env.game=MsPacman"]));
    assert!(stdout(&shown).contains("game = \"ms_pacman\""));
}

#[test]
fn freeway_collects_with_low_temperature() {
    let temperature = |words: &str| {
        let shown = succeeds(rem().arg("config").args(words.split_whitespace()));
        let text = stdout(&shown);
        let collect = text.split("[collect]").nth(1).unwrap().to_owned();
        let line = collect
            .lines()
            .find(|l| l.starts_with("temperature"))
            .unwrap();
        line.to_owned()
    };
    assert_eq!(
        temperature("atari100k --set env.game=freeway"),
        "temperature = 0.01"
    );
    assert_eq!(
        temperature("atari100k --set env.game=pong"),
        "temperature = 1.0"
    );
    let own = "atari100k --set env.game=freeway --set collect.temperature=0.3";
    assert_eq!(temperature(own), "temperature = 0.3");
}

#[test]
fn wrong_roms_and_unknown_games_are_rejected() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let (error, hint) = fails(&mut debug_run(&dir, "--game brakeout"));
    assert!(error.contains("unknown game `brakeout`"), "{error}");
    assert!(hint.contains("breakout"), "{hint}");

    let roms = temp.path().join("roms");
    fs::create_dir(&roms).unwrap();
    fs::write(roms.join("breakout.bin"), b"not a game").unwrap();
    let mut wrong = debug_run(&dir, "--game breakout");
    wrong.arg("--rom-dir").arg(&roms);
    let (error, _) = fails(&mut wrong);
    assert!(error.contains("is not the ROM of `breakout`"), "{error}");
    assert!(!dir.join("config.toml").exists(), "a run was created");
}
