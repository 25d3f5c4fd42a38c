//! `rem train --resume`: continues a run, or a copy of it.

use std::path::Path;

use anyhow::Result;
use rem::config::Config;
use rem::env::EnvFactory;
use rem::imagination::pop_mode;
use rem::run::trackers::Tracker;
use rem::run::{Protocol, RunDir, checkpoint, read_config, read_protocol};
use rem::train::Trainer;
use rem::{ActionSpace, Error, ObservationSpace, Spaces, threads};
use rem_run::{Origin, Phase, TimingLine, layout, parse_lines};

use super::header::print_header;
use super::{Ready, announce, checksum, load_lpips, lpips, lpips_file, measure, trackers};
use crate::progress::Measured;

/// Resumes the run in `dir`.
pub fn resume(dir: &Path, from_epoch: Option<u32>) -> Result<Ready> {
    resume_with(dir, from_epoch, &[], None)
}

/// Resumes the run in `dir`, with overrides of its settings and, if there is one, another choice of trackers.
pub(super) fn resume_with(
    dir: &Path,
    from_epoch: Option<u32>,
    overrides: &[String],
    log: Option<Vec<Tracker>>,
) -> Result<Ready> {
    let mut config = settings(dir, overrides)?;
    let run = RunDir::open(dir)?;
    config.threads = threads::set(config.threads)?;
    let protocol = read_protocol(dir)?;
    let lpips = lpips::of_run(dir, &config, &protocol)?;
    let envs = envs(&config, &protocol)?;
    let measured = match is_timed(dir) {
        true => Measured::default(),
        false => measure(&config, lpips.as_ref(), &protocol)?,
    };
    let run = trackers::choose(run, log)?;
    let trainer = Trainer::resume(run, config, envs, lpips, from_epoch)?;
    // It may have changed.
    let protocol = read_protocol(dir)?;
    print_header(dir, trainer.config(), &protocol, Some(trainer.epoch()));
    announce(&measured, trainer.config());
    Ok(Ready { trainer, measured })
}

/// Continues the run in `origin` in another directory, with overrides of its settings.
pub fn fork(
    origin: &Path,
    dir: &Path,
    from_epoch: Option<u32>,
    overrides: &[String],
    log: Option<Vec<Tracker>>,
) -> Result<Ready> {
    let before = read_config(origin)?;
    let mut config = settings(origin, overrides)?;
    rem::device::of(&config)?;
    config.threads = threads::set(config.threads)?;
    let lpips_file = lpips_file(&config)?;
    let crc32 = lpips_file.as_deref().map(checksum).transpose()?;
    let (config, modes) = threads::on_worker(|| pop_mode::resolve(config))?;
    let of_origin = read_protocol(origin)?;
    let envs = envs(&config, &of_origin)?;
    let epoch = from_epoch.or(checkpoint::epochs(origin).last().copied());
    let mut protocol = rem::train::protocol(&config, &envs, config.threads, crc32, modes)?;
    protocol.preset = of_origin.preset;
    protocol.data = of_origin.data;
    protocol.origin = Some(Origin {
        run: origin.display().to_string(),
        epoch: epoch.unwrap_or(0),
        changes: before.differences(&config),
    });
    let lpips = lpips_file
        .map(|file| load_lpips(&file, &config))
        .transpose()?;

    let is_new = !dir.exists();
    let run = RunDir::create(dir)?;
    let started = protocol
        .write(run.path())
        .map_err(|error| Error::from(error).into())
        .and_then(|()| -> Result<_> {
            let measured = measure(&config, lpips.as_ref(), &protocol);
            let run = trackers::choose(run, log)?;
            let trainer = Trainer::fork(origin, epoch, run, config, envs, lpips)?;
            Ok((trainer, measured))
        });
    let (trainer, measured) = started.inspect_err(|_| {
        // Models of other sizes show only when weights are loaded.
        if is_new {
            let _ = std::fs::remove_dir_all(dir);
        }
    })?;
    print_header(dir, trainer.config(), &protocol, Some(trainer.epoch()));
    let measured = measured?;
    announce(&measured, trainer.config());
    Ok(Ready { trainer, measured })
}

/// The settings of a run with overrides.
fn settings(run: &Path, overrides: &[String]) -> Result<Config> {
    let config = read_config(run)?;
    if overrides.is_empty() {
        return Ok(config);
    }
    Ok(Config::from_toml(&config.to_toml(), overrides).map_err(Error::from)?)
}

/// The environment of a run, which a run on recorded episodes need not have.
fn envs(config: &Config, protocol: &Protocol) -> Result<EnvFactory> {
    match &protocol.data {
        Some(data) if !data.evaluated => {
            let spaces = Spaces {
                observation: ObservationSpace::rgb(config.env.frame_size, config.env.frame_size),
                action: ActionSpace::named(protocol.actions.iter().cloned()),
            };
            Ok(EnvFactory::data(&config.env, spaces))
        }
        _ => Ok(EnvFactory::named(&config.env).map_err(Error::from)?),
    }
}

/// Whether a run has timed every training phase, so that nothing need be measured.
fn is_timed(run: &Path) -> bool {
    let timings = std::fs::read(run.join(layout::TIMING)).unwrap_or_default();
    let timings: Vec<TimingLine> = parse_lines(&timings).collect();
    [Phase::Tokenizer, Phase::WorldModel, Phase::ActorCritic]
        .iter()
        .all(|phase| timings.iter().any(|timing| timing.phase == phase.name()))
}
