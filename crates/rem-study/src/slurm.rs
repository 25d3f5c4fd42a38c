//! Studies on Slurm: one array job, whose tasks are pools.
//!
//! Task `g` of a study with `k` runs per task trains the runs `g * k` to `g * k + k - 1` that are not done when it starts.
//! Nothing else is stored, so a task that is requeued, or submitted again, continues what is there.

mod script;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rem_run::files;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::status::{QueuedRun, State, state_of};
use crate::study::Study;
use script::script;

/// Tasks per array job: the largest index that Slurm accepts by default is 1000 (`MaxArraySize`).
const TASKS_PER_JOB: usize = 1000;

/// The warning comes two minutes before the end.
const REQUEUE_WITHIN: Duration = Duration::from_secs(60);

/// The list of submitted jobs.
const JOBS: &str = "jobs.jsonl";
/// The last job script.
const SCRIPT: &str = "job.sh";

/// What a task asks for.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The time limit of a task, in Slurm's form. A task that reaches it is requeued.
    pub time: Option<String>,
    /// GPUs of a task.
    pub gpus: Option<String>,
    /// CPUs of a task.
    pub cpus: usize,
    /// Memory of a task, in Slurm's form.
    pub memory: Option<String>,
    /// Runs that share a task, and its GPU, in parallel.
    pub runs_per_task: usize,
    /// Most tasks at the same time.
    pub max_tasks: Option<usize>,
    /// Further lines of the job script: `#SBATCH` options, and commands that run first.
    pub lines: Vec<String>,
}

/// A submitted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// Its number.
    pub job: String,
    /// The group of runs of its task 0.
    pub offset: usize,
    /// Runs per task.
    pub runs_per_task: usize,
    /// The tasks, as in `--array`.
    pub array: String,
}

/// The runs of a group.
pub fn group(study: &Study, group: usize, runs_per_task: usize) -> std::ops::Range<usize> {
    let count = study.manifest.runs.len();
    let first = group.saturating_mul(runs_per_task).min(count);
    first..first.saturating_add(runs_per_task).min(count)
}

/// Submits array jobs for all runs that are neither done, nor trained by a process, nor in the queue.
///
/// # Errors
///
/// If Slurm is not installed or refuses, or a file cannot be written.
pub fn submit(study: &Study, program: PathBuf, resources: &Resources) -> Result<Vec<Submitted>> {
    let dir = study.slurm_dir();
    std::fs::create_dir_all(&dir).map_err(Error::io(&dir))?;
    let _only_one = lock(study)?;
    let queued: BTreeSet<usize> = queue(study)?.into_iter().map(|queued| queued.run).collect();
    let size = resources.runs_per_task;
    let missing = |run: &usize| {
        !queued.contains(run) && matches!(state_of(study, *run), State::Waiting | State::Failed)
    };
    let groups: BTreeSet<usize> = (0..study.manifest.runs.len())
        .filter(missing)
        .map(|run| run / size)
        .collect();
    let mut submitted = Vec::new();
    for (offset, tasks) in arrays(&groups) {
        let mut array = ranges(&tasks);
        if let Some(most) = resources.max_tasks {
            array.push_str(&format!("%{most}"));
        }
        let text = script(study, &program, resources, &array, offset)?;
        let file = dir.join(SCRIPT);
        files::write_atomic(&file, text.as_bytes()).map_err(rem::Error::File)?;
        let output = run(
            "sbatch",
            Command::new("sbatch").arg("--parsable").arg(&file),
        )?;
        // `JOB` or `JOB;CLUSTER`.
        let job = output.trim().split(';').next().unwrap_or_default();
        let job = Submitted {
            job: job.into(),
            offset,
            runs_per_task: size,
            array,
        };
        record(study, &job)?;
        submitted.push(job);
    }
    Ok(submitted)
}

/// Groups of runs as tasks of jobs, each with the group of its task 0.
fn arrays(groups: &BTreeSet<usize>) -> Vec<(usize, Vec<usize>)> {
    let mut arrays: Vec<(usize, Vec<usize>)> = Vec::new();
    for group in groups {
        let offset = group / TASKS_PER_JOB * TASKS_PER_JOB;
        match arrays.last_mut() {
            Some((last, tasks)) if *last == offset => tasks.push(group - offset),
            _ => arrays.push((offset, vec![group - offset])),
        }
    }
    arrays
}

/// `0-3,7` for 0, 1, 2, 3 and 7.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let parts = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Keeps two processes from submitting the same runs.
fn lock(study: &Study) -> Result<File> {
    let file = study.slurm_dir().join(".lock");
    let lock = File::create(&file).map_err(Error::io(&file))?;
    lock.lock().map_err(Error::io(&file))?;
    Ok(lock)
}

fn record(study: &Study, job: &Submitted) -> Result<()> {
    let file = study.slurm_dir().join(JOBS);
    let line = serde_json::to_string(job).expect("strings and numbers are valid JSON");
    let opened = File::options().create(true).append(true).open(&file);
    let written = opened.and_then(|mut jobs| {
        writeln!(jobs, "{line}")?;
        jobs.sync_all()
    });
    written.map_err(Error::io(&file))
}

