//! `rem bench emulation`: how many steps a second Atari games make.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use rand::{RngExt, SeedableRng};
use rem::config::Config;
use rem::env::{self, Env, Outcome, Use};
use rem::error::Error;
use serde::Serialize;

/// Time Atari games on one core: emulator, resize and all that training sees
///
/// One JSON object per game on stdout. A step is what the agent calls one: as many raw frames as the benchmark's
/// protocol repeats an action for.
#[derive(Args)]
pub struct EmulationArgs {
    /// Games, separated by commas; the benchmark's 26 if not given
    #[arg(long, value_delimiter = ',')]
    games: Vec<String>,
    /// Seconds to play each game for
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
}

#[derive(Serialize)]
struct Line {
    game: String,
    steps: u64,
    steps_per_second: f64,
    raw_frames_per_second: f64,
}

pub fn run(args: EmulationArgs) -> Result<()> {
    let games = match args.games.is_empty() {
        true => rem_ale::Game::benchmark()
            .map(|g| g.name.to_owned())
            .collect(),
        false => args.games,
    };
    let (mut steps, mut seconds) = (0, 0.0);
    let mut slowest = f64::INFINITY;
    for game in games {
        let config = Config::load("atari100k", &[format!("env.game={game}")])?;
        let mut env = env::make(&config.env, Use::Train, 1).map_err(Error::from)?;
        let (made, took) = play(&mut env, Duration::from_secs_f64(args.seconds));
        let rate = made as f64 / took;
        let line = Line {
            game: config.env.game,
            steps: made,
            steps_per_second: rate.round(),
            raw_frames_per_second: (rate * f64::from(config.env.atari.frame_skip)).round(),
        };
        println!("{}", serde_json::to_string(&line)?);
        steps += made;
        seconds += took;
        slowest = slowest.min(rate);
    }
    eprintln!(
        "{:.0} steps a second over all games, {slowest:.0} in the slowest",
        steps as f64 / seconds
    );
    Ok(())
}

/// Plays at random; the number of steps and the seconds that they took.
fn play(env: &mut dyn Env, time: Duration) -> (u64, f64) {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    env.reset();
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < time {
        let step = env.step(rng.random_range(0..env.actions().len()));
        if step.outcome != Outcome::Continues {
            env.reset();
        }
        steps += 1;
    }
    (steps, start.elapsed().as_secs_f64())
}
