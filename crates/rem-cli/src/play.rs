//! `rem play`: the console, in the page of `rem watch`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::run::read_config;
use rem::threads;

use crate::watch::ServeArgs;

/// Play in the browser: the real game or the agent's dream of it, yourself or by the agent
///
/// Opens a console on the agent of a run's last checkpoint. You play the real game, or inside the world model, from a
/// real start of your choice and as long as you like; or the agent plays either. Pause, step, go back and try another
/// action, change the temperature of the dream, look at what else a token might have been, let the dream forget, and
/// save any of it as a GIF or as an episode file (`rem episodes FILE` reads it).
///
/// The keys are shown on the page. A training of the same run may go on meanwhile.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem play runs/catch-seed1
  rem play runs/catch-seed1 --port 0 --threads 1")]
pub struct PlayArgs {
    /// Directory of the run
    run: PathBuf,
    #[command(flatten)]
    place: ServeArgs,
    /// CPU threads; 0 is one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub fn run(args: PlayArgs) -> Result<()> {
    read_config(&args.run)?;
    threads::set(args.threads)?;
    args.place.serve(vec![args.run], "#/play")
}