/// The jobs that were submitted for a study, finished ones included. None if the file does not exist yet; one that cannot
/// be read is an error, because submitted tasks would be submitted again.
fn submitted(study: &Study) -> Result<Vec<Submitted>> {
    let file = study.slurm_dir().join(JOBS);
    match std::fs::read(&file) {
        Ok(text) => Ok(rem_run::parse_lines(&text).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(&file)(error)),
    }
}

/// The runs of a study that wait in the queue, or whose tasks run.
///
/// # Errors
///
/// If jobs were submitted, and Slurm does not answer, or if their list cannot be read.
pub fn queue(study: &Study) -> Result<Vec<QueuedRun>> {
    let jobs = submitted(study)?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let name = format!("--name={}", script::job_name(study));
    let output = run(
        "squeue",
        Command::new("squeue").args(["--noheader", "--array", &name, "--format=%F|%K|%T|%r"]),
    )?;
    let mut runs = Vec::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.trim().splitn(4, '|').collect();
        let [id, task, state, reason] = fields[..] else {
            continue;
        };
        let job = jobs.iter().find(|job| job.job == id);
        let (Some(job), Ok(task)) = (job, task.parse::<usize>()) else {
            continue;
        };
        // It ends, and does not start another run.
        if state == "COMPLETING" {
            continue;
        }
        let state = match reason {
            "None" | "" => state.to_lowercase(),
            reason => format!("{} ({reason})", state.to_lowercase()),
        };
        runs.extend(
            group(study, job.offset + task, job.runs_per_task).map(|run| QueuedRun {
                run,
                job: format!("{id}_{task}"),
                state: state.clone(),
            }),
        );
    }
    Ok(runs)
}

/// Cancels all jobs of a study. Returns the numbers of those that were in the queue.
///
/// # Errors
///
/// If Slurm does not answer.
pub fn cancel(study: &Study) -> Result<Vec<String>> {
    let job = |queued: QueuedRun| queued.job.split('_').next().unwrap_or_default().to_owned();
    let jobs: BTreeSet<String> = queue(study)?.into_iter().map(job).collect();
    if !jobs.is_empty() {
        run("scancel", Command::new("scancel").args(&jobs))?;
    }
    Ok(jobs.into_iter().collect())
}

/// The task of an array job that this process is, as Slurm names it.
pub fn this_task() -> Option<String> {
    let variable = |name| std::env::var(name).ok();
    let job = variable("SLURM_ARRAY_JOB_ID")?;
    Some(format!("{job}_{}", variable("SLURM_ARRAY_TASK_ID")?))
}

/// How often this task has been started again.
pub fn restarts() -> u32 {
    let count = std::env::var("SLURM_RESTART_COUNT").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// CPUs of this task, if Slurm says.
pub fn cpus() -> Option<usize> {
    std::env::var("SLURM_CPUS_PER_TASK").ok()?.parse().ok()
}

/// Puts this task back into the queue. Slurm then ends this process. Tries for a minute: while a job starts, or the
/// controller is busy, Slurm refuses.
///
/// # Errors
///
/// If Slurm still refuses.
pub fn requeue(task: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let answer = run("scontrol", Command::new("scontrol").args(["requeue", task]));
        if answer.is_ok() || started.elapsed() > REQUEUE_WITHIN {
            return answer.map(drop);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The output of a command of Slurm.
fn run(name: &'static str, command: &mut Command) -> Result<String> {
    let failed = |reason: String, hint: &str| Error::Slurm {
        command: name,
        reason,
        hint: hint.into(),
    };
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => failed(
            "there is no such program".into(),
            "Slurm is not installed on this machine; `--on local` trains here",
        ),
        _ => failed(error.to_string(), "check the installation of Slurm"),
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    let lines = text.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix(&format!("{name}: error: "))
            .unwrap_or(line)
    });
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let hint = match name {
        "sbatch" => {
            "check --partition, --account, --time and the other resources; nothing was submitted"
        }
        _ => "check that Slurm is up with `sinfo`",
    };
    Err(failed(text.join("; "), hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn groups_cover_all_runs() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            preset: Some("debug".into()),
            seeds: "1..5".into(),
            ..Plan::default()
        };
        let study = Study::create(dir.path(), plan.manifest().unwrap()).unwrap();
        assert_eq!(group(&study, 0, 2), 0..2);
        assert_eq!(group(&study, 2, 2), 4..5);
        assert_eq!(group(&study, 3, 2), 5..5);
        assert_eq!(group(&study, usize::MAX, 2), 5..5);
    }

    #[test]
    fn an_unreadable_list_of_jobs_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            preset: Some("debug".into()),
            seeds: "1".into(),
            ..Plan::default()
        };
        let study = Study::create(dir.path(), plan.manifest().unwrap()).unwrap();
        assert_eq!(submitted(&study).unwrap(), []);
        // A directory cannot be read as a file.
        std::fs::create_dir_all(study.slurm_dir().join(JOBS)).unwrap();
        assert!(queue(&study).unwrap_err().to_string().contains(JOBS));
    }

    #[test]
    fn tasks_are_ranges_of_at_most_a_thousand_per_job() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
        assert_eq!(ranges(&[5]), "5");
        let groups = BTreeSet::from([0, 999, 1000, 2500]);
        assert_eq!(
            arrays(&groups),
            [(0, vec![0, 999]), (1000, vec![0]), (2000, vec![500])]
        );
        assert!(arrays(&BTreeSet::new()).is_empty());
    }
}
