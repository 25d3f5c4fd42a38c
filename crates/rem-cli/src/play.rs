//! `rem play`: serves the play console of the `rem watch` page.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::run::read_config;
use rem::threads::set;

use crate::args::threads;
use crate::watch::ServeArgs;

/// Play in the browser: the real game or the world model, by hand or by the agent
///
/// Serves a console for the agent of a run's last checkpoint. Play the real game or the world model, or let the agent
/// play. A dream starts from a real frame of your choice and can continue indefinitely. You can pause, step, go
/// back and try another action, change the sampling temperature, inspect the distribution of each token, reset the
/// world model's state, and save a recording as a GIF or as an episode file for `rem episodes`.
///
/// The page lists the keyboard shortcuts. The run may keep training in the meantime.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem play runs/catch-seed1                           the agent of the last checkpoint
  rem play runs/catch-seed1 --port 0 --threads 1      on a free port, one thread, while a run trains")]
pub struct PlayArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    serve: ServeArgs,
    /// CPU threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    threads: usize,
}

pub fn run(args: PlayArgs) -> Result<()> {
    read_config(&args.run)?;
    set(args.threads)?;
    args.serve.run(vec![args.run], "#/play")
}
