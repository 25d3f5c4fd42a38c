//! `rem bench env`: measures the steps per second of any environment.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use rand::{RngExt, SeedableRng};
use rem::Error;
use rem::config::EnvMode;
use rem::env::{Env, EnvError, EnvFactory, Outcome};
use serde::Serialize;

use crate::ConfigSource;
use crate::args::seconds;
use crate::print;

/// Time an environment with random actions: its steps, wrappers and, for Python environments, the bridge
///
/// A step is an agent step: one action, repeated for `frame_skip` steps of the environment. Resets
/// count. `scripts/bridge-cost` compares with a plain Python loop.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem bench env --game paddle
  rem bench env --env gym:MiniGrid-Empty-5x5-v0 --python venv/bin/python --seconds 5")]
pub struct EnvArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Seconds to measure
    #[arg(long, default_value_t = 2.0, value_name = "S", value_parser = seconds)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    game: String,
    steps: u64,
    steps_per_second: f64,
}

pub fn run(args: EnvArgs) -> Result<()> {
    let config = args.source.load()?;
    let envs = EnvFactory::named(&config.env).map_err(Error::from)?;
    let mut env = envs
        .make(EnvMode::Train, config.seed)
        .map_err(Error::from)?;
    let time = Duration::from_secs_f64(args.seconds);
    let (steps, took) = play(&mut *env, time).map_err(Error::from)?;
    let line = Line {
        game: config.env.game,
        steps,
        steps_per_second: (steps as f64 / took).round(),
    };
    match args.json {
        true => print::line(serde_json::to_string(&line)?)?,
        false => print::line(format_args!(
            "{}: {} steps per second",
            line.game, line.steps_per_second
        ))?,
    }
    Ok(())
}

/// Plays random actions. Returns the number of steps and the seconds they took.
pub(super) fn play(env: &mut dyn Env, time: Duration) -> Result<(u64, f64), EnvError> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let actions = env.spaces().action.count();
    env.reset()?;
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < time {
        let step = env.step(&rng.random_range(0..actions).into())?;
        if step.outcome != Outcome::Running {
            env.reset()?;
        }
        steps += 1;
    }
    Ok((steps, start.elapsed().as_secs_f64()))
}
