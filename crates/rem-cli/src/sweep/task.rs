//! `rem sweep task`: what a task of an array job executes.

use anyhow::Result;
use clap::Args;
use rem_study::signals::Stop;
use rem_study::{Error, Pool, Worker, slurm};

use super::StudyArg;
use super::run::{cores, program, show};
use crate::args::{LARGEST, at_least_one, whole};
use crate::print;

/// Train the runs of one task of an array job; for schedulers other than Slurm, too
///
/// Task I trains run I of the study, or with `--runs-per-task K` the runs I·K to I·K+K-1 in parallel, those that are not
/// done. `rem sweep run --on slurm` submits such tasks. On SIGUSR1 or SIGTERM the runs stop at once, and the task can be
/// started again: it continues. On SIGUSR1, which Slurm sends before the time limit, a task of Slurm puts itself back into
/// the queue.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep task runs/paper 7
  seq 0 129 | parallel -j 4 rem sweep task runs/paper {}       GNU parallel
  rem sweep task runs/paper $PBS_ARRAY_INDEX                   in an array job of PBS")]
pub struct TaskArgs {
    #[command(flatten)]
    study: StudyArg,
    /// Number of the task, from 0
    #[arg(value_name = "I", value_parser = whole::<usize>(0..=LARGEST))]
    index: usize,
    /// Runs of a task, which are trained in parallel
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one::<usize>)]
    runs_per_task: usize,
}

pub fn run(args: TaskArgs) -> Result<()> {
    let study = args.study.open()?;
    let stop = Stop::on_signals()?;
    let runs = slurm::group(&study, args.index, args.runs_per_task);
    let worker = Worker {
        program: program()?,
        jobs: args.runs_per_task,
        threads: (slurm::cpus().unwrap_or_else(cores) / args.runs_per_task).max(1),
        gpus: Vec::new(),
    };
    let summary = Pool::new(&study, runs, worker, stop, &mut show).run()?;
    if let Some(signal) = summary.stopped {
        match slurm::this_task().filter(|_| signal.is_warning()) {
            // Otherwise it would be started again and again.
            Some(_) if slurm::restarts() > 0 && !summary.progress => {
                return Err(Error::Slurm {
                    command: "rem sweep task",
                    reason: "no epoch was completed within the time limit".into(),
                    hint: "submit again with a longer `--time`".into(),
                }
                .into());
            }
            Some(task) => {
                slurm::requeue(&task)?;
                print::message(format_args!("requeued {task}"));
            }
            None => {}
        }
        std::process::exit(rem_study::signals::EXIT_STOPPED);
    }
    super::run::check(&study, &summary)
}
