//! `rem export-agent`: writes the agent of a run as a small directory, without what only training needs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::run::{RunDir, read_config};
use rem::train::Export;
use rem_run::layout;

use crate::print;

/// Export the agent of a run, to share it
///
/// Writes a run directory that `rem play`, `rem watch` and `rem eval` read: config, protocol with the agent's origin, scores,
/// logs, the pictures of the last evaluation, the last episodes and the weights in bfloat16. It leaves out what only training needs, such as optimizer moments
/// and the replay, so it is much smaller than the run and cannot be resumed. Rounding the weights may change the score of
/// `rem eval` slightly.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem export-agent runs/catch-seed1 --out catch-agent
  rem play catch-agent
  rem export-agent runs/pong-seed1 --out pong-agent --replay-steps 2000 --command \"rem train --game pong\"")]
pub struct ExportAgentArgs {
    /// Run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Directory to create
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Use the checkpoint of this epoch instead of the last one
    #[arg(long, value_name = "N")]
    epoch: Option<u32>,
    /// Include the last finished episodes of the replay, up to this many steps in all
    #[arg(long, value_name = "N", default_value_t = 64)]
    replay_steps: usize,
    /// The command that trained the run, for the protocol
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
}

pub fn run(args: ExportAgentArgs) -> Result<()> {
    read_config(&args.run)?;
    if args.out.exists() {
        return Err(Error::Run {
            path: args.out,
            reason: "it exists already".into(),
            hint: "choose another directory for `--out`".into(),
        }
        .into());
    }
    let export = Export {
        epoch: args.epoch,
        replay_steps: args.replay_steps,
        command: args.command,
    };
    let exported = export
        .write(&args.run, &RunDir::create(&args.out)?)
        .inspect_err(|_| {
            // Nothing half-written: the directory is ours.
            let _ = std::fs::remove_dir_all(&args.out);
        })?;
    let lock = args.out.join(layout::LOCK);
    std::fs::remove_file(&lock).map_err(Error::io(&lock))?;
    print::line(format_args!(
        "{}: agent of epoch {}, {} episodes, {:.1} MB; try `rem play {}`",
        args.out.display(),
        exported.epoch,
        exported.episodes,
        directory_bytes(&args.out) as f64 / 1e6,
        args.out.display()
    ))?;
    Ok(())
}

/// The length of all files in a directory.
fn directory_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |path: PathBuf| match path.is_dir() {
        true => directory_bytes(&path),
        false => path.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.map(|entry| bytes(entry.path())).sum()
}
