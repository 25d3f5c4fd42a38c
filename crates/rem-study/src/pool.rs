//! Trains runs of a study in parallel processes on this machine.
//!
//! A run is a process of its own, so that one which is killed or runs out of memory does not take others with it, and
//! each has its own threads and GPU. The pool knows nothing that the run directories do not: it can die at any time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rem::run::Scores;
use rem_run::{Owner, files};

use crate::error::{Error, Result};
use crate::signals::{EXIT_STOPPED, Signal, Stop};
use crate::status::{State, complete_epochs, state_of};
use crate::study::{Failure, Study};

/// Time between two looks at the processes.
const POLL: Duration = Duration::from_millis(20);

/// A run that another process trains is tried again this often …
const RETRY: Duration = Duration::from_secs(2);
/// … for this long after all others are over: a process that was told to end may take a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a run is started that another process has locked without being known as its owner.
const STARTS_WHILE_LOCKED: u32 = 15;

/// The exit code of a process that found its run locked: `EX_CANTCREAT` of sysexits.h.
pub const EXIT_LOCKED: i32 = 73;

/// Processes that are told to stop are killed after this time.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How often a run is started without completing another epoch before it counts as failed.
const STARTS_WITHOUT_PROGRESS: u32 = 3;

/// How processes are started.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The program `rem`.
    pub program: PathBuf,
    /// Parallel runs.
    pub jobs: usize,
    /// Threads of each run.
    pub threads: usize,
    /// Values of `CUDA_VISIBLE_DEVICES` and the like, for one slot after the other. Without any, runs inherit them.
    pub gpus: Vec<String>,
}

/// Progress of a pool, for a user interface.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run starts, or continues after so many epochs.
    Started {
        /// The name of the run.
        run: &'a str,
        /// Complete epochs.
        epoch: u32,
    },
    /// A process ended without an error and without finishing its run, which starts again.
    Interrupted {
        /// The name of the run.
        run: &'a str,
        /// How the process ended.
        how: String,
    },
    /// A run has a final score.
    Done {
        /// The name of the run.
        run: &'a str,
        /// The score.
        score: Option<f64>,
    },
    /// A run ended with an error. The others continue.
    Failed {
        /// The name of the run.
        run: &'a str,
        /// The error.
        failure: &'a Failure,
    },
    /// Another process trains a run.
    Elsewhere {
        /// The name of the run.
        run: &'a str,
        /// The process, if known.
        owner: Option<Owner>,
    },
    /// The pool tells its processes to stop.
    Stopping(Signal),
}

/// How a pool ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that failed in this pool.
    pub failed: Vec<usize>,
    /// Runs that another process trains.
    pub elsewhere: Vec<usize>,
    /// The signal that stopped the pool.
    pub stopped: Option<Signal>,
    /// Whether a run completed an epoch.
    pub progress: bool,
}

/// Trains runs of a study.
pub struct Pool<'a> {
    study: &'a Study,
    worker: Worker,
    stop: Stop,
    listener: &'a mut dyn FnMut(Event),
    waiting: VecDeque<usize>,
    running: Vec<Process>,
    /// Runs that another process trains.
    elsewhere: Vec<usize>,
    /// Starts of each run since its last complete epoch, and the number of that epoch.
    starts: Vec<(u32, u32)>,
    /// How often each run was found locked.
    locked: Vec<u32>,
    summary: Summary,
}

/// A process that trains a run.
struct Process {
    run: usize,
    child: Child,
    /// Its place among the parallel runs.
    slot: usize,
}

impl<'a> Pool<'a> {
    /// A pool for those of `runs` that are not done.
    pub fn new(
        study: &'a Study,
        runs: impl IntoIterator<Item = usize>,
        worker: Worker,
        stop: Stop,
        listener: &'a mut dyn FnMut(Event),
    ) -> Self {
        let missing = |run: &usize| state_of(study, *run) != State::Done;
        Self {
            waiting: runs.into_iter().filter(missing).collect(),
            running: Vec::new(),
            elsewhere: Vec::new(),
            starts: vec![(0, 0); study.manifest.runs.len()],
            locked: vec![0; study.manifest.runs.len()],
            summary: Summary::default(),
            study,
            worker,
            stop,
            listener,
        }
    }

    /// Trains until every run is done, failed or trained by another process, or a signal stops this one. Runs on the
    /// main thread: on Linux, processes end with the thread that started them.
    ///
    /// # Errors
    ///
    /// If a process or its log cannot be started. Processes that run are stopped.
    pub fn run(mut self) -> Result<Summary> {
        let result = self.work();
        if result.is_err() || self.stop.signal().is_some() {
            self.stop_all();
        }
        result.map(|()| Summary {
            elsewhere: self.elsewhere,
            stopped: self.stop.signal(),
            ..self.summary
        })
    }

