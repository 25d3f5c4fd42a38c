//! The state of every run of a study, from the run directories.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rem::run::{Progress, Scores, checkpoint};
use rem_run::{Owner, TimingLine, layout, parse_lines};
use serde::Serialize;

use crate::study::Study;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has not started, or was interrupted, and is not in a queue.
    Waiting,
    /// It is in the queue of Slurm.
    Queued,
    /// A process trains it.
    Running,
    /// It has a final score.
    Done,
    /// Its last process ended with an error.
    Failed,
}

impl State {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A run in the queue of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRun {
    /// The number of the run.
    pub run: usize,
    /// The job, such as `1234_5`.
    pub job: String,
    /// The state of the job and why it does not start, such as `PENDING (Resources)`.
    pub state: String,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStatus {
    /// The name of the run, which is its directory in the study.
    pub name: String,
    /// What distinguishes it from other runs of the game and seed.
    pub variant: Option<String>,
    /// The game.
    pub game: String,
    /// The seed.
    pub seed: u64,
    /// Its state.
    pub state: State,
    /// Complete epochs.
    pub epoch: u32,
    /// Epochs of the whole run. `None` if the config cannot be read.
    pub epochs: Option<u32>,
    /// The mean return of the last evaluation.
    pub score: Option<f64>,
    /// Estimated time to the end of a run that trains.
    pub seconds_left: Option<f64>,
    /// Why it failed, or why it waits in the queue.
    pub reason: Option<String>,
    /// What to do about a failure.
    pub hint: Option<String>,
    /// The machine that trains it.
    pub host: Option<String>,
    /// The process that trains it.
    pub pid: Option<u32>,
    /// The job of Slurm that trains it, or will.
    pub slurm_job: Option<String>,
}

/// How many runs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// [`State::Waiting`].
    pub waiting: usize,
    /// [`State::Queued`].
    pub queued: usize,
    /// [`State::Running`].
    pub running: usize,
    /// [`State::Done`].
    pub done: usize,
    /// [`State::Failed`].
    pub failed: usize,
}

/// The state of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The name of the study.
    pub study: String,
    /// Runs by state.
    pub counts: Counts,
    /// All runs, in the order of the manifest.
    pub runs: Vec<RunStatus>,
}

impl Status {
    /// Reads the state of all runs. `queue` is what Slurm has of them.
    pub fn read(study: &Study, queue: &[QueuedRun]) -> Self {
        let numbers = 0..study.manifest.runs.len();
        let queued = |run| queue.iter().find(|queued| queued.run == run);
        let runs: Vec<RunStatus> = numbers
            .map(|run| RunStatus::read(study, run, queued(run)))
            .collect();
        let count = |state| runs.iter().filter(|run| run.state == state).count();
        Self {
            study: study.name(),
            counts: Counts {
                waiting: count(State::Waiting),
                queued: count(State::Queued),
                running: count(State::Running),
                done: count(State::Done),
                failed: count(State::Failed),
            },
            runs,
        }
    }

    /// Whether all runs are done.
    pub fn is_complete(&self) -> bool {
        self.counts.done == self.runs.len()
    }

    /// Whether runs train or wait in a queue.
    pub fn is_active(&self) -> bool {
        self.counts.running + self.counts.queued > 0
    }

    /// `6 runs: 2 done, 1 running, 3 waiting`
    pub fn summary(&self) -> String {
        let c = self.counts;
        let states = [
            (State::Done, c.done),
            (State::Running, c.running),
            (State::Queued, c.queued),
            (State::Waiting, c.waiting),
            (State::Failed, c.failed),
        ];
        let present = states.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = present
            .map(|(state, count)| format!("{count} {}", state.name()))
            .collect();
        let plural = if self.runs.len() == 1 { "" } else { "s" };
        format!("{} run{plural}: {}", self.runs.len(), parts.join(", "))
    }
}

/// The state of a run, without what is expensive to read.
pub(crate) fn state_of(study: &Study, run: usize) -> State {
    let dir = study.run_dir(run);
    let scores = Scores::read(&dir).ok().flatten();
    if scores.is_some_and(|scores| scores.final_score.is_some()) {
        State::Done
    } else if Owner::of_run(&dir).is_some() {
        State::Running
    } else if study.failure(run).is_some() {
        State::Failed
    } else {
        State::Waiting
    }
}

/// The number of complete epochs of a run.
pub(crate) fn complete_epochs(dir: &Path) -> u32 {
    checkpoint::epochs(dir).last().copied().unwrap_or(0)
}

