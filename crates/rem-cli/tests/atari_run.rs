//! Runs on an Atari game: trained, killed, resumed with the emulator's state, evaluated; and what is wrong with ROMs.
#![cfg(feature = "atari")]

mod support;

use std::fs;

use support::*;

/// Small networks; the benchmark's protocol.
const SETTINGS: &str = "--game breakout --set env.max_steps.train=20000 --set env.max_steps.test=400 --set train.epochs=5 \
    --set collect.epochs=4 --set collect.steps_per_epoch=60 --sticky 0.25";

#[test]
fn killed_and_resumed_with_the_emulators_state() {
    let place = place();
    let whole = place.path().join("whole");
    succeeds(&mut debug_run(&whole, SETTINGS));
    let dir = place.path().join("killed");
    killed_in(&dir, SETTINGS, &[(2, "world_model"), (4, "collect")]);
    assert_same(&lasting_files(&dir), &lasting_files(&whole));

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
fn a_game_is_found_however_it_is_spelled() {
    let shown = succeeds(rem().args(["config", "atari100k", "--set", "env.game=MsPacman"]));
    assert!(stdout(&shown).contains("game = \"ms_pacman\""));
}

#[test]
fn freeway_is_collected_with_a_low_temperature() {
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
fn wrong_roms_and_unknown_games_are_refused() {
    let place = place();
    let dir = place.path().join("run");
    let (error, hint) = refused(&mut debug_run(&dir, "--game brakeout"));
    assert!(error.contains("unknown game `brakeout`"), "{error}");
    assert!(hint.contains("breakout"), "{hint}");

    let roms = place.path().join("roms");
    fs::create_dir(&roms).unwrap();
    fs::write(roms.join("breakout.bin"), b"not a game").unwrap();
    let mut wrong = debug_run(&dir, "--game breakout");
    wrong.arg("--rom-dir").arg(&roms);
    let (error, _) = refused(&mut wrong);
    assert!(error.contains("is not the ROM of `breakout`"), "{error}");
    assert!(!dir.join("config.toml").exists(), "nothing was begun");
}
