//! `rem export`: the metrics of a run for other programs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rem::run::trackers::{State, Tracker, Trackers};
use rem::run::{checkpoint, read_config};

use crate::print;

/// Write the metrics of a run as CSV, for Weights & Biases or for MLflow
///
/// Writes all epochs, also of a run that was trained without `--log`, and replaces what an earlier export or the training
/// wrote. Nothing leaves this machine: `wandb sync` uploads an offline run of Weights & Biases, and
/// `mlflow ui --backend-store-uri` shows a file store of MLflow.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem export runs/catch-seed1                          write runs/catch-seed1/metrics.csv
  rem export runs/catch-seed1 --to mlflow              into the file store runs/mlruns
  rem export runs/catch-seed1 --to wandb               into runs/catch-seed1/wandb; upload it with `wandb sync DIR`
  rem export runs/catch-seed1 --to csv,mlflow --out export")]
pub struct ExportArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Formats
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT,…",
        value_delimiter = ',',
        default_value = "csv"
    )]
    to: Vec<Format>,
    /// Directory for all files [default: the run directory, and for MLflow the one above it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// metrics.csv: one row per epoch
    Csv,
    /// An offline run of Weights & Biases
    Wandb,
    /// A run in a file store of MLflow
    Mlflow,
}

pub fn run(args: ExportArgs) -> Result<()> {
    let config = read_config(&args.run)?;
    let mut state = State::read(&args.run)?;
    // A second export replaces the first: the run keeps its identifier.
    if args.out.is_none() {
        state.write(&args.run)?;
    }
    state.log = args.to.iter().map(|format| format.tracker()).collect();
    // Epochs after the last checkpoint are repeated. A run without checkpoints is finished.
    let last = checkpoint::epochs(&args.run).last().copied();
    let last = last.unwrap_or(config.train.epochs);
    let trackers = Trackers::open(&args.run, &state, last, args.out.as_deref())?;
    for path in trackers.paths() {
        print::line(path.display())?;
    }
    print::message(format_args!("{} epochs", trackers.epochs()));
    if last == config.train.epochs {
        for message in trackers.finish() {
            print::message(format_args!("note: {message}"));
        }
    }
    Ok(())
}

impl Format {
    fn tracker(self) -> Tracker {
        match self {
            Self::Csv => Tracker::Csv,
            Self::Wandb => Tracker::Wandb,
            Self::Mlflow => Tracker::Mlflow,
        }
    }
}
