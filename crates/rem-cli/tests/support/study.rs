//! Studies and a Slurm cluster for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Files, rem, reproducible_files, stdout, succeeds};

/// Six runs: three games and two seeds. 30 epochs with every phase, evaluations after 10, 20 and 30.
pub const STUDY: &str = "--preset debug --games catch,paddle,crossing --seeds 1..2 --threads 1 \
    --set train.epochs=30 --set collect.epochs=20 --set evaluate.every=10 --set evaluate.final_episodes=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0";

/// Their directories.
pub const RUNS: [&str; 6] = [
    "catch-seed1",
    "paddle-seed1",
    "crossing-seed1",
    "catch-seed2",
    "paddle-seed2",
    "crossing-seed2",
];

/// `rem sweep COMMAND STUDY` with further arguments, split at whitespace.
pub fn sweep(command: &str, study: &Path, words: &str) -> Command {
    let mut rem = rem();
    rem.args(["sweep", command])
        .arg(study)
        .args(words.split_whitespace());
    rem
}

/// A new study in `parent`.
pub fn new_study(parent: &Path, name: &str, words: &str) -> PathBuf {
    let study = parent.join(name);
    succeeds(&mut sweep("new", &study, words));
    study
}

/// The files of a study that was trained without a disturbance.
pub fn undisturbed(parent: &Path, words: &str) -> Vec<Files> {
    let study = new_study(parent, "undisturbed", words);
    run_to_end(&mut sweep("run", &study, "--jobs 2"));
    files_of(&study)
}

/// What must be the same in every run of [`STUDY`].
pub fn files_of(study: &Path) -> Vec<Files> {
    RUNS.map(|run| reproducible_files(&study.join(run))).into()
}

/// `rem sweep status --json`.
pub fn status(command: &mut Command) -> serde_json::Value {
    let output = succeeds(command);
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The states of all runs, in order.
pub fn states(status: &serde_json::Value) -> Vec<String> {
    let runs = status["runs"].as_array().unwrap();
    let state = |run: &serde_json::Value| run["state"].as_str().unwrap().to_owned();
    runs.iter().map(state).collect()
}

/// The process that trains a run.
pub fn pid_of(run: &Path) -> Option<u32> {
    rem_run::Owner::of_run(run).map(|owner| owner.pid)
}

/// Sends a signal to a process that this test started, directly or through a pool.
pub fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_until(what: &str, timeout: u64, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(timeout),
            "timed out: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command that may take minutes, and must succeed.
#[track_caller]
pub fn run_to_end(command: &mut Command) {
    let errors = tempfile::NamedTempFile::new().unwrap();
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(errors.reopen().unwrap())
        .spawn()
        .unwrap();
    let mut status = None;
    wait_until("the end of a study", 600, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let text = fs::read_to_string(errors.path()).unwrap();
    assert!(status.unwrap().success(), "{command:?}\n{text}");
}

/// A child process that is killed on drop.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Slurm cluster of one node. Stopped on drop.
pub struct Cluster {
    dir: TempDir,
}

impl Cluster {
    /// Starts a cluster. Without Slurm, or without the rights to start it, prints that the test is skipped and returns
    /// `None`.
    ///
    /// # Panics
    ///
    /// If it does not start and `REM_REQUIRE_SLURM` is set, as in CI.
    pub fn new() -> Option<Self> {
        let required = std::env::var_os("REM_REQUIRE_SLURM").is_some();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let exists = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        if !["slurmctld", "slurmd", "munged", "sbatch"]
            .into_iter()
            .all(exists)
            && !required
        {
            eprintln!("SKIPPED: no Slurm on the path; install `slurm-wlm` and `munge`");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let output = script("start", dir.path());
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!required, "REM_REQUIRE_SLURM is set, but: {text}");
            eprintln!("SKIPPED: Slurm does not start: {text}");
            return None;
        }
        Some(Self { dir })
    }

    /// Makes a command use this cluster.
    pub fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("SLURM_CONF", self.dir.path().join("slurm.conf"))
    }

    /// Starts a command of Slurm.
    pub fn start(&self, words: &str) -> Process {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        Process(super::start(self.with(command.args(words))))
    }

    /// The output of a command of Slurm, which must succeed.
    pub fn slurm(&self, words: &str) -> String {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        let output = self.with(command.args(words)).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Requeued tasks wait for two minutes. This starts them now.
    pub fn hurry(&self) {
        for line in self
            .slurm("squeue --noheader --array --states=PENDING --format=%F_%K|%r")
            .lines()
        {
            if let Some((task, "BeginTime")) = line.trim().split_once('|') {
                let mut command = Command::new("scontrol");
                command.args(["update", &format!("JobId={task}"), "StartTime=now"]);
                // It may have started meanwhile.
                let _ = self.with(&mut command).output().unwrap();
            }
        }
    }

    /// Whether no job is in the queue.
    pub fn is_idle(&self) -> bool {
        self.slurm("squeue --noheader").trim().is_empty()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script("stop", self.dir.path());
    }
}

fn script(command: &str, dir: &Path) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/slurm-one-node");
    // Its daemons must not hold the pipes of this process.
    let errors = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new(script)
        .arg(command)
        .arg(dir)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(errors.reopen().unwrap())
        .status()
        .unwrap();
    std::process::Output {
        status,
        stdout: Vec::new(),
        stderr: fs::read(errors.path()).unwrap(),
    }
}
