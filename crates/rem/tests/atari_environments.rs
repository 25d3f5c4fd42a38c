//! Atari environments are independent of each other and restore exactly from snapshots.
#![cfg(feature = "atari")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::config::EnvConfig;
use rem::config::{Config, EnvMode};
use rem::env::{Env, EnvFactory, Outcome, Step};

fn config(game: &str) -> Config {
    let set = [
        format!("env.game={game}"),
        "env.atari.sticky_actions=0.25".into(),
    ];
    Config::load("atari100k", &set).unwrap()
}

fn make(settings: &EnvConfig, mode: EnvMode, seed: u64) -> Box<dyn Env> {
    EnvFactory::named(settings)
        .unwrap()
        .make(mode, seed)
        .unwrap()
}

/// The snapshot of an environment that has one.
fn saved(env: &mut dyn Env) -> Vec<u8> {
    env.snapshot().unwrap().unwrap()
}

/// Plays random actions, with a reset after each episode.
fn play(env: &mut dyn Env, rng: &mut ChaCha8Rng, steps: usize) -> Vec<Step> {
    let mut seen = Vec::new();
    for _ in 0..steps {
        let actions = env.spaces().action.count();
        let mut step = env.step(&rng.random_range(0..actions).into()).unwrap();
        if step.outcome != Outcome::Running {
            step.observation = env.reset().unwrap();
        }
        seen.push(step);
    }
    seen
}

fn trajectory(game: &str, number: u64) -> Vec<Step> {
    let mut env = make(&config(game).env, EnvMode::Train, number);
    env.reset().unwrap();
    play(&mut *env, &mut ChaCha8Rng::seed_from_u64(number), 300)
}

#[test]
fn parallel_environments_match_sequential_ones() {
    for game in ["breakout", "pong"] {
        let sequential: Vec<_> = (0..8).map(|n| trajectory(game, n)).collect();
        let parallel: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| scope.spawn(move || trajectory(game, n)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(sequential, parallel, "{game}");
        assert_ne!(sequential[0], sequential[1], "seeds have no effect");
    }
}

#[test]
fn restored_environments_continue_exactly() {
    for (game, steps) in [("breakout", 150), ("ms_pacman", 40), ("freeway", 7)] {
        for mode in [EnvMode::Train, EnvMode::Test] {
            let settings = config(game).env;
            let mut env = make(&settings, mode, 1);
            env.reset().unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            play(&mut *env, &mut rng, steps);
            let snapshot = saved(&mut *env);
            // A different seed and history, which the snapshot must overwrite.
            let mut other = make(&settings, mode, 99);
            other.reset().unwrap();
            play(&mut *other, &mut ChaCha8Rng::seed_from_u64(3), 60);
            let current = env.restore(&snapshot).unwrap();
            assert_eq!(other.restore(&snapshot).unwrap(), current, "{game}");
            assert_eq!(saved(&mut *other), snapshot, "{game}");
            let expected = play(&mut *env, &mut rng.clone(), 400);
            assert_eq!(play(&mut *other, &mut rng, 400), expected, "{game}");
        }
    }
}

#[test]
fn damaged_snapshots_are_rejected() {
    let settings = config("breakout").env;
    let mut env = make(&settings, EnvMode::Train, 1);
    env.reset().unwrap();
    let snapshot = saved(&mut *env);
    for length in [0, 10, 200, snapshot.len() / 2, snapshot.len() - 1] {
        assert!(env.restore(&snapshot[..length]).is_err(), "{length}");
        assert_eq!(saved(&mut *env), snapshot);
    }
    let mut flipped = snapshot.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(env.restore(&flipped).is_err());
    let mut pong = make(&config("pong").env, EnvMode::Train, 1);
    pong.reset().unwrap();
    assert!(pong.restore(&snapshot).is_err(), "snapshot of another game");
}

#[test]
fn time_limits_count_raw_frames() {
    let mut settings = config("freeway").env;
    settings.max_steps.test = 39;
    settings.atari.max_noops.test = 1;
    let mut env = make(&settings, EnvMode::Test, 1);
    env.reset().unwrap();
    // One no-op, nine full steps, and part of the tenth.
    let outcomes: Vec<_> = (0..10)
        .map(|_| env.step(&0.into()).unwrap().outcome)
        .collect();
    assert!(outcomes[..9].iter().all(|o| *o == Outcome::Running));
    assert_eq!(outcomes[9], Outcome::Truncated);
}
