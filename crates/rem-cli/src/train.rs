//! `rem train`: starts a run, or resumes one from a checkpoint.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::config::{Config, ConfigError};
use rem::env::EnvFactory;
use rem::imagination::pop_mode;
use rem::model::tokenizer::lpips::Lpips;
use rem::run::trackers::Tracker;
use rem::run::{Protocol, RunDir};
use rem::threads;
use rem::train::{Event, StepTimes, Trainer};
use rem_run::{Owner, layout, owner};
use rem_study::signals::Reaction;

use crate::ConfigSource;
use crate::args::whole;
use crate::capacity;
use crate::print;
use crate::progress::{Measured, Progress, three};
use header::print_header;
use offline::Offline;
use stop::Stop;
use trackers::LogTo;

mod continued;
mod header;
mod lpips;
mod offline;
pub mod stop;
mod trackers;

pub use continued::resume;
pub use lpips::{checksum, load_lpips, lpips_file};

/// Train an agent; by default on the built-in game `catch`, which takes minutes
///
/// A run directory holds config, metrics, checkpoints, images and scores. You can stop a run at any time, even with
/// `kill -9`: `rem train --resume DIR` continues from the last completed epoch, and the result is bit-identical to an
/// uninterrupted run. Ctrl-C, or SIGTERM, lets the epoch end; the second one stops the run at once, and so does SIGUSR1, which
/// schedulers send before a time limit.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem train                                         learn `catch`
  rem train --game paddle --seed 2                  another built-in game, another seed
  rem train --preset atari-laptop --game pong       an Atari game; needs a build with `--features atari`
  rem train --env gym:MiniGrid-Empty-5x5-v0         a Gymnasium environment, in the Python of --python or VIRTUAL_ENV
  rem train --env python:my_module:make_env         what a function of yours returns
  rem train --preset atari100k,ablation-no-pop      an ablation of the paper
  rem train --set world_model.layers=3              with a config value changed
  rem train --offline runs/catch-seed1              tokenizer, world model and controller from recorded episodes
  rem train --resume runs/catch-seed1               continue an interrupted run
  rem train --resume runs/catch-seed1 --set train.epochs=40     train a run longer
  rem train --resume runs/catch-seed1 --fork runs/lower --set train.epochs=40 \\
            --set actor_critic.optimizer.learning_rate=1e-4     continue a copy with other settings

`rem config PRESET` prints every key that `--set` accepts.")]
pub struct TrainArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Run directory [default: runs/GAME-seedN]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Train on the recorded episodes of this data set or run, and collect nothing
    ///
    /// `rem import episodes` makes data sets. The agent is evaluated if its environment exists: that of the data, or of
    /// `--env`.
    #[arg(long, value_name = "DATA|RUN")]
    offline: Option<PathBuf>,
    /// Resume the run in this directory, with its own config
    ///
    /// `--set` can change `train.epochs`, `evaluate.…`, `threads` and `device`, which do not affect the epochs so far. The
    /// run's protocol records the change.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "run_dir", "offline"])]
    resume: Option<PathBuf>,
    /// Resume from the checkpoint of this epoch instead of the last one; later checkpoints are deleted
    #[arg(long, value_name = "N", requires = "resume", value_parser = whole::<u32>(0..=u32::MAX.into()))]
    from_epoch: Option<u32>,
    /// Leave the resumed run as it is and continue in this new directory, with any settings that keep the models' sizes
    ///
    /// The fork has the weights, optimizers, experience and epoch of the checkpoint. Its protocol names its origin.
    #[arg(long, value_name = "NEW_RUN", requires = "resume")]
    fork: Option<PathBuf>,
    /// Where the metrics go besides metrics.jsonl: tensorboard, csv, wandb, mlflow, or none [default: tensorboard]
    ///
    /// csv writes metrics.csv, wandb an offline run for `wandb sync`, and mlflow into the file store `mlruns` beside the
    /// run directory. The choice is not part of the config and changes no result. A resumed run keeps it, unless there is
    /// another one. `rem export` writes the same for any run.
    #[arg(long, value_name = "NAME,…", value_enum, value_delimiter = ',')]
    log: Vec<LogTo>,
}

pub fn run(args: TrainArgs) -> Result<()> {
    let stop = Stop::listen(Reaction::FinishEpoch)?;
    let log = LogTo::trackers(&args.log)?;
    let overrides = args.source.overrides();
    let ready = match (&args.resume, &args.fork) {
        (Some(origin), Some(dir)) => {
            continued::fork(origin, dir, args.from_epoch, &overrides, log)?
        }
        (Some(dir), None) => continued::resume_with(dir, args.from_epoch, &overrides, log)?,
        (None, _) => {
            let offline = args.offline.as_deref().map(Offline::open).transpose()?;
            let config = match &offline {
                Some(offline) => offline.config(&args.source)?,
                None => args.source.load()?,
            };
            let preset = Some(args.source.preset);
            start_on(config, preset, offline, args.run_dir.as_deref(), log)?
        }
    };
    train(ready, stop)
}

/// A run that is ready to train.
pub struct Ready {
    trainer: Trainer,
    measured: Measured,
}

