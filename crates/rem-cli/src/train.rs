//! `rem train`: starts a run, or resumes one from a checkpoint.

mod trackers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use clap::Args;
use rem::config::{Config, ConfigError, Perceptual};
use rem::data::dataset::DatasetInfo;
use rem::env::EnvFactory;
use rem::imagination::pop_mode;
use rem::model::tokenizer::lpips::Lpips;
use rem::model::weights;
use rem::run::import;
use rem::run::trackers::Tracker;
use rem::run::{Protocol, RunDir, read_config, read_protocol, recorded_episodes};
use rem::threads;
use rem::train::{Event, Trainer, TrainingTime};
use rem::{ActionSpace, EnvError, Error, ObservationSpace, Replay, Spaces};
use rem_run::{DataDetails, Owner, layout, owner};
use rem_study::signals;

use crate::args::whole;
use crate::capacity;
use crate::progress::Progress;
use crate::{ConfigSource, data_dir};
use trackers::LogTo;

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
  rem train --env gym:MiniGrid-Empty-5x5-v0         a Gymnasium environment, in the Python of --python or VIRTUAL_ENV
  rem train --env python:my_module:make_env         what a function of yours returns
  rem train --preset atari100k,ablation-no-pop      an ablation of the paper
  rem train --set world_model.layers=3              with a config value changed
  rem train --offline runs/catch-seed1              tokenizer, world model and controller from recorded episodes
  rem train --resume runs/catch-seed1               continue an interrupted run

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
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "game", "set", "seed", "device", "threads", "sticky", "run_dir", "offline"])]
    resume: Option<PathBuf>,
    /// Resume from the checkpoint of this epoch instead of the last one; later checkpoints are deleted
    #[arg(long, value_name = "N", requires = "resume", value_parser = whole::<u32>(0..=u32::MAX.into()))]
    from_epoch: Option<u32>,
    /// Where the metrics go besides metrics.jsonl: tensorboard, csv, wandb, mlflow, or none [default: tensorboard]
    ///
    /// csv writes metrics.csv, wandb an offline run for `wandb sync`, and mlflow into the file store `mlruns` beside the
    /// run directory. The choice is not part of the config and changes no result. A resumed run keeps it, unless there is
    /// another one. `rem export` writes the same for any run.
    #[arg(long, value_name = "NAME,…", value_enum, value_delimiter = ',')]
    log: Vec<LogTo>,
}

