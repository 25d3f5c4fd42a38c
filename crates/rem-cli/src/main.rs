//! `rem`: trains, evaluates and inspects world-model agents. One file per command.

// All output goes through `print`, which knows what to do when a terminal or a pipe is gone.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use rem::config::ConfigError;
use rem::env::EnvName;

use print::{Style, Unprinted, Verbosity, styled};

mod allocator;
mod args;
mod bench;
mod capacity;
mod completions;
mod config;
mod demo;
mod diagnose;
mod doctor;
mod episodes;
mod eval;
mod export;
mod export_agent;
mod import;
mod play;
mod print;
mod progress;
mod report;
mod runs;
mod sweep;
mod table;
mod train;
mod usage;
mod version;
mod watch;

/// REM: an agent that learns to play games inside its own world model
///
/// A tokenizer turns frames into tokens. A world model predicts the tokens of the next frame, the reward and the end of
/// the episode. A controller learns to play in imagination. Start with `rem train`: it trains an agent on a small
/// built-in game.
#[derive(Parser)]
#[command(name = "rem", version, max_term_width = 110, args_override_self = true)]
#[command(after_long_help = "\
Examples:
  rem demo                         play in the dream of an agent that is part of the program
  rem doctor                       check that this machine can run the default preset
  rem train                        train an agent on `catch`
  rem runs                         list all runs
  rem watch                        show all runs in the browser, live while they train
  rem eval runs/catch-seed1        evaluate the agent of a run
  rem diagnose runs/catch-seed1    find out what limits the agent
  rem play runs/catch-seed1        play in the world model
  rem sweep --help                 train many runs: games, seeds and variants, here or on Slurm

`rem COMMAND --help` describes a command and its options. `rem --version --verbose` prints what this program was built
from, and `rem completions SHELL` and `rem man DIR` what shells and `man` read.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Python for `gym:…` and `python:…` environments [default: that of VIRTUAL_ENV, or python3]
    #[arg(long, global = true, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Directory to search first for Atari ROMs
    #[cfg(feature = "atari")]
    #[arg(long, global = true, value_name = "DIR")]
    rom_dir: Option<PathBuf>,
    /// Print warnings, errors and results only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print more: all metrics of each phase while training
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Colors; by default on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto"
    )]
    color: print::Color,
}