/// Trains a run to its end, or until a signal stops it.
pub fn train(ready: Ready, stop: Stop) -> Result<()> {
    let Ready { trainer, measured } = ready;
    let dir = trainer.run_dir().to_owned();
    stop.saved(&dir, trainer.epoch());
    let renewed = dir.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(owner::RENEWED_EVERY);
            Owner::renew(&renewed);
        }
    });
    let mut open = trackers::open(&trainer)?;
    let mut progress = Progress::new(trainer.config(), &dir, trainer.epoch(), measured);
    let listener = &mut |event: Event| {
        for message in trackers::follow(&mut open, &event) {
            progress.event(Event::Note(&message));
        }
        let saved = match event {
            Event::EpochDone { epoch, .. } => Some(epoch),
            _ => None,
        };
        progress.event(event);
        if let Some(epoch) = saved {
            stop.saved(&dir, epoch);
        }
    };
    let scores = threads::on_worker(|| trainer.train_until(&|| stop.is_asked(), listener))?;
    let Some(scores) = scores else { stop.exit() };
    stop.done();
    for message in open.finish() {
        progress.event(Event::Note(&message));
    }
    progress.finish(&scores, &dir);
    Ok(())
}

/// Starts a run in `dir`.
pub fn start(config: Config, dir: &Path) -> Result<Ready> {
    start_on(config, None, None, Some(dir), None)
}

/// Starts a run in `dir`, or in a directory of its own; on recorded episodes if there are any.
fn start_on(
    mut config: Config,
    preset: Option<String>,
    offline: Option<Offline>,
    dir: Option<&Path>,
    log: Option<Vec<Tracker>>,
) -> Result<Ready> {
    if config.collect.epochs == 0 && offline.is_none() {
        return Err(Error::Config(ConfigError::new(
            "`collect.epochs = 0`: there is nothing to learn from",
            "train on recorded episodes with `--offline`, or set it to 1 or more",
        ))
        .into());
    }
    // Check everything that can fail before writing anything.
    rem::device::of(&config)?;
    capacity::check(&config, dir.unwrap_or("runs".as_ref()))?;
    let lpips_file = lpips_file(&config)?;
    config.threads = threads::set(config.threads)?;
    let crc32 = lpips_file.as_deref().map(checksum).transpose()?;
    let (config, modes) = threads::on_worker(|| pop_mode::resolve(config))?;
    let envs = match &offline {
        Some(offline) => offline.envs(&config)?,
        None => EnvFactory::named(&config.env).map_err(Error::from)?,
    };
    let mut protocol = rem::train::protocol(&config, &envs, config.threads, crc32, modes)?;
    protocol.preset = preset;
    protocol.data = offline.as_ref().map(|offline| offline.details(&envs));
    let replay = offline.map(|offline| offline.load(&config)).transpose()?;
    let lpips = lpips_file
        .map(|file| load_lpips(&file, &config))
        .transpose()?;

    let measured = measure(&config, lpips.as_ref(), &protocol)?;
    capacity::check_time(measured.long_run(&config).as_ref())?;

    let dir = dir.map_or_else(|| free_directory(&config), Path::to_owned);
    let run = RunDir::create(&dir)?;
    print_header(run.path(), &config, &protocol, None);
    announce(&measured, &config);
    protocol.write(run.path()).map_err(Error::from)?;
    let run = trackers::choose(run, log)?;
    let trainer = match replay {
        Some(replay) => Trainer::start_offline(run, config, envs, lpips, replay)?,
        None => Trainer::start(run, config, envs, lpips)?,
    };
    Ok(Ready { trainer, measured })
}

/// Measures training steps.
fn measure(config: &Config, lpips: Option<&Lpips>, protocol: &Protocol) -> Result<Measured> {
    let steps = threads::on_worker(|| StepTimes::measure(config, lpips))?;
    Ok(Measured {
        steps: Some(steps),
        recorded: protocol.data.as_ref().map_or(0, |data| data.steps),
    })
}

/// Prints what was measured, and how long a long run will train.
fn announce(measured: &Measured, config: &Config) {
    let ms = |seconds: f64| three(1000.0 * seconds);
    if let Some(steps) = measured.steps {
        print::detail(format_args!(
            "measured: a step takes {} ms (tokenizer), {} ms (world model), {} ms (controller); a frame {} ms",
            ms(steps.alone.tokenizer),
            ms(steps.alone.world_model),
            ms(steps.alone.actor_critic),
            ms(steps.alone.frame)
        ));
    }
    if let Some(time) = measured.long_run(config) {
        print::message(format_args!("estimated training time: {time}"));
    }
}

/// The first of runs/GAME-seedN, runs/GAME-seedN-2, … that does not exist.
fn free_directory(config: &Config) -> PathBuf {
    let name = format!("runs/{}", layout::run_name(&config.env.game, config.seed));
    let more = (2..).map(|i| format!("{name}-{i}"));
    let mut names = std::iter::once(name.clone()).chain(more).map(PathBuf::from);
    names
        .find(|path| !path.exists())
        .expect("the candidates are endless")
}
