//! `rem doctor`: is this machine ready for a run?

mod self_test;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use rem::config::{Config, Perceptual};
use rem::env::{self, Outcome, Use};
use rem::error::Error;
use rem::needs::Needs;
use rem::threads;
use sysinfo::{CpuRefreshKind, Disks, RefreshKind, System};

use crate::ConfigSource;

/// Check that this machine is ready for a run of the preset
///
/// Looks at processor, memory and disk, device, game and ROMs, and the weights of the perceptual loss, then trains a
/// tiny agent for seconds and compares its numbers with recorded ones. Takes the options of `rem train`. The exit code
/// is 0 if such a run can be started.
#[derive(Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    source: ConfigSource,
    /// Where the run would be: its disk is looked at, and the self-test writes there for a moment
    #[arg(long, value_name = "DIR", default_value = "runs")]
    run_dir: PathBuf,
}

/// What a check found, and what to do about it.
enum Finding {
    Fine(String),
    /// Not wrong, but the user might expect something else.
    Note(String, String),
    Wrong(String, String),
}

use Finding::{Fine, Note, Wrong};

impl Finding {
    fn of_error(error: &Error) -> Self {
        Wrong(error.to_string(), error.hint().unwrap_or_default())
    }
}

pub fn run(args: DoctorArgs) -> Result<()> {
    let config = args.source.load()?;
    let count = threads::set(config.threads)?;
    println!(
        "rem {} · {}",
        env!("CARGO_PKG_VERSION"),
        if cfg!(feature = "atari") {
            "with Atari"
        } else {
            "without Atari"
        }
    );
    let mut report = Report::default();
    report.add("machine", machine());
    report.add("device", device(&config, count));
    let (actions, finding) = game(&config);
    report.add("game", finding);
    #[cfg(feature = "atari")]
    report.add("ROMs", roms());
    let (perceptual, finding) = perceptual(&config);
    report.add("LPIPS", finding);
    match Needs::of(&config, actions, perceptual) {
        Ok(needs) => {
            report.add("memory", memory(needs.memory));
            report.add("disk", disk(needs.disk, &args.run_dir));
        }
        Err(error) => report.add("memory", Finding::of_error(&error)),
    }
    let place = existing(&args.run_dir);
    report.add("self-test", self_test::run(config.precision, count, &place));
    report.finish(&args.source.preset)
}

#[derive(Default)]
struct Report {
    checks: usize,
    wrong: usize,
}

impl Report {
    fn add(&mut self, what: &str, finding: Finding) {
        let (word, text, hint) = match finding {
            Fine(text) => ("ok", text, String::new()),
            Note(text, hint) => ("note", text, hint),
            Wrong(text, hint) => ("WRONG", text, hint),
        };
        self.checks += 1;
        self.wrong += usize::from(word == "WRONG");
        for (i, line) in text.lines().chain(hint.lines()).enumerate() {
            let (what, word) = if i == 0 { (what, word) } else { ("", "") };
            println!("{what:<10} {word:<6} {line}");
        }
    }

    fn finish(self, preset: &str) -> Result<()> {
        if self.wrong > 0 {
            bail!("{} of {} checks failed", self.wrong, self.checks);
        }
        println!("ready for `rem train --preset {preset}`");
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
        Some(rem_kernels::Level::of_this_machine().name().to_owned()),
        System::long_os_version().ok(),
    ];
    let text = text.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    match cfg!(debug_assertions) {
        true => Note(
            format!("{text} · built for debugging"),
            "training will be several times slower than with `cargo build --release`".into(),
        ),
        false => Fine(text),
    }
}

fn device(config: &Config, threads: usize) -> Finding {
    match rem::device::of(config) {
        Err(error) => Finding::of_error(&error),
        Ok(_) => Fine(format!(
            "{} · {} · precision {}",
            config.device,
            plural(threads, "thread"),
            config.precision.name()
        )),
    }
}

