//! `rem`: train, evaluate and look into a world-model agent. One function per command.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod bench;
mod config;
mod doctor;
mod episodes;
mod eval;
mod import;
mod play;
mod report;
mod show;
mod train;
mod watch;

#[global_allocator]
static ALLOCATOR: rem_kernels::memory::Allocator = rem_kernels::memory::Allocator;

/// REM, an agent that learns games by dreaming them.
///
/// A tokenizer turns frames into tokens, a world model predicts the next frame's tokens, reward and end,
/// and a controller learns to play in that dream. `rem train` shows it on a small built-in game.
#[derive(Parser)]
#[command(name = "rem", version, max_term_width = 110, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Folder to look for Atari ROMs in first
    #[cfg(feature = "atari")]
    #[arg(long, global = true, value_name = "DIR")]
    rom_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
    #[command(subcommand)]
    Import(import::ImportCommand),
    Config(config::ConfigArgs),
    Bench(bench::BenchArgs),
    Doctor(doctor::DoctorArgs),
    Report(report::ReportArgs),
    Watch(watch::WatchArgs),
    Play(play::PlayArgs),
    Episodes(episodes::EpisodesArgs),
}

/// Where a config comes from.
#[derive(Args)]
struct ConfigSource {
    /// Preset to start from, or several laid over each other: quick, paddle, crossing, debug, atari-laptop, atari100k,
    /// iris, ablation-… (`rem config` has them all), or `atari100k,ablation-no-pop`
    #[arg(long, default_value = "quick", value_name = "NAME")]
    preset: String,
    /// Game to play, short for `--set env.game=…`: catch, paddle, crossing, or an Atari game such as breakout
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// Change a config value, as often as you like: `--set tokenizer.vocabulary=128`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all randomness, short for `--set seed=…`
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Device to compute on: flex (any CPU), or cuda, vulkan, wgpu, metal, rocm if built in
    #[arg(long, value_name = "NAME[:INDEX]")]
    device: Option<String>,
    /// CPU threads; 0 is one per core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Chance that a frame of an Atari game repeats the action before, short for `--set env.atari.sticky_actions=…`
    #[arg(long, value_name = "P")]
    sticky: Option<f64>,
}

impl ConfigSource {
    fn load(&self) -> rem::error::Result<rem::config::Config> {
        let mut overrides = self.set.clone();
        let mut short = |key: &str, value: Option<String>| {
            overrides.extend(value.map(|v| format!("{key}={v}")));
        };
        short("env.game", self.game.clone());
        short("seed", self.seed.map(|v| v.to_string()));
        short("device", self.device.clone());
        short("threads", self.threads.map(|v| v.to_string()));
        short(
            "env.atari.sticky_actions",
            self.sticky.map(|v| v.to_string()),
        );
        rem::config::Config::load(&self.preset, &overrides)
    }
}

/// The user's data directory: `REM_DATA_DIR`, or the system's place for it.
fn data_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("REM_DATA_DIR") {
        return Ok(dir.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "rem");
    let dirs = dirs.ok_or_else(|| anyhow::anyhow!("no home directory; set REM_DATA_DIR"))?;
    Ok(dirs.data_dir().into())
}

fn main() -> ExitCode {
    rem_kernels::memory::keep();
    let cli = Cli::parse();
    #[cfg(feature = "atari")]
    if let Some(dir) = cli.rom_dir {
        rem::env::atari::look_for_roms_in(dir);
    }
    let result = match cli.command {
        Command::Train(args) => train::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Import(command) => import::run(command),
        Command::Config(args) => config::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Report(args) => report::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Play(args) => play::run(args),
        Command::Episodes(args) => episodes::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// One line of what went wrong, and one of what to do about it.
fn complain(error: &anyhow::Error) {
    let mut stderr = std::io::stderr().lock();
    let (red, dim, reset) = match stderr.is_terminal() {
        true => ("\x1b[1;31m", "\x1b[2m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let _ = writeln!(stderr, "{red}error:{reset} {error}");
    if let Some(hint) = hint(error) {
        let _ = writeln!(stderr, "{dim}hint:{reset} {hint}");
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = error.downcast_ref::<rem_report::Error>() {
        return Some(error.hint());
    }
    error.downcast_ref::<rem::error::Error>()?.hint()
}
