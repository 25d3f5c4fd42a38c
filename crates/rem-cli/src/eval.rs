//! `rem eval`: evaluates the agent of a run.

use std::path::PathBuf;

use crate::print;
use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::env::EnvFactory;
use rem::run::{read_config, read_protocol};
use rem::seeds::Seeds;
use rem::train::evaluate::evaluate;
use rem::{device, threads, train};
use serde::Serialize;

use crate::args::{at_least_one, positive, whole};

/// Evaluate the agent of a run and print its score
///
/// With the run's own number of episodes, the result equals the run's final score exactly.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem eval runs/catch-seed1                        reproduce the final score
  rem eval runs/catch-seed1 --episodes 500         a more precise estimate
  rem eval runs/catch-seed1 --epoch 27 --json      an older checkpoint; print every return as JSON")]
pub struct EvalArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Number of episodes [default: that of the run's final evaluation]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    episodes: Option<u32>,
    /// Use the checkpoint of this epoch instead of the last one
    #[arg(long, value_name = "N", value_parser = whole::<u32>(0..=u32::MAX.into()))]
    epoch: Option<u32>,
    /// Sampling temperature of the policy [default: the run's]
    #[arg(long, value_name = "T", value_parser = positive)]
    temperature: Option<f64>,
    /// Print JSON with the return of every episode
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output<'a> {
    game: &'a str,
    epoch: u32,
    mean: f64,
    returns: &'a [f32],
    lengths: &'a [usize],
}

pub fn run(args: EvalArgs) -> Result<()> {
    let mut config = read_config(&args.run)?;
    // First, because it is fast and fails if there is no such environment.
    let envs = EnvFactory::named(&config.env).map_err(Error::from)?;
    let count = threads::set(config.threads)?;
    let device = device::of(&config)?;
    let (agent, epoch) = train::load_agent(&args.run, &config, args.epoch, device.clone())?;
    if let Some(temperature) = args.temperature {
        config.evaluate.temperature = temperature;
    }
    let protocol = read_protocol(&args.run)?;
    let episodes = args
        .episodes
        .map_or(config.evaluate.final_episodes, |n| n as usize);
    print::message(format_args!(
        "device {} · threads {count} · precision {} · checkpoint of epoch {epoch} · temperature {}",
        config.device, protocol.precision, config.evaluate.temperature
    ));
    let (player, seeds) = (agent.valid(), Seeds::new(config.seed));
    let play = || evaluate(&player, &config, &envs, episodes, &seeds, &device, |_| {});
    let result = threads::on_worker(play).map_err(Error::from)?;
    if args.json {
        let output = Output {
            game: &config.env.game,
            epoch,
            mean: result.mean(),
            returns: &result.returns,
            lengths: &result.lengths,
        };
        print::line(serde_json::to_string(&output)?)?;
        return Ok(());
    }
    let mean = result.mean();
    let squares = result
        .returns
        .iter()
        .map(|r| (f64::from(*r) - mean).powi(2))
        .sum::<f64>();
    let deviation = (squares / result.returns.len() as f64).sqrt();
    let scripted = protocol
        .scripted_player
        .map_or_else(String::new, |s| format!(", scripted player {s:.3}"));
    print::line(format_args!(
        "{}: mean return {mean:.3} ± {deviation:.3} over {} episodes (random player {:.3}{scripted})",
        config.env.game,
        result.returns.len(),
        protocol.random_player
    ))?;
    Ok(())
}
