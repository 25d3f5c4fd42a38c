//! Resize and the benchmark's wrappers match recordings of Pillow and the usual Python wrappers bit by bit, on 18 games.
//! `REM_ATARI_TRACES` selects another file of the same format. `rem-ale` tests the raw frames.
#![cfg(feature = "atari")]

use std::path::PathBuf;

use rem::env::atari::{Atari, AtariSettings, rom};
use rem::env::{Env, LifeLoss, Outcome};
use rem_ale::{Action, Ale, Game, Palette, Resize, Settings};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    game: String,
    minimal_actions: Vec<usize>,
    lcg_seed: u64,
    random_seed: u32,
    raw: Raw,
    train_env: Pipeline,
    test_env: Pipeline,
}

#[derive(Deserialize)]
struct Raw {
    frames: usize,
    columns: Vec<String>,
    points: Vec<Vec<i64>>,
}

#[derive(Deserialize)]
struct Pipeline {
    noops: u32,
    lcg_seed: u64,
    steps: usize,
    columns: Vec<String>,
    points: Vec<Vec<i64>>,
}

fn recorded() -> Vec<Trace> {
    let ours = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../rem-ale/tests/data/atari-traces.json"
    );
    let file = std::env::var_os("REM_ATARI_TRACES").map_or(ours.into(), PathBuf::from);
    let text = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let traces = serde_json::from_slice::<Recorded>(&text).unwrap().traces;
    assert!(!traces.is_empty());
    traces
}

struct Lcg(u64);

impl Lcg {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

#[test]
fn resized_frames_match_pillow() {
    for trace in recorded() {
        assert_eq!(
            trace.raw.columns,
            ["frame", "crc32_rgb", "crc32_64x64", "return", "lives"]
        );
        let seed = trace.random_seed;
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut ale = Ale::new(&rom(Game::named(&trace.game).unwrap()).unwrap(), settings).unwrap();
        ale.reset();
        let (height, width) = (ale.height(), ale.width());
        let color = |[r, g, b]: [u8; 3]| [i32::from(r), i32::from(g), i32::from(b), 0];
        let palette: Palette = ale.palette().map(color);
        let mut resize = Resize::new(height, width, 64);
        let mut small = vec![0; 64 * 64 * 3];
        let mut lcg = Lcg(trace.lcg_seed);
        let mut points = trace.raw.points.iter();
        for frame in 1..=trace.raw.frames {
            let action = trace.minimal_actions[lcg.draw(trace.minimal_actions.len())];
            ale.act(Action::ALL[action]);
            if frame % 50 == 0 {
                resize.apply(ale.screen(), &palette, &mut small);
                let (found, point) = (crc32fast::hash(&small), points.next().unwrap());
                assert_eq!(
                    [frame as i64, found.into()],
                    [point[0], point[2]],
                    "{}",
                    trace.game
                );
            }
            if ale.game_over() {
                ale.reset();
            }
        }
        assert!(points.next().is_none(), "{}", trace.game);
    }
}

fn assert_matches(trace: &Trace, pipeline: &Pipeline, mut env: impl Env) {
    assert_eq!(pipeline.columns, ["step", "crc32_obs", "return", "dones"]);
    let (mut lcg, mut total, mut episodes) = (Lcg(pipeline.lcg_seed), 0, 0);
    let mut points = pipeline.points.iter().peekable();
    let mut frame = env.reset().unwrap().into_image();
    for step in 0..=pipeline.steps {
        if step > 0 {
            let action = lcg.draw(trace.minimal_actions.len()).into();
            let taken = env.step(&action).unwrap();
            total += taken.reward as i64;
            frame = taken.observation.into_image();
            if taken.outcome != Outcome::Running {
                episodes += 1;
                frame = env.reset().unwrap().into_image();
            }
        }
        if points.peek().is_some_and(|point| point[0] == step as i64) {
            let found = [step as i64, crc32fast::hash(&frame).into(), total, episodes];
            assert_eq!(found, points.next().unwrap()[..], "{}", trace.game);
        }
    }
    assert!(points.next().is_none(), "{}", trace.game);
}

fn atari(trace: &Trace, pipeline: &Pipeline, max_frames: u32) -> Atari {
    let settings = AtariSettings {
        size: 64,
        frame_skip: 4,
        noops: (pipeline.noops, pipeline.noops),
        max_frames,
        sticky: 0.0,
    };
    let rom = rom(Game::named(&trace.game).unwrap()).unwrap();
    Atari::new(&rom, settings, trace.random_seed.into()).unwrap()
}

#[test]
fn training_environment_matches_the_recording() {
    for trace in recorded() {
        let pipeline = &trace.train_env;
        assert_matches(
            &trace,
            pipeline,
            LifeLoss::new(atari(&trace, pipeline, 20_000)),
        );
    }
}

#[test]
fn test_environment_matches_the_recording() {
    for trace in recorded() {
        let pipeline = &trace.test_env;
        assert_matches(&trace, pipeline, atari(&trace, pipeline, 108_000));
    }
}