impl RunStatus {
    fn read(study: &Study, run: usize, queued: Option<&QueuedRun>) -> Self {
        let dir = study.run_dir(run);
        let entry = &study.manifest.runs[run];
        let scores = Scores::read(&dir).ok().flatten();
        let state = state_of(study, run);
        let state = match (state, queued) {
            (State::Waiting | State::Failed, Some(_)) => State::Queued,
            (state, _) => state,
        };
        let owner = Owner::of_run(&dir).filter(|_| state == State::Running);
        let failure = study.failure(run).filter(|_| state == State::Failed);
        let config = study.config(run).ok();
        let epochs = config.as_ref().map(|config| config.train.epochs);
        let progress = config
            .filter(|_| state == State::Running)
            .and_then(|config| Progress::new(&config, &latest_timings(&dir)).seconds_left);
        let job = queued.map(|queued| queued.job.clone());
        Self {
            name: entry.name.clone(),
            variant: entry.variant.clone(),
            game: entry.game.clone(),
            seed: entry.seed,
            state,
            epoch: complete_epochs(&dir),
            epochs,
            score: scores.and_then(|scores| Some(scores.evaluations.last()?.mean)),
            seconds_left: progress,
            reason: match state {
                State::Failed => failure.as_ref().map(|failure| failure.error.clone()),
                State::Queued => queued.map(|queued| queued.state.clone()),
                _ => None,
            },
            hint: failure.and_then(|failure| failure.hint),
            host: owner.as_ref().map(|owner| owner.host.clone()),
            pid: owner.as_ref().map(|owner| owner.pid),
            slurm_job: owner.and_then(|owner| owner.slurm_job).or(job),
        }
    }
}

/// The latest lines of `timing.jsonl`, so that a long run is read as fast as a short one.
fn latest_timings(dir: &Path) -> Vec<TimingLine> {
    const BYTES: u64 = 1 << 16;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(dir.join(layout::TIMING))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    parse_lines(&read().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Failure, Plan};

    fn study(dir: &Path) -> Study {
        let plan = Plan {
            preset: Some("debug".into()),
            seeds: "1..6".into(),
            ..Plan::default()
        };
        Study::create(dir, plan.manifest().unwrap()).unwrap()
    }

    fn finish(dir: &Path) {
        let score = r#"{"epoch": 4, "steps": 9, "mean": 0.5, "returns": [0.5]}"#;
        let text = format!(
            r#"{{"game": "catch", "seed": 1, "evaluations": [{score}], "final": {score}}}"#
        );
        fs::write(dir.join(layout::SCORES), text).unwrap();
    }

    #[test]
    fn states_follow_from_the_files_of_the_runs() {
        let parent = tempfile::tempdir().unwrap();
        let study = study(&parent.path().join("paper"));
        for run in 0..5 {
            fs::create_dir_all(study.run_dir(run)).unwrap();
        }
        let failure = Failure {
            error: "no space left".into(),
            hint: Some("free some".into()),
        };
        // Done, also if it failed before and its directory is locked.
        finish(&study.run_dir(0));
        study.set_failure(0, &failure);
        // Running, also if it failed before.
        let lock = File::create(study.run_dir(1).join(layout::LOCK)).unwrap();
        Owner::this_process().write(&lock);
        study.set_failure(1, &failure);
        let timing = TimingLine::new(1, "collect", 2.0, 40).to_json_line();
        fs::write(study.run_dir(1).join(layout::TIMING), timing).unwrap();
        study.set_failure(2, &failure);
        // Interrupted after an epoch.
        fs::create_dir_all(checkpoint::directory(&study.run_dir(3), 2)).unwrap();
        study.set_failure(4, &failure);
        let queue = [(4, "7_4"), (0, "7_0")].map(|(run, job)| QueuedRun {
            run,
            job: job.into(),
            state: "PENDING (Resources)".into(),
        });
        let status = Status::read(&study, &queue);
        use State::{Done, Failed, Queued, Running, Waiting};
        let states: Vec<State> = status.runs.iter().map(|run| run.state).collect();
        assert_eq!(states, [Done, Running, Failed, Waiting, Queued, Waiting]);
        assert_eq!(
            status.summary(),
            "6 runs: 1 done, 1 running, 1 queued, 2 waiting, 1 failed"
        );
        assert_eq!(status.study, "paper");
        assert!(status.is_active() && !status.is_complete());
        let [done, running, failed, interrupted, queued, _] = &status.runs[..] else {
            panic!()
        };
        assert_eq!(done.score, Some(0.5));
        assert_eq!(running.pid, Some(std::process::id()));
        assert_eq!(
            running.seconds_left,
            Some(4.0),
            "two more epochs collect for 2 s"
        );
        assert_eq!(failed.reason.as_deref(), Some("no space left"));
        assert_eq!(failed.hint.as_deref(), Some("free some"));
        assert_eq!((interrupted.epoch, interrupted.epochs), (2, Some(4)));
        assert_eq!(queued.reason.as_deref(), Some("PENDING (Resources)"));
        assert_eq!(queued.slurm_job.as_deref(), Some("7_4"));
        for run in 0..6 {
            assert_eq!(
                state_of(&study, run),
                [Done, Running, Failed, Waiting, Failed, Waiting][run]
            );
        }
    }
}
