//! `rem eval`: play with a run's agent and say its score.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::evaluate::evaluate;
use rem::run::{Protocol, read_config};
use rem::seeds::Seeds;
use rem::{device, threads, train};
use serde::Serialize;

/// Play with the agent of a run and print its score
///
/// The same number of episodes as the run's own final evaluation gives the same score, to the digit.
#[derive(Args)]
pub struct EvalArgs {
    /// Directory of the run
    run: PathBuf,
    /// Episodes to play [default: as many as the run's final evaluation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    episodes: Option<u32>,
    /// Use the checkpoint of this epoch instead of the last
    #[arg(long, value_name = "N")]
    epoch: Option<u32>,
    /// Sampling temperature of the policy [default: the run's]
    #[arg(long, value_name = "T", value_parser = above_zero)]
    temperature: Option<f64>,
    /// Print JSON with the return of every episode
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Played<'a> {
    game: &'a str,
    epoch: u32,
    mean: f64,
    returns: &'a [f32],
    lengths: &'a [usize],
}

fn above_zero(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|e| format!("{e}"))?;
    let good = value > 0.0 && value.is_finite();
    good.then_some(value)
        .ok_or_else(|| "must be above 0".into())
}

pub fn run(args: EvalArgs) -> Result<()> {
    let mut config = read_config(&args.run)?;
    let count = threads::set(config.threads)?;
    let device = device::of(&config)?;
    let (agent, epoch) = train::load_agent(&args.run, &config, args.epoch, device.clone())?;
    if let Some(temperature) = args.temperature {
        config.evaluate.temperature = temperature;
    }
    let protocol = Protocol::read(&args.run)?;
    let episodes = args
        .episodes
        .map_or(config.evaluate.final_episodes, |n| n as usize);
    eprintln!(
        "device {} · threads {count} · precision {} · checkpoint of epoch {epoch} · temperature {}",
        config.device, protocol.precision, config.evaluate.temperature
    );
    let (player, seeds) = (agent.valid(), Seeds::new(config.seed));
    let play = || evaluate(&player, &config, episodes, &seeds, &device, |_| {});
    let result = threads::on_worker(play)?;
    if args.json {
        let played = Played {
            game: &config.env.game,
            epoch,
            mean: result.mean(),
            returns: &result.returns,
            lengths: &result.lengths,
        };
        println!("{}", serde_json::to_string(&played)?);
        return Ok(());
    }
    let mean = result.mean();
    let spread = result
        .returns
        .iter()
        .map(|r| (f64::from(*r) - mean).powi(2))
        .sum::<f64>();
    let deviation = (spread / result.returns.len() as f64).sqrt();
    let best = protocol
        .scripted_player
        .map_or_else(String::new, |s| format!(", scripted best {s:.3}"));
    println!(
        "{}: mean return {mean:.3} ± {deviation:.3} over {} episodes (random player {:.3}{best})",
        config.env.game,
        result.returns.len(),
        protocol.random_player
    );
    Ok(())
}
