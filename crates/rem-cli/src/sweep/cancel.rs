//! `rem sweep cancel`: stops a study.

use anyhow::Result;
use clap::Args;
use rem_study::{State, Status, slurm, stop_pools};

use super::{StudyArg, plural};
use crate::print;

/// Stop the runs of a study
///
/// Stops pools on this machine, and cancels all jobs of the study on Slurm. Nothing is lost but the epochs that have
/// started: `rem sweep run` continues.
#[derive(Args)]
pub struct CancelArgs {
    #[command(flatten)]
    study: StudyArg,
}

pub fn run(args: CancelArgs) -> Result<()> {
    let study = args.study.open()?;
    let pools = stop_pools(&study);
    if pools > 0 {
        print::line(format_args!(
            "stopped {} on this machine",
            plural(pools, "pool")
        ))?;
    }
    let jobs = slurm::cancel(&study)?;
    if !jobs.is_empty() {
        print::line(format_args!("cancelled {}", jobs.join(", ")))?;
        return Ok(());
    }
    let status = Status::read(&study, &[]);
    for run in status.runs.iter().filter(|run| run.state == State::Running) {
        print::note(format_args!(
            "{} is still trained by process {} on {}; stop it there",
            run.name,
            run.pid.unwrap_or_default(),
            run.host.as_deref().unwrap_or("an unknown machine")
        ));
    }
    if pools == 0 {
        print::line(format_args!("nothing to stop: {}", status.summary()))?;
    }
    Ok(())
}
