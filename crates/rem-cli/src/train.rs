//! `rem train`: starts a run, or resumes one from a checkpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::config::{Config, ConfigError, Perceptual};
use rem::imagination::pop_mode;
use rem::model::tokenizer::lpips::Lpips;
use rem::model::weights;
use rem::run::import;
use rem::run::{Protocol, RunDir, read_config, read_protocol};
use rem::threads;
use rem::train::{Event, Trainer, TrainingTime};
use rem_run::{Owner, owner};
use rem_study::signals;

use crate::progress::Progress;
use crate::{ConfigSource, data_dir};

/// Train an agent; by default on the built-in game `catch`, which takes minutes
///
/// A run directory holds config, metrics, checkpoints, images and scores. You can stop a run at any time, even with
/// `kill -9`: `rem train --resume DIR` continues from the last completed epoch, and the result is bit-identical to an
/// uninterrupted run. SIGUSR1, which schedulers send before a time limit, stops a run at once.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem train                                         learn `catch`
  rem train --preset paddle --seed 2                another built-in game, another seed
  rem train --preset atari-laptop --game pong       an Atari game; needs a build with `--features atari`
  rem train --preset atari100k,ablation-no-pop      an ablation of the paper
  rem train --set world_model.layers=3              with a config value changed
  rem train --resume runs/catch-seed1               continue an interrupted run

`rem config PRESET` prints every key that `--set` accepts.")]
pub struct TrainArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Run directory [default: runs/GAME-seedN]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Resume the run in this directory, with its own config
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "game", "set", "seed", "device", "threads", "sticky", "run_dir"])]
    resume: Option<PathBuf>,
    /// Resume from the checkpoint of this epoch instead of the last one; later checkpoints are deleted
    #[arg(long, value_name = "N", requires = "resume")]
    from_epoch: Option<u32>,
}

pub fn run(args: TrainArgs) -> Result<()> {
    let trainer = match &args.resume {
        Some(dir) => resume(dir, args.from_epoch)?,
        None => start(args.source.load()?, args.run_dir.as_deref())?,
    };
    train(trainer, false)
}

/// Trains a run to its end.
///
/// SIGUSR1 and SIGTERM stop this process at once, with a message; with `all_signals` so do SIGINT and SIGHUP. The last
/// complete epoch is on disk.
pub fn train(trainer: Trainer, all_signals: bool) -> Result<()> {
    let dir = trainer.run_dir().to_owned();
    let epoch = Arc::new(AtomicU32::new(trainer.epoch()));
    let done = epoch.clone();
    let stopped = dir.clone();
    signals::exit_on_signal(all_signals, move |signal| {
        Owner::clear(&stopped);
        eprintln!(
            "stopped by {} after epoch {}; continue with `rem train --resume {}`",
            signal.name(),
            done.load(Ordering::SeqCst),
            stopped.display()
        );
    })?;
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(owner::RENEWED_EVERY);
            Owner::renew(&dir);
        }
    });
    let mut progress = Progress::new(trainer.config());
    let listener = &mut |event: Event| {
        if let Event::EpochDone { epoch: last, .. } = event {
            epoch.store(last, Ordering::SeqCst);
        }
        progress.event(event);
    };
    let scores = threads::on_worker(|| trainer.train(listener))?;
    progress.finish(&scores);
    Ok(())
}

/// Starts a run in `dir`, or in a directory of its own.
pub fn start(mut config: Config, dir: Option<&Path>) -> Result<Trainer> {
    // Check everything that can fail before writing anything.
    rem::device::of(&config)?;
    let lpips_file = lpips_file(&config)?;
    config.threads = threads::set(config.threads)?;
    let crc32 = lpips_file.as_deref().map(checksum).transpose()?;
    let (config, measured) = threads::on_worker(|| pop_mode::resolve(config))?;
    let protocol = rem::train::protocol(&config, config.threads, crc32, measured)?;
    let lpips = lpips_file
        .map(|file| load_lpips(&file, &config))
        .transpose()?;

    let dir = dir.map_or_else(|| free_directory(&config), Path::to_owned);
    let run = RunDir::create(&dir)?;
    print_header(run.path(), &config, &protocol, None);
    let time = threads::on_worker(|| TrainingTime::measure(&config, lpips.as_ref()))?;
    if let Some(time) = time {
        eprintln!("estimated training time: {time}");
    }
    protocol.write(run.path()).map_err(Error::from)?;
    Ok(Trainer::start(run, config, lpips)?)
}