#[derive(Subcommand)]
enum Command {
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
    Diagnose(diagnose::DiagnoseArgs),
    #[command(subcommand)]
    Import(import::ImportCommand),
    Config(config::ConfigArgs),
    Bench(bench::BenchArgs),
    Doctor(doctor::DoctorArgs),
    Report(report::ReportArgs),
    Sweep(sweep::SweepArgs),
    Watch(watch::WatchArgs),
    Play(play::PlayArgs),
    Demo(demo::DemoArgs),
    Episodes(episodes::EpisodesArgs),
    Runs(runs::RunsArgs),
    ExportAgent(export_agent::ExportAgentArgs),
    Export(export::ExportArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

/// Options that select and override a config.
#[derive(Args)]
struct ConfigSource {
    /// Preset: quick, debug, atari-laptop, atari100k, paper-text, iris, simulus, ablation-… (`rem config
    /// --help` lists all); later ones override earlier ones in a list such as `atari100k,ablation-no-pop`
    #[arg(long, default_value = "quick", value_name = "NAME")]
    preset: String,
    /// Environment: catch, paddle, crossing, an Atari game such as breakout, `gym:ID` or `python:MODULE:FACTORY` (same as
    /// `--set env.game=…`)
    #[arg(long, visible_alias = "env", value_name = "NAME")]
    game: Option<String>,
    /// Override a config value, such as `tokenizer.vocabulary=128`; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Random seed (same as `--set seed=…`)
    #[arg(long, value_name = "N", value_parser = args::whole::<u64>(0..=args::LARGEST))]
    seed: Option<u64>,
    /// Compute device: flex (CPU), or cuda, vulkan, wgpu, metal, rocm if built in
    #[arg(long, value_name = "NAME[:INDEX]")]
    device: Option<String>,
    /// CPU threads; 0 means one per core
    #[arg(long, value_name = "N", value_parser = args::threads)]
    threads: Option<usize>,
    /// Probability that an Atari frame repeats the previous action (same as `--set env.atari.sticky_actions=…`)
    #[arg(long, value_name = "P", value_parser = args::probability)]
    sticky: Option<f64>,
}

impl ConfigSource {
    fn load(&self) -> rem::Result<rem::config::Config> {
        self.load_over(Vec::new())
    }

    /// Like `load`; the user's own settings win over `overrides`.
    fn load_over(&self, mut overrides: Vec<String>) -> rem::Result<rem::config::Config> {
        overrides.extend(self.overrides());
        let config = rem::config::Config::load(&self.preset, &overrides)?;
        match EnvName::parse(&config.env.game) {
            Ok(EnvName::Atari(_)) | Err(_) => Ok(config),
            Ok(_) if self.sticky.is_none() => Ok(config),
            Ok(_) => Err(ConfigError::new(
                format!(
                    "`--sticky` is for Atari games: `{}` repeats no action",
                    config.env.game
                ),
                "leave it out, or choose an Atari game with `--game`",
            )
            .into()),
        }
    }

    /// The user's own settings, as `key=value`.
    fn overrides(&self) -> Vec<String> {
        let mut overrides = self.set.clone();
        let mut set = |key: &str, value: Option<String>| {
            overrides.extend(value.map(|v| format!("{key}={v}")));
        };
        set("env.game", self.game.clone());
        set("seed", self.seed.map(|v| v.to_string()));
        set("device", self.device.clone());
        set("threads", self.threads.map(|v| v.to_string()));
        set(
            "env.atari.sticky_actions",
            self.sticky.map(|v| v.to_string()),
        );
        overrides
    }
}

/// The user's data directory: `REM_DATA_DIR`, or the platform's default.
fn data_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("REM_DATA_DIR") {
        return Ok(dir.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "rem");
    let dirs = dirs.ok_or_else(|| {
        let message = "there is no home directory for the LPIPS weights";
        rem::Error::from(ConfigError::new(message, "set REM_DATA_DIR to a directory"))
    })?;
    Ok(dirs.data_dir().into())
}

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    print::set_color(cli.color);
    print::set_verbosity(match (cli.quiet, cli.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    });
    if let Some(python) = cli.python {
        rem::env::python::set_interpreter(python);
    }
    #[cfg(feature = "atari")]
    if let Some(dir) = cli.rom_dir {
        rem::env::atari::set_rom_dir(dir);
    }
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // Its reader, such as `head`, has read enough.
        Err(error) if error.downcast_ref().is_some_and(Unprinted::is_closed_pipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// The command line as clap reads it.
fn command() -> clap::Command {
    args::with_negative_numbers(Cli::command())
}

/// Parses the command line. Prints help, version and errors, and returns the exit code then.
fn parse() -> Result<Cli, ExitCode> {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let matches = command().try_get_matches_from(std::env::args_os());
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let error = match parsed {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    let is_version = error.kind() == clap::error::ErrorKind::DisplayVersion;
    if is_version && words.iter().any(|word| word == "--verbose") {
        return Err(match print::text(version::verbose()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                print_error(&error.into());
                ExitCode::FAILURE
            }
        });
    }
    match usage::explain(&error, &command(), &words) {
        Some((message, hint)) => {
            print_lines(&message, Some(&hint));
            Err(ExitCode::from(usage::EXIT_CODE))
        }
        // Help and version.
        None => {
            let _ = error.print();
            Err(ExitCode::from(error.exit_code() as u8))
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Train(args) => train::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Import(command) => import::run(command),
        Command::Config(args) => config::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Report(args) => report::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Play(args) => play::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Episodes(args) => episodes::run(args),
        Command::Runs(args) => runs::run(args),
        Command::ExportAgent(args) => export_agent::run(args),
        Command::Export(args) => export::run(args),
        Command::Completions(args) => completions::completions(args, self::command()),
        Command::Man(args) => completions::man(args, self::command()),
    }
}

/// Prints one `error:` line and, if there is one, a `hint:` line.
fn print_error(error: &anyhow::Error) {
    let rem_error = error.downcast_ref::<rem::Error>();
    if let Some(details) = rem_error.and_then(rem::Error::details) {
        print::notice(details);
    }
    print_lines(&error.to_string(), hint(error).as_deref());
}

fn print_lines(error: &str, hint: Option<&str>) {
    print::notice(format_args!("{} {error}", styled(Style::Error, "error:")));
    if let Some(hint) = hint {
        print::notice(format_args!("{} {hint}", styled(Style::Dim, "hint:")));
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = error.downcast_ref::<rem_report::Error>() {
        return Some(error.hint());
    }
    if let Some(error) = error.downcast_ref::<rem_study::Error>() {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref::<Unprinted>() {
        return Some(error.hint());
    }
    error.downcast_ref::<rem::Error>()?.hint()
}
