//! `rem bench emulation`: measures the steps per second of Atari games.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::config::{Config, EnvMode};
use rem::env::EnvFactory;
use serde::Serialize;

use super::environment::play;
use crate::args;
use crate::print;
use crate::table::Table;

/// Time Atari environments on one core: emulator, wrappers and resize
///
/// A step is an agent step: one action, repeated for `frame_skip` raw frames.
#[derive(Args)]
pub struct EmulationArgs {
    /// Comma-separated games [default: the 26 games of Atari 100K]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    games: Vec<String>,
    /// Seconds per game
    #[arg(long, default_value_t = 2.0, value_name = "S", value_parser = args::seconds)]
    seconds: f64,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
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
    let mut table = Table::new(&["game", "steps per second", "frames per second"], 1);
    for game in games {
        let set = [format!("env.game={game}")];
        let config = Config::load("atari100k", &set).map_err(Error::from)?;
        let envs = EnvFactory::named(&config.env).map_err(Error::from)?;
        let mut env = envs.make(EnvMode::Train, 1).map_err(Error::from)?;
        let time = Duration::from_secs_f64(args.seconds);
        let (game_steps, game_seconds) = play(&mut *env, time).map_err(Error::from)?;
        let rate = game_steps as f64 / game_seconds;
        let line = Line {
            game: config.env.game,
            steps: game_steps,
            steps_per_second: rate.round(),
            raw_frames_per_second: (rate * f64::from(config.env.atari.frame_skip)).round(),
        };
        match args.json {
            true => print::line(serde_json::to_string(&line)?)?,
            false => table.push(vec![
                line.game,
                line.steps_per_second.to_string(),
                line.raw_frames_per_second.to_string(),
            ]),
        }
        steps += game_steps;
        seconds += game_seconds;
        slowest = slowest.min(rate);
    }
    if !args.json {
        print::text(table.terminal())?;
    }
    print::message(format_args!(
        "{:.0} steps/s over all games, {slowest:.0} in the slowest",
        steps as f64 / seconds
    ));
    Ok(())
}
