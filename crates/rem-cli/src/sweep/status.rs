//! `rem sweep status`: the state of every run.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use rem_study::{RunStatus, State, Status, Study, slurm};

use super::StudyArg;
use crate::args::whole;
use crate::print;
use crate::progress::duration;
use crate::table::Table;

/// Show the state of every run of a study
///
/// A run is waiting, queued (by Slurm), running (with its epoch and estimated time left), done (with its score) or failed
/// (with the reason). States are read from the run directories, also while other machines train.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep status runs/paper
  rem sweep status runs/paper --watch            until no run trains or waits in a queue
  rem sweep status runs/paper --json             one JSON object
  rem watch runs/paper                           the same in the browser, as a grid of games and seeds")]
pub struct StatusArgs {
    #[command(flatten)]
    study: StudyArg,
    /// Repeat until no run trains or waits in a queue
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Seconds between two looks with `--watch`
    #[arg(long, value_name = "N", default_value_t = 5, requires = "watch", value_parser = whole::<u64>(1..=86_400))]
    interval: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: StatusArgs) -> Result<()> {
    let study = args.study.open()?;
    let status = read(&study);
    if args.json {
        print::line(serde_json::to_string(&status)?)?;
        return Ok(());
    }
    if !args.watch {
        print::text(table(&status))?;
        return Ok(());
    }
    let is_terminal = std::io::stdout().is_terminal();
    let mut last = String::new();
    loop {
        let status = read(&study);
        if is_terminal {
            // Clears the screen.
            print::text(format_args!("\x1b[2J\x1b[H{}", table(&status)))?;
        } else if status.summary() != last {
            print::line(status.summary())?;
        }
        last = status.summary();
        if !status.is_active() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(args.interval));
    }
}

/// The status, also without an answer of Slurm.
fn read(study: &Study) -> Status {
    let queue = slurm::queue(study).unwrap_or_else(|error| {
        print::note(format_args!("{error}; queued runs are shown as waiting"));
        Vec::new()
    });
    Status::read(study, &queue)
}

fn table(status: &Status) -> String {
    let mut table = Table::new(&["run", "state", "epoch", "return", ""], 2);
    for run in &status.runs {
        let epochs = run.epochs.map_or_else(|| "?".into(), |n| n.to_string());
        table.push(vec![
            run.name.clone(),
            run.state.name().into(),
            format!("{} / {epochs}", run.epoch),
            run.score
                .map_or_else(|| "–".into(), |score| format!("{score:.2}")),
            remark(run),
        ]);
    }
    format!("{}{}\n", table.terminal(), status.summary())
}

/// What is worth knowing about a run in its state.
fn remark(run: &RunStatus) -> String {
    let left = run
        .seconds_left
        .map(|seconds| format!("{} left", duration(seconds)));
    let job = run.slurm_job.as_ref().map(|job| format!("job {job}"));
    let place = match run.state {
        State::Running => job.or_else(|| {
            let host = run.host.as_ref()?;
            Some(format!("process {} on {host}", run.pid?))
        }),
        State::Queued => job,
        _ => None,
    };
    let parts = [left, place, run.reason.clone(), run.hint.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}
