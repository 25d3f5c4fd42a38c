//! `rem diagnose`: finds out which component limits the agent of a run.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::config::{Config, ConfigError};
use rem::diagnose::{
    ControllerResult, GameTraining, HeldOut, Subject, TokenizerResult, WorldModelResult,
};
use rem::env::EnvFactory;
use rem::run::{Protocol, read_config, read_protocol};
use rem::{Error, device, threads, train};
use serde::Serialize;

mod stages;
mod text;

use stages::Stages;

use crate::args::{LARGEST, at_least_one, whole};
use crate::print;

/// Find out what limits the agent of a run: tokenizer, world model or controller
///
/// Plays new episodes with the agent and measures each component on them. The tokenizer: whether different frames have
/// different tokens, and whether tokens change only where pixels do. The world model: its losses, how well dreams with the
/// recorded actions predict the next steps, and whether the policy's returns in dreams are those in the game.
///
/// `--simulator` answers the question directly. It trains the controller of the run again, with the same settings, inputs,
/// losses and number of updates, but with rollouts in the game itself: a world model without errors. If this controller
/// plays better than that of the run, the world model limits the agent. If it plays as badly, the controller does, or what
/// the tokenizer shows it.
///
/// The game must be one whose state can be saved: a built-in game or an Atari game. The run is not changed.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem diagnose runs/paddle-seed1                        tokenizer and world model: a minute
  rem diagnose runs/paddle-seed1 --simulator            and the controller: about as long as it was trained
  rem diagnose runs/paddle-seed1 --simulator --updates 500 --episodes 50
  rem diagnose runs/paddle-seed1 --simulator --set actor_critic.lstm_dim=256    what would another controller do?
  rem diagnose runs/paddle-seed1 --steps 20000 --json   more held-out play; print JSON

A shorter training in the game can only show that the world model limits the agent. Each score is that of a single training.
Where the difference is small, diagnose runs of several seeds.")]
pub struct DiagnoseArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Steps of held-out play
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = whole::<u32>(200..=LARGEST))]
    steps: u32,
    /// Train the controller in the game, and compare its score with that of the run
    #[arg(long)]
    simulator: bool,
    /// Updates in the game [default: as many as in the run]
    #[arg(long, value_name = "N", requires = "simulator", value_parser = at_least_one::<u32>)]
    updates: Option<u32>,
    /// Episodes of each score [default: those of the run's final evaluation]
    #[arg(long, value_name = "N", requires = "simulator", value_parser = at_least_one::<u32>)]
    episodes: Option<u32>,
    /// Override a value of the controller in the game, such as `actor_critic.entropy_weight=0.01`; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "simulator")]
    set: Vec<String>,
    /// Use the checkpoint of this epoch instead of the last one
    #[arg(long, value_name = "N")]
    epoch: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All results.
#[derive(Serialize)]
struct Diagnosis<'a> {
    game: &'a str,
    epoch: u32,
    steps: u32,
    tokenizer: Part<TokenizerResult>,
    world_model: Part<WorldModelResult>,
    controller: Option<Part<Scores>>,
}

/// Measurements with what they mean.
#[derive(Serialize)]
struct Part<R> {
    #[serde(flatten)]
    result: R,
    verdict: String,
}

/// Scores with those of other players.
#[derive(Serialize)]
struct Scores {
    #[serde(flatten)]
    result: ControllerResult,
    random_player: f64,
    scripted_player: Option<f64>,
}

impl Scores {
    fn of(
        result: ControllerResult,
        tokenizer: &TokenizerResult,
        protocol: &Protocol,
    ) -> Part<Self> {
        let (random_player, scripted_player) = (protocol.random_player, protocol.scripted_player);
        Part {
            verdict: result.verdict(tokenizer, random_player, scripted_player),
            result: Self {
                result,
                random_player,
                scripted_player,
            },
        }
    }
}

pub fn run(args: DiagnoseArgs) -> Result<()> {
    let config = read_config(&args.run)?;
    let of_controller = of_controller(&config, &args.set).map_err(Error::from)?;
    let envs = EnvFactory::named(&config.env).map_err(Error::from)?;
    let protocol = read_protocol(&args.run)?;
    let count = threads::set(config.threads)?;
    let device = device::of(&config)?;
    let (agent, epoch) = train::load_agent(&args.run, &config, args.epoch, device.clone())?;
    let training = args.simulator.then(|| {
        let updates = args.updates.map(|n| n as usize);
        let episodes = (args.episodes).map_or(config.evaluate.final_episodes, |n| n as usize);
        GameTraining::new(&config.actor_critic.optimizer, epoch, updates, episodes)
    });
    let training = training.transpose()?;
    print::message(format_args!(
        "device {} · threads {count} · checkpoint of epoch {epoch} · {} steps of held-out play",
        config.device, args.steps
    ));
    let subject = Subject {
        agent: &agent,
        config: &config,
        envs: &envs,
        device: &device,
    };
    let measured = || -> rem::Result<Diagnosis> {
        let stages = Stages::new();
        let (play, mut diagnosis) = measure(&subject, args.steps, epoch, &stages)?;
        if let Some(training) = &training {
            let subject = Subject {
                config: &of_controller,
                ..subject
            };
            let result = stages.run("controller in the game", |progress| {
                subject.controller(play, training, progress)
            })?;
            let tokenizer = &diagnosis.tokenizer.result;
            diagnosis.controller = Some(Scores::of(result, tokenizer, &protocol));
        }
        Ok(diagnosis)
    };
    let diagnosis = threads::on_worker(measured)?;
    match args.json {
        true => print::line(serde_json::to_string(&diagnosis)?)?,
        false => print::text(text::text(&diagnosis))?,
    }
    Ok(())
}

/// The config of the controller in the game: that of the run, with overrides of the controller's values.
fn of_controller(config: &Config, set: &[String]) -> Result<Config, ConfigError> {
    if let Some(other) = set.iter().find(|s| !s.trim().starts_with("actor_critic.")) {
        let key = other.split('=').next().unwrap_or_default();
        return Err(ConfigError::new(
            format!("`--set {key}=…` does not concern the controller"),
            "the controller in the game has the tokenizer of the run; only `actor_critic.…` can differ",
        ));
    }
    Config::from_toml(&config.to_toml(), set)
}

/// Measures tokenizer and world model on held-out play.
fn measure<'a>(
    subject: &Subject<'a>,
    steps: u32,
    epoch: u32,
    stages: &Stages,
) -> rem::Result<(HeldOut, Diagnosis<'a>)> {
    let mut play = stages.run("held-out play", |progress| {
        HeldOut::play(subject, steps as usize, progress)
    })?;
    let tokenizer = stages.run("tokenizer", |progress| {
        Ok::<_, Error>(subject.tokenizer(&play, progress))
    })?;
    let world_model = stages.run("world model", |progress| {
        subject.world_model(&mut play, progress)
    })?;
    let diagnosis = Diagnosis {
        game: &subject.config.env.game,
        epoch,
        steps,
        tokenizer: Part {
            verdict: tokenizer.verdict(),
            result: tokenizer,
        },
        world_model: Part {
            verdict: world_model.verdict(),
            result: world_model,
        },
        controller: None,
    };
    Ok((play, diagnosis))
}
