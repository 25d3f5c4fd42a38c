//! `rem doctor`: checks that this machine can run a preset.

mod environment;
mod self_test;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::config::{Config, ConfigError, Perceptual};
#[cfg(feature = "atari")]
use rem::env;
use rem::model::tokenizer::lpips::Lpips;
use rem::threads;
use rem::train::TrainingTime;
use rem::train::resources::Resources;
use serde::Serialize;
use serde_json::json;
use sysinfo::{CpuRefreshKind, RefreshKind, System};

use crate::ConfigSource;
use crate::capacity::{self, gib, nearest_existing};
use crate::print;
use crate::progress::plural;

/// Check that this machine can run a preset
///
/// Checks the CPU, memory, disk, device, environment, ROMs and the weights of the perceptual loss, and estimates the
/// training time. Of the environment: its spaces, whether a seed determines it, whether its state can be saved, its speed. Then trains a tiny agent for a few seconds and compares its metrics with recorded ones. Takes the same options
/// as `rem train`. Exits with 0 if the run can start.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem doctor                                        for the default preset
  rem doctor --preset atari-laptop --game pong      for an Atari game
  rem doctor --env gym:CartPole-v1 --picture p.png  for a Gymnasium environment, with a picture of what the agent sees
  rem doctor --run-dir /mnt/large/runs              for runs on another disk")]
pub struct DoctorArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Parent directory of the run: its disk is checked, and the self-test writes temporary files to it
    #[arg(long, value_name = "DIR", default_value = "runs")]
    run_dir: PathBuf,
    /// Write frames of the environment as the agent sees them to this PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print JSON: every check with its result
    #[arg(long)]
    json: bool,
}

/// The result of a check; `Note` and `Failed` carry a message and a hint.
enum Finding {
    Passed(String),
    /// Does not prevent the run.
    Note(String, String),
    Failed(String, String),
}

use Finding::{Failed, Note, Passed};

impl Finding {
    fn from_error(error: &Error) -> Self {
        Failed(error.to_string(), error.hint().unwrap_or_default())
    }

    fn of(error: &anyhow::Error) -> Self {
        Failed(error.to_string(), crate::hint(error).unwrap_or_default())
    }
}

pub fn run(args: DoctorArgs) -> Result<()> {
    let config = args.source.load()?;
    let count = threads::set(config.threads)?;
    if !args.json {
        print::line(format_args!(
            "rem {} · {}",
            env!("CARGO_PKG_VERSION"),
            if cfg!(feature = "atari") {
                "with Atari"
            } else {
                "without Atari"
            }
        ))?;
    }
    let mut report = Report {
        json: args.json,
        ..Report::default()
    };
    report.add("machine", machine())?;
    report.add("device", device(&config, count))?;
    let (actions, findings) = environment::check(&config, args.picture.as_deref());
    for (check, finding) in findings {
        report.add(check, finding)?;
    }
    #[cfg(feature = "atari")]
    report.add("ROMs", roms())?;
    let (lpips, finding) = perceptual(&config);
    report.add("LPIPS", finding)?;
    let estimated = capacity::check(&config, &args.run_dir)
        .and_then(|()| Ok(Resources::estimate(&config, actions, lpips.is_some())?));
    match estimated {
        Ok(resources) => {
            report.add("memory", memory(resources.memory))?;
            report.add("disk", disk(resources.disk, &args.run_dir))?;
        }
        Err(error) => report.add("memory", Finding::of(&error))?,
    }
    // A run that does not fit, or has no device, cannot be timed.
    if report.failed == 0 {
        report.add("time", training_time(&config, lpips.as_ref()))?;
    }
    let dir = nearest_existing(&args.run_dir);
    report.add("self-test", self_test::run(config.precision, count, &dir))?;
    report.finish(&args.source.preset)
}

#[derive(Default)]
struct Report {
    json: bool,
    checks: Vec<Check>,
    failed: usize,
}

/// A check, as in JSON.
#[derive(Serialize)]
struct Check {
    check: String,
    status: &'static str,
    text: String,
    hint: String,
}

impl Report {
    /// Prints each check as it completes: the self-test takes seconds, so nothing waits for a finished table.
    fn add(&mut self, check: &str, finding: Finding) -> Result<()> {
        self.failed += usize::from(matches!(finding, Failed(..)));
        let (status, text, hint) = match finding {
            Passed(text) => ("ok", text, String::new()),
            Note(text, hint) => ("note", text, hint),
            Failed(text, hint) => ("FAIL", text, hint),
        };
        self.checks.push(Check {
            check: check.into(),
            status,
            text: text.clone(),
            hint: hint.clone(),
        });
        if self.json {
            return Ok(());
        }
        for (i, line) in text.lines().chain(hint.lines()).enumerate() {
            let (check, status) = if i == 0 { (check, status) } else { ("", "") };
            print::line(format_args!("{check:<10} {status:<6} {line}"))?;
        }
        Ok(())
    }

