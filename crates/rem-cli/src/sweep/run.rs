//! `rem sweep run`: trains what is missing of a study.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rem_study::signals::{EXIT_STOPPED, Stop};
use rem_study::slurm::{self, Resources};
use rem_study::{Error, Event, Pool, RunningPool, Status, Study, Summary, Worker};

use super::{StudyArg, plural};
use crate::args::at_least_one;
use crate::print;

/// Train the runs of a study that are missing
///
/// On this machine (`--on local`), runs are processes: `--jobs` at the same time, with the cores divided among them. Ctrl-C
/// stops them at once. With `--on slurm`, one array job is submitted, whose tasks stop before the time limit and requeue
/// themselves. In both cases, finished runs are skipped and interrupted runs continue with their last complete epoch. A run
/// that fails does not affect the others.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep run runs/paper                                          one run after the other, on all cores
  rem sweep run runs/paper --jobs 8                                 eight runs in parallel
  rem sweep run runs/paper --gpus 0,1 --runs-per-gpu 2              four runs in parallel on two GPUs
  rem sweep run runs/paper --on slurm --partition gpu --gpus 1 --cpus 8 --time 24:00:00 --max-tasks 20
  rem sweep run runs/paper --on slurm --gpus 1 --runs-per-gpu 3 --lines cluster.sh

A run is locked while it is trained, with flock(2), also between machines on NFS and on Lustre mounted with `-o flock`.
docs/guide/sweeps.md says how to test other file systems.")]
pub struct RunArgs {
    #[command(flatten)]
    study: StudyArg,
    /// Where to train
    #[arg(long, value_enum, default_value = "local")]
    on: Place,
    /// Local: parallel runs [default: GPUs times runs per GPU, else 1]
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>)]
    jobs: Option<usize>,
    /// Local: indices of GPUs, such as `0,1`, assigned to the runs in turn. Slurm: GPUs of a task, such as `1` or `a100:1`
    #[arg(long, value_name = "GPUS")]
    gpus: Option<String>,
    /// Runs that share a GPU, or a task of Slurm, in parallel
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one::<usize>)]
    runs_per_gpu: usize,
    #[command(flatten)]
    slurm: SlurmArgs,
}

/// Options that only Slurm has.
#[derive(Args)]
#[command(next_help_heading = "Slurm")]
struct SlurmArgs {
    /// Partition
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Time limit of a task, such as 24:00:00; a run that takes longer is continued in the next task
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// CPUs of a task [default: the runs' threads, or 1, times runs per GPU]
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>)]
    cpus: Option<usize>,
    /// Memory of a task, such as 16G
    #[arg(long, value_name = "SIZE")]
    mem: Option<String>,
    /// Most tasks at the same time (`%N` of the array)
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>)]
    max_tasks: Option<usize>,
    /// File of further lines for the job script: `#SBATCH` options, and commands to run first, such as `module load cuda`
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// Processes on this machine
    Local,
    /// An array job
    Slurm,
}

pub fn run(args: RunArgs) -> Result<()> {
    let study = args.study.open()?;
    match args.on {
        Place::Local => local(&study, args),
        Place::Slurm => submit(&study, args),
    }
}

fn local(study: &Study, args: RunArgs) -> Result<()> {
    args.slurm.refuse()?;
    let gpus = args.gpus.as_deref().unwrap_or_default().split(',');
    let gpus = gpus.map(|gpu| gpu.trim().to_owned());
    let gpus: Vec<String> = gpus.filter(|gpu| !gpu.is_empty()).collect();
    let jobs = args.jobs.unwrap_or((gpus.len() * args.runs_per_gpu).max(1));
    let worker = Worker {
        program: program()?,
        jobs,
        threads: (cores() / jobs).max(1),
        gpus,
    };
    let stop = Stop::on_signals()?;
    let known = RunningPool::register(study)?;
    let all = 0..study.manifest.runs.len();
    let summary = Pool::new(study, all, worker, stop, &mut show).run()?;
    // Before this process exits, which drops nothing.
    drop(known);
    if summary.stopped.is_some() {
        print::message(format_args!(
            "stopped; continue with `rem sweep run {}`",
            study.dir().display()
        ));
        std::process::exit(EXIT_STOPPED);
    }
    check(study, &summary)?;
    print::line(Status::read(study, &[]).summary())?;
    Ok(())
}

