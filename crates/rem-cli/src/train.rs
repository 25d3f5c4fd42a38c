//! `rem train`: a run from its start, or on from its last checkpoint.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::config::{Config, Perceptual};
use rem::error::Error;
use rem::run::{Protocol, RunDir, read_config};
use rem::tokenizer::lpips::Lpips;
use rem::train::Trainer;
use rem::{pop_mode, threads, weights};

use crate::show::Show;
use crate::{ConfigSource, data_dir};

/// Train an agent; without arguments, on the built-in game `catch`, in minutes
///
/// A run lives in a directory of its own: config, metrics, checkpoints, pictures, scores. Stop it whenever
/// you like, even with kill -9: `rem train --resume DIR` goes on from the last epoch and ends bit-identical
/// to a run that was never stopped.
#[derive(Args)]
pub struct TrainArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Directory of the run [default: runs/GAME-seedN]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Go on with the run in this directory; it keeps its config
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "game", "set", "seed", "device", "threads", "run_dir"])]
    resume: Option<PathBuf>,
    /// Go on from the checkpoint of this epoch instead of the last; later ones are dropped
    #[arg(long, value_name = "N", requires = "resume")]
    from_epoch: Option<u32>,
}

pub fn run(args: TrainArgs) -> Result<()> {
    let trainer = match &args.resume {
        Some(dir) => resume(dir, args.from_epoch)?,
        None => start(&args)?,
    };
    let mut show = Show::new(trainer.config());
    let scores = threads::on_worker(|| trainer.train(&mut |event| show.event(event)))?;
    show.finish(&scores);
    Ok(())
}

fn start(args: &TrainArgs) -> Result<Trainer> {
    let mut config = args.source.load()?;
    // Everything that can be wrong is found out before anything is written.
    rem::device::of(&config)?;
    let lpips_file = lpips_file(&config)?;
    config.threads = threads::set(config.threads)?;
    let crc32 = lpips_file.as_deref().map(checksum).transpose()?;
    let (config, measured) = threads::on_worker(|| pop_mode::resolve(config))?;
    let protocol = Protocol::new(&config, config.threads, crc32)?.with_measured(measured);
    let lpips = lpips_file
        .map(|file| load_lpips(&file, &config))
        .transpose()?;

    let run = RunDir::create(
        &args
            .run_dir
            .clone()
            .unwrap_or_else(|| free_directory(&config)),
    )?;
    print_header(run.path(), &config, &protocol, None);
    protocol.write(&run)?;
    Ok(Trainer::start(run, config, lpips)?)
}

fn resume(dir: &Path, from_epoch: Option<u32>) -> Result<Trainer> {
    let config = read_config(dir)?;
    let run = RunDir::open(dir)?;
    threads::set(config.threads)?;
    let protocol = Protocol::read(dir)?;
    let lpips = match protocol.perceptual_crc32 {
        None => None,
        Some(wanted) => {
            let lost = |reason: &str| Error::Run {
                path: dir.into(),
                reason: reason.into(),
                hint: "run `rem import lpips` again with the same files".into(),
            };
            let file = lpips_file(&config)?;
            let file = file.ok_or_else(|| {
                lost("it was begun with the perceptual loss, whose weights are gone")
            })?;
            if checksum(&file)? != wanted {
                return Err(lost("it was begun with other weights of the perceptual loss").into());
            }
            Some(load_lpips(&file, &config)?)
        }
    };
    let trainer = Trainer::resume(run, config, lpips, from_epoch)?;
    print_header(dir, trainer.config(), &protocol, Some(trainer.epoch()));
    Ok(trainer)
}

/// The first of runs/GAME-seedN, runs/GAME-seedN-2, … that is free.
fn free_directory(config: &Config) -> PathBuf {
    let name = format!("runs/{}-seed{}", config.env.game, config.seed);
    let more = (2..).map(|i| format!("{name}-{i}"));
    let mut names = std::iter::once(name.clone()).chain(more).map(PathBuf::from);
    names
        .find(|path| !path.exists())
        .expect("some number is free")
}

/// The LPIPS weights, where the config wants them and they are there.
pub fn lpips_file(config: &Config) -> Result<Option<PathBuf>> {
    if config.tokenizer.perceptual == Perceptual::Off {
        return Ok(None);
    }
    let file = data_dir()?.join("lpips.safetensors");
    match config.tokenizer.perceptual {
        _ if file.exists() => Ok(Some(file)),
        Perceptual::Auto | Perceptual::Off => Ok(None),
        Perceptual::Required => Err(Error::config(
            format!(
                "`tokenizer.perceptual = \"required\"`, but there is no `{}`",
                file.display()
            ),
            "make it with `rem import lpips`, or set tokenizer.perceptual=auto",
        )
        .into()),
    }
}

/// What tells one file of LPIPS weights from another.
pub fn checksum(file: &Path) -> Result<u32> {
    let bytes = std::fs::read(file).map_err(Error::io(file))?;
    Ok(crc32fast::hash(&bytes))
}

pub fn load_lpips(file: &Path, config: &Config) -> Result<Lpips> {
    let device = rem::device::of(config)?;
    let loaded = weights::apply(
        Lpips::new(config.precision.into(), &device),
        weights::read(file)?,
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
    let best = protocol
        .scripted_player
        .map_or_else(String::new, |s| format!(", best {s:.2}"));
    eprintln!(
        "game {} at {}x{} · {} tokens of {} · random player {:.2}{best} · seed {}",
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
            " (auto: measured {:.2} ms a step in one call, {:.2} ms in two)",
            m.one_call_ms, m.two_calls_ms
        )
    });
    eprintln!("dreams: {}{measured}", protocol.dreams);
    if !protocol.perceptual_loss {
        eprintln!(
            "perceptual loss OFF: {}",
            match c.tokenizer.perceptual {
                Perceptual::Off => "the config says so",
                _ => "no LPIPS weights; `rem import lpips --help` tells how to get them",
            }
        );
    }
    let from = resumed.map_or_else(String::new, |e| format!(" · resumed after epoch {e}"));
    eprintln!(
        "{} epochs into {}{from} · stop any time, go on with `rem train --resume {}`",
        c.train.epochs,
        dir.display(),
        dir.display()
    );
}
