//! `rem sweep`: studies of many runs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::progress::plural;

mod cancel;
mod child;
mod collect;
mod compare;
mod new;
mod run;
mod status;
mod task;

/// Train many runs: games x seeds, and variants of config values or presets
///
/// A study is a directory with a manifest, study.toml, which lists every run with its config and does not change, and with
/// the run directories. `run` trains what is missing, in processes on this machine or as an array job on Slurm. Whatever
/// stops it, run it again: finished runs are skipped, interrupted runs continue exactly where their last epoch ended, and
/// no run is trained twice at the same time.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep new runs/paper --preset atari100k --games all --seeds 1..5      the paper's benchmark: 130 runs
  rem sweep run runs/paper --on slurm --partition gpu --gpus 1 --time 24:00:00
  rem sweep status runs/paper --watch
  rem sweep collect runs/paper                                              scores, tables and figures
  rem sweep new runs/try --games catch,paddle --grid actor_critic.entropy_weight=0.001,0.01
  rem sweep run runs/try --jobs 2                                           two runs in parallel on this machine
  rem sweep compare runs/try                                                the variants against the first one

docs/guide/sweeps.md has the details.")]
pub struct SweepArgs {
    #[command(subcommand)]
    command: SweepCommand,
}

#[derive(Subcommand)]
enum SweepCommand {
    New(new::NewArgs),
    Run(run::RunArgs),
    Status(status::StatusArgs),
    Collect(collect::CollectArgs),
    Compare(compare::CompareArgs),
    Cancel(cancel::CancelArgs),
    Task(task::TaskArgs),
    #[command(hide = true)]
    Child(child::ChildArgs),
}

/// The directory of a study.
#[derive(Args)]
struct StudyArg {
    /// Directory of the study
    #[arg(value_name = "STUDY")]
    study: PathBuf,
}

impl StudyArg {
    fn open(&self) -> rem_study::Result<rem_study::Study> {
        rem_study::Study::open(&self.study)
    }
}

pub fn run(args: SweepArgs) -> Result<()> {
    match args.command {
        SweepCommand::New(args) => new::run(args),
        SweepCommand::Run(args) => run::run(args),
        SweepCommand::Status(args) => status::run(args),
        SweepCommand::Collect(args) => collect::run(args),
        SweepCommand::Compare(args) => compare::run(args),
        SweepCommand::Cancel(args) => cancel::run(args),
        SweepCommand::Task(args) => task::run(args),
        SweepCommand::Child(args) => child::run(args),
    }
}