    fn finish(self, preset: &str) -> Result<()> {
        if self.json {
            let object = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "ready": self.failed == 0,
                "checks": self.checks,
            });
            print::line(format_args!("{object}"))?;
        }
        if self.failed > 0 {
            return Err(Error::from(ConfigError::new(
                format!("{} of {} checks failed", self.failed, self.checks.len()),
                "each check with FAIL has its own hint above",
            ))
            .into());
        }
        if !self.json {
            print::line(format_args!("ready for `rem train --preset {preset}`"))?;
        }
        Ok(())
    }
}

fn machine() -> Finding {
    let system =
        System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()));
    let name = (system.ok())
        .and_then(|system| Some(system.cpus().first()?.brand().trim().to_owned()))
        .filter(|name| !name.is_empty());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let text = [
        name,
        Some(plural(cores, "core")),
        Some(rem_kernels::Isa::selected().name().to_owned()),
        System::long_os_version().ok(),
    ];
    let text = text.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    match cfg!(debug_assertions) {
        true => Note(
            format!("{text} · debug build"),
            "training is several times slower than with `cargo build --release`".into(),
        ),
        false => Passed(text),
    }
}

fn device(config: &Config, threads: usize) -> Finding {
    match rem::device::of(config) {
        Err(error) => Finding::from_error(&error),
        Ok(_) => Passed(format!(
            "{} · {} · precision {}",
            config.device,
            plural(threads, "thread"),
            config.precision.name()
        )),
    }
}

/// Checks the ROMs of all benchmark games. The game of the run has its own check.
#[cfg(feature = "atari")]
fn roms() -> Finding {
    let games: Vec<_> = rem_ale::Game::benchmark().collect();
    let found: Vec<_> = games.iter().map(|game| env::atari::rom(game)).collect();
    let verified = found.iter().flatten().count();
    let text = format!(
        "ALE {} · {verified} of {} benchmark ROMs found and verified",
        rem_ale::ALE_VERSION,
        games.len()
    );
    match found.into_iter().find_map(|rom| rom.err()) {
        None => Passed(text),
        Some(first) => Note(format!("{text}\n{first}"), first.hint().to_string()),
    }
}

/// Returns the perceptual loss, if the run will use it.
fn perceptual(config: &Config) -> (Option<Lpips>, Finding) {
    const HOW: &str = "see `rem import lpips --help`";
    let loaded = crate::train::lpips_file(config).and_then(|file| {
        let lpips = file.as_deref().map(|f| crate::train::load_lpips(f, config));
        lpips.transpose()
    });
    let finding = match (&loaded, config.tokenizer.perceptual) {
        (Ok(_), Perceptual::Off) => Passed("not used by this preset".into()),
        (Ok(Some(_)), _) => Passed("weights found and loaded".into()),
        (Ok(None), _) => Note(
            "weights not found: the perceptual loss will be off".into(),
            HOW.into(),
        ),
        (Err(error), _) => match error.downcast_ref::<Error>() {
            Some(error) => Finding::from_error(error),
            None => Failed(error.to_string(), HOW.into()),
        },
    };
    (loaded.ok().flatten(), finding)
}

fn memory(needed: f64) -> Finding {
    let Some((free, total)) = capacity::memory() else {
        return unknown("memory", needed);
    };
    let text = format!(
        "{} free of {}; the run needs up to {}",
        gib(free),
        gib(total),
        gib(needed)
    );
    enough(
        text,
        free,
        needed,
        "reduce the batch size: `--set world_model.optimizer.batch_size=16`",
    )
}

fn disk(needed: f64, run_dir: &Path) -> Finding {
    let Some(free) = capacity::free_disk(run_dir) else {
        return unknown("disk", needed);
    };
    let text = format!(
        "{} free for `{}`; the run needs up to {}",
        gib(free),
        run_dir.display(),
        gib(needed)
    );
    enough(
        text,
        free,
        needed,
        "pass a directory on another disk with `--run-dir DIR`",
    )
}

fn training_time(config: &Config, lpips: Option<&Lpips>) -> Finding {
    match threads::on_worker(|| TrainingTime::measure(config, lpips)) {
        Ok(Some(time)) => Passed(format!("{time}, without collection and evaluation")),
        Ok(None) => Passed("less than 10 min of training".into()),
        Err(error) => Finding::from_error(&error),
    }
}

fn unknown(resource: &str, needed: f64) -> Finding {
    Note(
        format!("cannot determine free {resource}"),
        format!("the run needs up to {}", gib(needed)),
    )
}

fn enough(text: String, free: f64, needed: f64, hint: &str) -> Finding {
    if free >= needed {
        Passed(text)
    } else {
        Failed(text, hint.into())
    }
}