fn submit(study: &Study, args: RunArgs) -> Result<()> {
    if args.jobs.is_some() {
        return Err(Error::Argument {
            message: "`--jobs` is for `--on local`".into(),
            hint: "`--max-tasks` limits the tasks of Slurm that run at the same time".into(),
        }
        .into());
    }
    let threads = study.config(0)?.threads.max(1);
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file);
        text.map_err(|error| Error::Io { path: file, error })
    };
    let lines = args.slurm.lines.map(read).transpose()?.unwrap_or_default();
    // The script has its own first line.
    let lines = lines.lines().filter(|line| !line.starts_with("#!"));
    let resources = Resources {
        partition: args.slurm.partition,
        account: args.slurm.account,
        time: args.slurm.time,
        gpus: args.gpus,
        cpus: args.slurm.cpus.unwrap_or(threads * args.runs_per_gpu),
        memory: args.slurm.mem,
        runs_per_task: args.runs_per_gpu,
        max_tasks: args.slurm.max_tasks,
        lines: lines.map(Into::into).collect(),
    };
    let jobs = slurm::submit(study, program()?, &resources)?;
    if jobs.is_empty() {
        let queue = slurm::queue(study)?;
        print::line(format_args!(
            "nothing to submit: {}",
            Status::read(study, &queue).summary()
        ))?;
        return Ok(());
    }
    for job in jobs {
        print::line(format_args!(
            "submitted job {}, tasks {}",
            job.job, job.array
        ))?;
    }
    let dir = study.dir().display();
    print::message(format_args!(
        "follow it with `rem sweep status {dir} --watch`"
    ));
    Ok(())
}

impl SlurmArgs {
    /// An error if there is an option, for `--on local`.
    fn refuse(&self) -> Result<(), Error> {
        let given = [
            ("--partition", self.partition.is_some()),
            ("--account", self.account.is_some()),
            ("--time", self.time.is_some()),
            ("--cpus", self.cpus.is_some()),
            ("--mem", self.mem.is_some()),
            ("--max-tasks", self.max_tasks.is_some()),
            ("--lines", self.lines.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::Argument {
                message: format!("`{option}` is for `--on slurm`"),
                hint: "add `--on slurm`, or leave it out".into(),
            }),
            None => Ok(()),
        }
    }
}

/// The path of this program.
pub fn program() -> Result<PathBuf> {
    let error = |error| Error::Io {
        path: "rem".into(),
        error,
    };
    Ok(std::env::current_exe().map_err(error)?)
}

/// The cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Prints the events of a pool.
pub fn show(event: Event) {
    match event {
        Event::Started { run, epoch: 0 } => print::message(format_args!("{run}: started")),
        Event::Started { run, epoch } => {
            print::message(format_args!("{run}: continued after epoch {epoch}"))
        }
        Event::Interrupted { run, how } => {
            print::message(format_args!("{run}: {how}; starting it again"))
        }
        Event::Done { run, score } => {
            let score = score.map_or_else(String::new, |score| format!(", mean return {score:.3}"));
            print::message(format_args!("{run}: done{score}"));
        }
        Event::Failed { run, failure } => {
            print::message(format_args!("{run}: failed: {}", failure.error))
        }
        Event::Elsewhere { run, owner } => {
            let by = owner.map_or_else(String::new, |owner| {
                format!(" (process {} on {})", owner.pid, owner.host)
            });
            print::message(format_args!("{run}: another process trains it{by}"));
        }
        Event::Stopping(signal) => {
            print::message(format_args!("{}: stopping all runs", signal.name()))
        }
    }
}

/// An error if runs failed; a note if others train some.
pub fn check(study: &Study, summary: &Summary) -> Result<()> {
    if !summary.elsewhere.is_empty() {
        print::message(format_args!(
            "{} left to other processes; `rem sweep status {}` follows them",
            plural(summary.elsewhere.len(), "run"),
            study.dir().display()
        ));
    }
    let names: Vec<&str> = summary
        .failed
        .iter()
        .map(|run| study.manifest.runs[*run].name.as_str())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Error::Study {
        path: study.dir().into(),
        reason: format!(
            "{} failed: {}",
            plural(names.len(), "run"),
            names.join(", ")
        ),
        hint: format!(
            "`rem sweep status {}` has the reasons; after mending them, run the same command again",
            study.dir().display()
        ),
    }
    .into())
}
