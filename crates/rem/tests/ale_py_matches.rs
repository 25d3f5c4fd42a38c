//! `gym:ALE/Breakout-v5` with our wrappers gives the frames, rewards and ends of the native pipeline, bit by bit.
//!
//! Needs the feature `atari` and the Python of `scripts/setup-gymnasium`, whose ale-py has the version of the emulator.
#![cfg(feature = "atari")]

use std::path::PathBuf;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::config::{Config, EnvMode};
use rem::env::{Env, EnvFactory, Outcome, python};

const STEPS: usize = 2000;

fn make(game: &str, mode: EnvMode) -> Box<dyn Env> {
    let set = [
        &format!("env.game={game}"),
        // No-ops at the start are not a wrapper.
        "env.atari.max_noops.train=0",
        "env.atari.max_noops.test=0",
        "env.max_steps.train=100000",
        "env.max_steps.test=100000",
        "env.wrappers.frame_skip=4",
        "env.wrappers.max_of_two=true",
        "env.python.kwargs={ frameskip = 1, repeat_action_probability = 0.0 }",
    ];
    let config = Config::load("atari100k", &set.map(String::from)).unwrap();
    EnvFactory::named(&config.env)
        .unwrap()
        .make(mode, 7)
        .unwrap()
}

#[test]
fn breakout_of_ale_py_matches_the_native_pipeline() {
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../third-party/gymnasium/bin/python"
    );
    let python = std::env::var_os("REM_TEST_PYTHON").map_or(python.into(), PathBuf::from);
    if !python.exists() {
        let required = std::env::var_os("REM_REQUIRE_GYMNASIUM").is_some();
        assert!(
            !required,
            "{} does not exist: run scripts/setup-gymnasium",
            python.display()
        );
        eprintln!("skipped: no Python with ale-py");
        return;
    }
    python::set_interpreter(python);
    // One life an episode, and one game an episode.
    for mode in [EnvMode::Train, EnvMode::Test] {
        let mut native = make("breakout", mode);
        let mut bridged = make("gym:ALE/Breakout-v5", mode);
        assert_eq!(native.spaces(), bridged.spaces());
        let actions = native.spaces().action.count();
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        assert!(
            native.reset().unwrap() == bridged.reset().unwrap(),
            "first frame"
        );
        let (mut total, mut episodes) = (0.0, 0);
        for step in 0..STEPS {
            let action = rng.random_range(0..actions).into();
            let (a, b) = (
                native.step(&action).unwrap(),
                bridged.step(&action).unwrap(),
            );
            assert_eq!((a.reward, a.outcome), (b.reward, b.outcome), "step {step}");
            assert!(
                a.observation == b.observation,
                "{mode:?}: frame after step {step}"
            );
            assert_eq!(native.lives(), bridged.lives(), "step {step}");
            total += a.reward;
            if a.outcome != Outcome::Running {
                episodes += 1;
                assert!(
                    native.reset().unwrap() == bridged.reset().unwrap(),
                    "reset {episodes}"
                );
            }
        }
        assert!(
            total > 0.0 && episodes > 2,
            "{total} points in {episodes} episodes show nothing"
        );
    }
}