    fn work(&mut self) -> Result<()> {
        let mut idle_since = Instant::now();
        let mut tried = Instant::now();
        while self.stop.signal().is_none() {
            while self.running.len() < self.worker.jobs
                && self.stop.signal().is_none()
                && let Some(run) = self.waiting.pop_front()
            {
                self.start(run)?;
            }
            self.reap()?;
            if !self.running.is_empty() || !self.waiting.is_empty() {
                idle_since = Instant::now();
            } else if self.elsewhere.is_empty() || idle_since.elapsed() > PATIENCE {
                break;
            }
            if tried.elapsed() > RETRY {
                tried = Instant::now();
                self.retry_elsewhere();
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Moves runs that nobody trains any more back to those that wait.
    fn retry_elsewhere(&mut self) {
        let study = self.study;
        let taken = std::mem::take(&mut self.elsewhere).into_iter();
        for run in taken {
            match state_of(study, run) {
                State::Done => {}
                State::Running => self.elsewhere.push(run),
                _ if self.locked[run] >= STARTS_WHILE_LOCKED => self.elsewhere.push(run),
                _ => self.waiting.push_back(run),
            }
        }
    }

    fn start(&mut self, run: usize) -> Result<()> {
        let dir = self.study.run_dir(run);
        if state_of(self.study, run) == State::Done {
            return Ok(());
        }
        if let Some(owner) = Owner::of_run(&dir) {
            self.is_elsewhere(run, Some(owner));
            return Ok(());
        }
        let epoch = complete_epochs(&dir);
        let (starts, last) = &mut self.starts[run];
        if epoch > *last {
            *starts = 0;
        }
        (*starts, *last) = (*starts + 1, epoch);
        let taken: Vec<usize> = self.running.iter().map(|process| process.slot).collect();
        let slot = (0..).find(|slot| !taken.contains(slot));
        let slot = slot.expect("some number is free");
        self.study.clear_failure(run);
        let child = self.command(run, slot)?.spawn();
        let child = child.map_err(Error::io(&self.worker.program))?;
        self.running.push(Process { run, child, slot });
        let run = &self.study.manifest.runs[run].name;
        (self.listener)(Event::Started { run, epoch });
        Ok(())
    }

    fn is_elsewhere(&mut self, run: usize, owner: Option<Owner>) {
        self.elsewhere.push(run);
        let run = &self.study.manifest.runs[run].name;
        (self.listener)(Event::Elsewhere { run, owner });
    }

    /// `rem sweep child STUDY RUN`, with its output appended to the log of the run.
    fn command(&self, run: usize, slot: usize) -> Result<Command> {
        let log = self.study.log_file(run);
        let parent = files::parent(&log);
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let log_file = File::options().create(true).append(true).open(&log);
        let log_file = log_file.map_err(Error::io(&log))?;
        let errors = log_file.try_clone().map_err(Error::io(&log))?;
        let mut command = Command::new(&self.worker.program);
        command
            .args(["sweep", "child"])
            .arg(self.study.dir())
            .arg(&self.study.manifest.runs[run].name)
            .args(["--threads", &self.worker.threads.to_string()])
            .args(["--parent", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(log_file)
            .stderr(errors);
        if !self.worker.gpus.is_empty() {
            let gpu = &self.worker.gpus[slot % self.worker.gpus.len()];
            for variable in ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"] {
                command.env(variable, gpu);
            }
        }
        Ok(command)
    }

    /// Looks after processes that have ended.
    fn reap(&mut self) -> Result<()> {
        let mut ended = Vec::new();
        for (i, process) in self.running.iter_mut().enumerate() {
            if let Some(status) = process
                .child
                .try_wait()
                .map_err(Error::io(&self.worker.program))?
            {
                ended.push((i, status));
            }
        }
        for (i, status) in ended.into_iter().rev() {
            let process = self.running.remove(i);
            self.ended(process.run, status);
        }
        Ok(())
    }

    fn ended(&mut self, run: usize, status: ExitStatus) {
        let study = self.study;
        let dir = study.run_dir(run);
        if status.code() == Some(EXIT_LOCKED) {
            self.locked[run] += 1;
            self.starts[run].0 -= 1;
            return self.is_elsewhere(run, Owner::of_run(&dir));
        }
        let (starts, epoch_at_start) = self.starts[run];
        let progress = complete_epochs(&dir) > epoch_at_start;
        self.summary.progress |= progress;
        let name = &study.manifest.runs[run].name;
        match state_of(study, run) {
            State::Done => {
                let scores = Scores::read(&dir).ok().flatten();
                let score = scores.and_then(|scores| Some(scores.final_score?.mean));
                (self.listener)(Event::Done { run: name, score });
            }
            State::Running => self.is_elsewhere(run, Owner::of_run(&dir)),
            State::Failed => self.failed(run),
            State::Waiting | State::Queued if self.stop.signal().is_some() => {}
            State::Waiting | State::Queued => {
                let how = describe(status);
                if starts >= STARTS_WITHOUT_PROGRESS && !progress {
                    let failure = Failure {
                        error: format!("its process ended {starts} times within an epoch: {how}"),
                        hint: Some(format!(
                            "see `{}`; a process that is killed without a message may have run out of memory",
                            study.log_file(run).display()
                        )),
                    };
                    study.set_failure(run, &failure);
                    self.failed(run);
                } else {
                    (self.listener)(Event::Interrupted { run: name, how });
                    self.waiting.push_front(run);
                }
            }
        }
    }

    fn failed(&mut self, run: usize) {
        self.summary.failed.push(run);
        let failure = self.study.failure(run).unwrap_or_else(|| Failure {
            error: "it failed, and the reason could not be written".into(),
            hint: Some(format!("see `{}`", self.study.log_file(run).display())),
        });
        (self.listener)(Event::Failed {
            run: &self.study.manifest.runs[run].name,
            failure: &failure,
        });
    }

    /// Tells all processes to stop, and waits for them.
    fn stop_all(&mut self) {
        if let Some(signal) = self.stop.signal() {
            (self.listener)(Event::Stopping(signal));
        }
        for process in &self.running {
            crate::signals::terminate(process.child.id());
        }
        let started = Instant::now();
        while !self.running.is_empty() && self.reap().is_ok() {
            if started.elapsed() > STOP_WITHIN {
                for process in &mut self.running {
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                }
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How a process ended.
fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(EXIT_STOPPED) => "stopped by a signal".into(),
        Some(code) => format!("exit code {code}"),
        None => format!("killed ({status})"),
    }
}
