//! Atari environments are independent of each other and restore exactly from snapshots.
#![cfg(feature = "atari")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::config::{Config, EnvMode};
use rem::env::{self, Env, Outcome, Step};

fn config(game: &str) -> Config {
    let set = [
        format!("env.game={game}"),
        "env.atari.sticky_actions=0.25".into(),
    ];
    Config::load("atari100k", &set).unwrap()
}

/// Plays random actions, with a reset after each episode.
fn play(env: &mut dyn Env, rng: &mut ChaCha8Rng, steps: usize) -> Vec<Step> {
    let mut seen = Vec::new();
    for _ in 0..steps {
        let mut step = env.step(rng.random_range(0..env.actions().len()));
        if step.outcome != Outcome::Running {
            step.frame = env.reset();
        }
        seen.push(step);
    }
    seen
}

fn trajectory(game: &str, number: u64) -> Vec<Step> {
    let mut env = env::make(&config(game).env, EnvMode::Train, number).unwrap();
    env.reset();
    play(&mut env, &mut ChaCha8Rng::seed_from_u64(number), 300)
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
            let mut env = env::make(&settings, mode, 1).unwrap();
            env.reset();
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            play(&mut env, &mut rng, steps);
            let snapshot = env.snapshot();
            // A different seed and history, which the snapshot must overwrite.
            let mut other = env::make(&settings, mode, 99).unwrap();
            other.reset();
            play(&mut other, &mut ChaCha8Rng::seed_from_u64(3), 60);
            other.restore(&snapshot).unwrap();
            assert_eq!(other.render(), env.render(), "{game}");
            assert_eq!(other.snapshot(), snapshot, "{game}");
            let expected = play(&mut env, &mut rng.clone(), 400);
            assert_eq!(play(&mut other, &mut rng, 400), expected, "{game}");
        }
    }
}

#[test]
fn damaged_snapshots_are_rejected() {
    let settings = config("breakout").env;
    let mut env = env::make(&settings, EnvMode::Train, 1).unwrap();
    env.reset();
    let snapshot = env.snapshot();
    for length in [0, 10, 200, snapshot.len() / 2, snapshot.len() - 1] {
        assert!(env.restore(&snapshot[..length]).is_err(), "{length}");
        assert_eq!(env.snapshot(), snapshot);
    }
    let mut flipped = snapshot.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(env.restore(&flipped).is_err());
    let mut pong = env::make(&config("pong").env, EnvMode::Train, 1).unwrap();
    pong.reset();
    assert!(pong.restore(&snapshot).is_err(), "snapshot of another game");
}

#[test]
fn time_limits_count_raw_frames() {
    let mut settings = config("freeway").env;
    settings.max_steps.test = 39;
    settings.atari.max_noops.test = 1;
    let mut env = env::make(&settings, EnvMode::Test, 1).unwrap();
    env.reset();
    // One no-op, nine full steps, and part of the tenth.
    let outcomes: Vec<_> = (0..10).map(|_| env.step(0).outcome).collect();
    assert!(outcomes[..9].iter().all(|o| *o == Outcome::Running));
    assert_eq!(outcomes[9], Outcome::Truncated);
}
