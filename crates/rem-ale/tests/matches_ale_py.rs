//! The emulator matches ale-py frame by frame, on 18 games recorded in `data/atari-traces.json`.
//! `REM_ATARI_TRACES` selects another file of the same format.

mod support;

use std::path::PathBuf;
use std::{env, fs};

use rem_ale::{Action, Game, Settings};
use serde::Deserialize;
use support::{Lcg, rom, screen_crc32, start};

#[derive(Deserialize)]
struct Recorded {
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    game: String,
    rom_md5: String,
    minimal_actions: Vec<usize>,
    lcg_seed: u64,
    random_seed: u32,
    raw: Raw,
}

#[derive(Deserialize)]
struct Raw {
    frames: usize,
    resets: usize,
    columns: Vec<String>,
    points: Vec<Vec<i64>>,
}

fn recorded() -> Vec<Trace> {
    let file = env::var_os("REM_ATARI_TRACES").map(PathBuf::from);
    let file = file.unwrap_or_else(|| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/atari-traces.json").into()
    });
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice::<Recorded>(&text).unwrap().traces
}

#[test]
fn every_trace_matches_exactly() {
    let traces = recorded();
    assert!(!traces.is_empty());
    for trace in &traces {
        assert_eq!(Game::named(&trace.game).unwrap().rom_md5, trace.rom_md5);
        assert_eq!(
            trace.raw.columns,
            ["frame", "crc32_rgb", "crc32_64x64", "return", "lives"]
        );
        let settings = Settings {
            seed: trace.random_seed,
            ..Settings::default()
        };
        let mut ale = start(&trace.game, settings);
        let minimal: Vec<usize> = ale
            .minimal_actions()
            .iter()
            .map(|&action| action as usize)
            .collect();
        assert_eq!(minimal, trace.minimal_actions, "{}", trace.game);

        let mut points = trace.raw.points.iter();
        let (mut lcg, mut total, mut resets) = (Lcg(trace.lcg_seed), 0, 0);
        for frame in 1..=trace.raw.frames {
            let action = trace.minimal_actions[lcg.draw(minimal.len())];
            total += i64::from(ale.act(Action::ALL[action]));
            if frame % 50 == 0 {
                let point = points.next().expect("a point every 50 frames");
                let found = [
                    frame as i64,
                    screen_crc32(&ale).into(),
                    point[2],
                    total,
                    ale.lives().into(),
                ];
                assert_eq!(found, point[..], "{}", trace.game);
            }
            if ale.game_over() {
                ale.reset();
                resets += 1;
            }
        }
        assert!(points.next().is_none());
        assert_eq!(resets, trace.raw.resets, "{}", trace.game);
    }
    println!("{} traces matched", traces.len());
}

#[test]
fn every_benchmark_game_has_a_rom() {
    for game in Game::benchmark() {
        assert_eq!(rom(game.name).game(), game);
    }
}