/// Starts the game and plays a little. Its number of actions; if it cannot be started, the most that a game has.
fn game(config: &Config) -> (usize, Finding) {
    const STEPS: usize = 100;
    const MOST_ACTIONS: usize = 18;
    let mut env = match env::make(&config.env, Use::Train, config.seed) {
        Ok(env) => env,
        Err(error) => return (MOST_ACTIONS, Finding::of_error(&error.into())),
    };
    let actions = env.actions().len();
    env.reset();
    for step in 0..STEPS {
        if env.step(step % actions).outcome != Outcome::Continues {
            env.reset();
        }
    }
    let text = format!("{} · {actions} actions", config.env.game);
    (actions, Fine(text))
}

/// All games of the benchmark. That of the run is a check of its own.
#[cfg(feature = "atari")]
fn roms() -> Finding {
    let games: Vec<_> = rem_ale::Game::benchmark().collect();
    let found: Vec<_> = games.iter().map(|game| env::atari::rom(game)).collect();
    let verified = found.iter().flatten().count();
    let text = format!(
        "ALE {} · {verified} of the benchmark's {} games found and verified",
        rem_ale::ALE_VERSION,
        games.len()
    );
    match found.into_iter().find_map(|rom| rom.err()) {
        None => Fine(text),
        Some(first) => Note(format!("{text}\n{first}"), first.hint().to_string()),
    }
}

/// Whether there will be a perceptual loss, and what to say of it.
fn perceptual(config: &Config) -> (bool, Finding) {
    const HOW: &str = "`rem import lpips --help` tells how to get them";
    let loaded = crate::train::lpips_file(config).and_then(|file| {
        let lpips = file.as_deref().map(|f| crate::train::load_lpips(f, config));
        lpips.transpose()
    });
    let finding = match (&loaded, config.tokenizer.perceptual) {
        (Ok(_), Perceptual::Off) => Fine("not used by this preset".into()),
        (Ok(Some(_)), _) => Fine("weights found and loaded".into()),
        (Ok(None), _) => Note(
            "no weights: the perceptual loss will be off".into(),
            HOW.into(),
        ),
        (Err(error), _) => match error.downcast_ref::<Error>() {
            Some(error) => Finding::of_error(error),
            None => Wrong(error.to_string(), HOW.into()),
        },
    };
    (matches!(loaded, Ok(Some(_))), finding)
}

fn memory(needed: f64) -> Finding {
    let Ok(mut system) = System::new() else {
        return unknown("memory", needed);
    };
    system.refresh_memory();
    let (free, all) = (
        system.available_memory() as f64,
        system.total_memory() as f64,
    );
    let text = format!(
        "{} free of {}; the run takes up to about {}",
        gib(free),
        gib(all),
        gib(needed)
    );
    enough(
        text,
        free,
        needed,
        "smaller batches need less: `--set world_model.optimise.batch=16`",
    )
}

fn disk(needed: f64, run_dir: &Path) -> Finding {
    let place = existing(run_dir);
    let place = place.canonicalize().unwrap_or(place);
    let disks = Disks::new_with_refreshed_list().ok();
    let mounted = (disks.iter().flat_map(|disks| &**disks))
        .filter(|disk| place.starts_with(disk.mount_point()));
    let Some(disk) = mounted.max_by_key(|disk| disk.mount_point().as_os_str().len()) else {
        return unknown("disk", needed);
    };
    let free = disk.available_space() as f64;
    let text = format!(
        "{} free for `{}`; the run takes up to about {}",
        gib(free),
        run_dir.display(),
        gib(needed)
    );
    enough(
        text,
        free,
        needed,
        "name a place on another disk with `--run-dir DIR`",
    )
}

fn unknown(what: &str, needed: f64) -> Finding {
    Note(
        format!("the system does not tell how much {what} is free"),
        format!("the run takes up to about {}", gib(needed)),
    )
}

fn enough(text: String, free: f64, needed: f64, hint: &str) -> Finding {
    if free >= needed {
        Fine(text)
    } else {
        Wrong(text, hint.into())
    }
}

/// The nearest folder on the way up that is there.
fn existing(dir: &Path) -> PathBuf {
    let there = dir.ancestors().find(|d| d.is_dir());
    there.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn gib(bytes: f64) -> impl Display {
    format!("{:.1} GiB", bytes / f64::from(1 << 30))
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