pub fn run(args: TrainArgs) -> Result<()> {
    let log = LogTo::trackers(&args.log)?;
    let trainer = match &args.resume {
        Some(dir) => resume_with(dir, args.from_epoch, log)?,
        None => {
            let offline = args.offline.as_deref().map(Offline::open).transpose()?;
            let config = match &offline {
                Some(offline) => offline.config(&args.source)?,
                None => args.source.load()?,
            };
            start_on(config, offline, args.run_dir.as_deref(), log)?
        }
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
    let mut open = trackers::open(&trainer)?;
    let mut progress = Progress::new(trainer.config());
    let listener = &mut |event: Event| {
        for message in trackers::follow(&mut open, &event) {
            progress.event(Event::Note(&message));
        }
        if let Event::EpochDone { epoch: last, .. } = event {
            epoch.store(last, Ordering::SeqCst);
        }
        progress.event(event);
    };
    let scores = threads::on_worker(|| trainer.train(listener))?;
    for message in open.finish() {
        progress.event(Event::Note(&message));
    }
    progress.finish(&scores);
    Ok(())
}

/// Starts a run in `dir`, or in a directory of its own.
pub fn start(config: Config, dir: Option<&Path>) -> Result<Trainer> {
    start_on(config, None, dir, None)
}

/// Starts a run, on recorded episodes if there are any.
fn start_on(
    mut config: Config,
    offline: Option<Offline>,
    dir: Option<&Path>,
    log: Option<Vec<Tracker>>,
) -> Result<Trainer> {
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
    let (config, measured) = threads::on_worker(|| pop_mode::resolve(config))?;
    let envs = match &offline {
        Some(offline) => offline.envs(&config)?,
        None => EnvFactory::named(&config.env).map_err(Error::from)?,
    };
    let mut protocol = rem::train::protocol(&config, &envs, config.threads, crc32, measured)?;
    protocol.data = offline.as_ref().map(|offline| offline.details(&envs));
    let replay = offline.map(|offline| offline.load(&config)).transpose()?;
    let lpips = lpips_file
        .map(|file| load_lpips(&file, &config))
        .transpose()?;

    let time = threads::on_worker(|| TrainingTime::measure(&config, lpips.as_ref()))?;
    capacity::check_time(time.as_ref())?;

    let dir = dir.map_or_else(|| free_directory(&config), Path::to_owned);
    let run = RunDir::create(&dir)?;
    print_header(run.path(), &config, &protocol, None);
    if let Some(time) = time {
        eprintln!("estimated training time: {time}");
    }
    protocol.write(run.path()).map_err(Error::from)?;
    let run = trackers::choose(run, log)?;
    Ok(match replay {
        Some(replay) => Trainer::start_offline(run, config, envs, lpips, replay)?,
        None => Trainer::start(run, config, envs, lpips)?,
    })
}

/// The recorded episodes of `--offline`.
struct Offline {
    dir: PathBuf,
    info: DatasetInfo,
}

impl Offline {
    fn open(dir: &Path) -> Result<Self> {
        let info = recorded_episodes(dir).map_err(Error::from)?;
        let dir = dir.into();
        Ok(Self { dir, info })
    }

    /// The user's config, with the frames and the environment of the data. A run has the settings of its environment.
    fn config(&self, source: &ConfigSource) -> Result<Config> {
        let own = [
            format!("env.game={}", self.info.game),
            format!("env.frame_size={}", self.info.frame_size),
            "collect.epochs=0".into(),
        ];
        let mut config = source.load_over(own.into())?;
        if source.game.is_none()
            && let Ok(run) = read_config(&self.dir)
        {
            config.env = run.env;
        }
        if config.collect.epochs > 0 || config.env.frame_size != self.info.frame_size {
            let size = self.info.frame_size;
            return Err(Error::Config(ConfigError::new(
                format!("the episodes have frames of {size} pixels, and nothing can be collected"),
                format!(
                    "leave `collect.epochs` at 0 and `env.frame_size` at {size} with `--offline`"
                ),
            ))
            .into());
        }
        Ok(config)
    }

    /// The environment that the agent is evaluated in; none if the name is that of no environment.
    fn envs(&self, config: &Config) -> Result<EnvFactory> {
        let envs = match EnvFactory::named(&config.env) {
            Ok(envs) => envs,
            Err(EnvError::UnknownGame { .. }) => {
                return Ok(EnvFactory::data(&config.env, self.info.spaces()));
            }
            Err(error) => return Err(Error::from(error).into()),
        };
        let (found, recorded) = (
            envs.spaces().map_err(Error::from)?.action.count(),
            self.info.actions.len(),
        );
        if found != recorded {
            return Err(Error::Config(ConfigError::new(
                format!(
                    "`{}` has {found} actions, but the episodes have {recorded}",
                    config.env.game
                ),
                "import the episodes with `--actions N`, or name their environment with `--env`",
            ))
            .into());
        }
        Ok(envs)
    }

    fn details(&self, envs: &EnvFactory) -> DataDetails {
        DataDetails {
            source: self.dir.display().to_string(),
            episodes: self.info.episodes,
            steps: self.info.steps,
            evaluated: envs.can_play(),
        }
    }

    fn load(self, config: &Config) -> Result<Replay> {
        let replay = self.info.load(&self.dir, config.tokens_per_obs());
        Ok(replay.map_err(Error::from)?)
    }
}

/// Resumes the run in `dir`.
pub fn resume(dir: &Path, from_epoch: Option<u32>) -> Result<Trainer> {
    resume_with(dir, from_epoch, None)
}

/// Resumes the run in `dir`, with another choice of trackers if there is one.
fn resume_with(dir: &Path, from_epoch: Option<u32>, log: Option<Vec<Tracker>>) -> Result<Trainer> {
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
    let envs = match &protocol.data {
        Some(data) if !data.evaluated => {
            let spaces = Spaces {
                observation: ObservationSpace::rgb(config.env.frame_size, config.env.frame_size),
                action: ActionSpace::named(protocol.actions.iter().cloned()),
            };
            EnvFactory::data(&config.env, spaces)
        }
        _ => EnvFactory::named(&config.env).map_err(Error::from)?,
    };
    let run = trackers::choose(run, log)?;
    let trainer = Trainer::resume(run, config, envs, lpips, from_epoch)?;
    print_header(dir, trainer.config(), &protocol, Some(trainer.epoch()));
    Ok(trainer)
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
    let players = match protocol.baseline_episodes {
        0 => "no evaluation".into(),
        _ => format!("random player {:.2}{scripted}", protocol.random_player),
    };
    eprintln!(
        "game {} at {}x{} · {} tokens per frame, vocabulary {} · {players} · seed {}",
        c.env.game,
        c.env.frame_size,
        c.env.frame_size,
        c.tokens_per_obs(),
        c.tokenizer.vocabulary,
        c.seed
    );
    if let Some(data) = &protocol.data {
        eprintln!(
            "offline: {} episodes, {} steps of {}",
            data.episodes, data.steps, data.source
        );
    }
    if let Some(env) = &protocol.environment {
        let wrappers = match env.wrappers.is_empty() {
            true => String::new(),
            false => format!(" · {}", env.wrappers.join(" · ")),
        };
        eprintln!("environment: {}{wrappers}", env.observation_space);
        if !env.snapshots {
            eprintln!(
                "its state cannot be saved: a resumed run starts a new episode and is not bit-identical"
            );
        }
    }
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