/// Resumes the run in `dir`.
pub fn resume(dir: &Path, from_epoch: Option<u32>) -> Result<Trainer> {
    let config = read_config(dir)?;
    let run = RunDir::open(dir)?;
    threads::set(config.threads)?;
    let protocol = read_protocol(dir)?;
    let lpips = match protocol.perceptual_crc32 {
        None => None,
        Some(expected) => {
            let lost = |reason: &str| Error::Run {
                path: dir.into(),
                reason: reason.into(),
                hint: "run `rem import lpips` again with the same files".into(),
            };
            let file = lpips_file(&config)?;
            let file = file.ok_or_else(|| {
                lost("it was started with the perceptual loss, but the LPIPS weights are missing")
            })?;
            if checksum(&file)? != expected {
                return Err(lost("it was started with different LPIPS weights").into());
            }
            Some(load_lpips(&file, &config)?)
        }
    };
    let trainer = Trainer::resume(run, config, lpips, from_epoch)?;
    print_header(dir, trainer.config(), &protocol, Some(trainer.epoch()));
    Ok(trainer)
}

/// The first of runs/GAME-seedN, runs/GAME-seedN-2, … that does not exist.
fn free_directory(config: &Config) -> PathBuf {
    let name = format!("runs/{}-seed{}", config.env.game, config.seed);
    let more = (2..).map(|i| format!("{name}-{i}"));
    let mut names = std::iter::once(name.clone()).chain(more).map(PathBuf::from);
    names
        .find(|path| !path.exists())
        .expect("the candidates are endless")
}

/// The LPIPS weights, if the config uses them and they exist.
pub fn lpips_file(config: &Config) -> Result<Option<PathBuf>> {
    if config.tokenizer.perceptual == Perceptual::Off {
        return Ok(None);
    }
    let file = data_dir()?.join("lpips.safetensors");
    match config.tokenizer.perceptual {
        _ if file.exists() => Ok(Some(file)),
        Perceptual::Auto | Perceptual::Off => Ok(None),
        Perceptual::Required => Err(Error::Config(ConfigError::new(
            format!(
                "`tokenizer.perceptual = \"required\"`, but `{}` does not exist",
                file.display()
            ),
            "create it with `rem import lpips`, or set tokenizer.perceptual=auto",
        ))
        .into()),
    }
}

/// CRC-32 of a file of LPIPS weights.
pub fn checksum(file: &Path) -> Result<u32> {
    let bytes = std::fs::read(file).map_err(Error::io(file))?;
    Ok(crc32fast::hash(&bytes))
}

pub fn load_lpips(file: &Path, config: &Config) -> Result<Lpips> {
    let device = rem::device::of(config)?;
    let loaded = weights::apply(
        Lpips::new(config.precision.into(), &device),
        import::read(file)?,
    );
    Ok(loaded.map_err(|reason| Error::Weights {
        file: file.into(),
        reason,
    })?)
}

fn print_header(dir: &Path, config: &Config, protocol: &Protocol, resumed: Option<u32>) {
    let c = config;
    eprintln!(
        "rem {} · device {} · {} thread{} · precision {}",
        protocol.rem_version,
        c.device,
        protocol.threads,
        if protocol.threads == 1 { "" } else { "s" },
        protocol.precision
    );
    let scripted = protocol
        .scripted_player
        .map_or_else(String::new, |s| format!(", scripted player {s:.2}"));
    eprintln!(
        "game {} at {}x{} · {} tokens per frame, vocabulary {} · random player {:.2}{scripted} · seed {}",
        c.env.game,
        c.env.frame_size,
        c.env.frame_size,
        c.tokens_per_obs(),
        c.tokenizer.vocabulary,
        protocol.random_player,
        c.seed
    );
    let measured = protocol.pop_mode_measured.map_or_else(String::new, |m| {
        format!(
            " (auto: measured {:.2} ms per step in one call, {:.2} ms in two)",
            m.one_call_ms, m.two_calls_ms
        )
    });
    eprintln!("imagination: {}{measured}", protocol.imagination_mode);
    if !protocol.perceptual_loss {
        eprintln!(
            "perceptual loss off: {}",
            match c.tokenizer.perceptual {
                Perceptual::Off => "disabled in the config",
                _ => "LPIPS weights not found; see `rem import lpips --help`",
            }
        );
    }
    let from = resumed.map_or_else(String::new, |e| format!(" · resumed after epoch {e}"));
    eprintln!(
        "{} epochs in {}{from} · stop at any time, continue with `rem train --resume {}`",
        c.train.epochs,
        dir.display(),
        dir.display()
    );
}
