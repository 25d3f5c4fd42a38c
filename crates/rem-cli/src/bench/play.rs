//! `rem bench play`: measures the frame rate of dreams in `rem play`.

use std::path::PathBuf;
use std::time::Duration;

use crate::print;
use anyhow::Result;
use clap::Args;
use rem::run::read_config;
use rem::threads;
use serde::Serialize;

use crate::args::{self, whole};

/// Measure the frame rate of dreams in `rem play`
///
/// The agent plays in the world model; every step is rendered and encoded for the page. Drawing the frame in the browser
/// is not included.
#[derive(Args)]
pub struct PlayArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Number of imagined steps
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = whole::<u32>(1..=1_000_000))]
    steps: u32,
    /// CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = args::threads)]
    threads: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    game: String,
    tokens: usize,
    steps: usize,
    frames_per_second: f64,
    ms_median: f64,
    ms_longest: f64,
}

pub fn run(args: PlayArgs) -> Result<()> {
    let config = read_config(&args.run)?;
    threads::set(args.threads)?;
    let mut took = rem_web::time_dream_steps(&args.run, args.steps as usize)?;
    let all: Duration = took.iter().sum();
    took.sort();
    let ms = |time: Duration| (1e5 * time.as_secs_f64()).round() / 100.0;
    let line = Line {
        tokens: config.tokens_per_obs(),
        game: config.env.game,
        steps: took.len(),
        frames_per_second: (took.len() as f64 / all.as_secs_f64()).round(),
        ms_median: ms(took[took.len() / 2]),
        ms_longest: ms(took[took.len() - 1]),
    };
    match args.json {
        true => print::line(serde_json::to_string(&line)?)?,
        false => print::line(format_args!(
            "dreams of {} run at {} frames per second: {} ms per step in the median, {} ms at most, over {} steps",
            line.game, line.frames_per_second, line.ms_median, line.ms_longest, line.steps
        ))?,
    }
    Ok(())
}
