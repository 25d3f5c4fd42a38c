//! Runs `rem` as a process and compares the files it writes.
#![allow(dead_code)] // no test file uses everything

pub mod many_runs;
pub mod page;
pub mod study;
pub mod web;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Timeout for a child process. Two epochs of Simulus at full size took 182 s on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// `rem`, isolated from the user's data directory.
pub fn rem() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rem"));
    command
        .env("REM_DATA_DIR", "/nowhere/of/rem/tests")
        .stdin(Stdio::null());
    command
}

/// `rem train` with the debug preset and `words`, split at whitespace, into `dir`.
pub fn debug_run(dir: &Path, words: &str) -> Command {
    let mut command = rem();
    command
        .args(["train", "--preset", "debug", "--threads", "2"])
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(dir);
    command
}

/// `rem train --resume DIR`.
pub fn resume(dir: &Path) -> Command {
    let mut command = rem();
    command.args(["train", "--resume"]).arg(dir);
    command
}

/// Runs the command and returns its output. Panics after a timeout.
pub fn output_of(command: &mut Command) -> Output {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let started = Instant::now();
    let outputs = (
        read_to_end(child.stdout.take().unwrap()),
        read_to_end(child.stderr.take().unwrap()),
    );
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} timed out");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Output {
        status: child.wait().unwrap(),
        stdout: outputs.0.join().unwrap(),
        stderr: outputs.1.join().unwrap(),
    }
}

/// Reads beside the process: a pipe holds 64 KB only.
fn read_to_end(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Runs the command, which must succeed.
pub fn succeeds(command: &mut Command) -> Output {
    let output = output_of(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        stderr(&output)
    );
    output
}

/// Runs the command, which must fail with exit code 1, no stdout, and exactly one `error: …` and one `hint: …` line.
/// Returns the two messages.
#[track_caller]
pub fn fails(command: &mut Command) -> (String, String) {
    let output = output_of(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{command:?}\n{text}");
    assert!(output.stdout.is_empty(), "{command:?}\n{text}");
    let lines: Vec<&str> = text.lines().collect();
    match lines[..] {
        [error, hint] if error.starts_with("error: ") && hint.starts_with("hint: ") => (
            error["error: ".len()..].into(),
            hint["hint: ".len()..].into(),
        ),
        _ => panic!("{command:?}: expected one error line and one hint line:\n{text}"),
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The command on a pseudo-terminal of 100 columns, with this environment. Its keyboard is the child's piped stdin, and its
/// screen is stdout.
pub fn on_terminal(command: &Command, environment: &[(&str, &str)]) -> Command {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<String> = words.map(quoted).collect();
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--flush", "--command"])
        .arg(format!("stty cols 100 rows 30; exec {}", words.join(" ")))
        .arg("/dev/null")
        .env("REM_DATA_DIR", "/nowhere/of/rem/tests")
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped());
    script
}

/// The text of a terminal's screen without its codes. A carriage return starts a line, as bars do.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.next_if_eq(&'[').is_some() => {
                rest.by_ref().find(|c| c.is_ascii_alphabetic());
            }
            '\r' => plain.push('\n'),
            c => plain.push(c),
        }
    }
    plain
}

/// Starts the command without waiting for it.
pub fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A training process that is killed on drop.
pub struct Training(Child);

impl Training {
    pub fn start(command: &mut Command) -> Self {
        Self(start(command))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a run, kills it after the given phase of each of `epochs`, and resumes it each time. The last resume runs to
/// the end.
pub fn kill_and_resume(dir: &Path, settings: &str, epochs: &[(u32, &str)]) {
    let mut interrupted = 0;
    for (i, &(epoch, phase)) in epochs.iter().enumerate() {
        let mut command = match i {
            0 => debug_run(dir, settings),
            _ => resume(dir),
        };
        kill_when(start(&mut command), || has_line(dir, epoch, phase));
        // The epoch has started but has no checkpoint yet.
        if has_line(dir, epoch, phase) && !checkpoint(dir, epoch).exists() {
            interrupted += 1;
        }
    }
    assert!(interrupted > 0, "every kill came too late");
    succeeds(&mut resume(dir));
}

/// Sends SIGKILL as soon as `when` holds. Returns false if the child had exited before.
pub fn kill_when(mut child: Child, mut when: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if when() {
            let running = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
            child.wait().unwrap();
            return running;
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "the child failed: {status}");
            return false;
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("timed out");
        }
        // No sleep: the condition may hold for milliseconds only.
        std::thread::yield_now();
    }
}

/// Whether `metrics.jsonl` has a line for this phase and epoch.
pub fn has_line(run: &Path, epoch: u32, phase: &str) -> bool {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.contains(&format!("{{\"epoch\":{epoch},\"phase\":\"{phase}\""))
}

/// Overwrites a chunk's last outcome with an invalid byte.
pub fn corrupt_outcome(chunk: &Path) {
    let mut bytes = fs::read(chunk).unwrap();
    let steps = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
    bytes[32 + 6 * steps - 1] = 7;
    fs::write(chunk, bytes).unwrap();
}

/// The directory of a checkpoint.
pub fn checkpoint(run: &Path, epoch: u32) -> PathBuf {
    run.join(format!("checkpoints/epoch-{epoch:06}"))
}

/// File contents by relative path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// All files of a run except the lock.
pub fn all_files(run: &Path) -> Files {
    let mut files = Files::new();
    gather(run, "", &mut files);
    files.remove(".lock");
    files
}

/// All files of a run that do not depend on wall-clock time.
pub fn reproducible_files(run: &Path) -> Files {
    let mut files = all_files(run);
    files.retain(|name, _| name != "timing.jsonl" && !name.starts_with("tensorboard/"));
    files
}

fn gather(dir: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            gather(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// Asserts that both sets have the same files with the same bytes.
#[track_caller]
pub fn assert_same(found: &Files, expected: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "the sets of files differ");
    let different: Vec<&String> = expected
        .keys()
        .filter(|name| found[*name] != expected[*name])
        .collect();
    let show = |name: &String| {
        let text = |files: &Files| String::from_utf8(files[name].clone()).unwrap_or_default();
        let (a, b) = (text(found), text(expected));
        let line = a.lines().zip(b.lines()).find(|(a, b)| a != b);
        line.map_or_else(String::new, |(a, b)| {
            format!("\n  found    {a}\n  expected {b}")
        })
    };
    let list: String = different
        .iter()
        .map(|name| format!("\n{name}{}", show(name)))
        .collect();
    assert!(different.is_empty(), "files differ:{list}");
}

/// Copies a run without its lock.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in all_files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A temporary directory for runs.
pub fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The numbers of `"key": [...]` or `"key": 1.5`, at its first occurrence in a JSON text.
pub fn numbers(json: &str, key: &str) -> Vec<f64> {
    let quoted = format!("\"{key}\":");
    let start = json
        .find(&quoted)
        .unwrap_or_else(|| panic!("no {key} in {json}"));
    let rest = json[start + quoted.len()..].trim_start();
    let text = match rest.strip_prefix('[') {
        Some(list) => &list[..list.find(']').unwrap()],
        None => &rest[..rest.find([',', '}', '\n']).unwrap()],
    };
    text.split(',').map(|n| n.trim().parse().unwrap()).collect()
}

/// Settings for two epochs, with every phase in each.
pub const SHORT: &str = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=1 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0";

/// Settings for the shortest complete run: two epochs, one evaluation of one episode.
pub const BRIEF: &str = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=0 \
    --set evaluate.final_episodes=1 --set world_model.optimizer.start_after=0 \
    --set actor_critic.optimizer.start_after=0";

/// A run in a temporary directory.
pub struct Run {
    _temp: TempDir,
    dir: PathBuf,
}

impl Run {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A copy with `change` applied.
    pub fn changed(&self, change: impl FnOnce(&Path)) -> Run {
        let temp = temp_dir();
        let dir = temp.path().join("run");
        copy_dir(&self.dir, &dir);
        change(&dir);
        Run { _temp: temp, dir }
    }

    /// Asserts that resume fails and leaves the run unchanged. Returns error and hint.
    #[track_caller]
    pub fn assert_resume_fails(&self) -> (String, String) {
        let before = all_files(&self.dir);
        let (error, hint) = fails(&mut resume(&self.dir));
        assert_same(&all_files(&self.dir), &before);
        (error, hint)
    }
}

/// A finished run of the debug preset with `settings`.
pub fn finished(settings: &str) -> Run {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, settings));
    Run { _temp: temp, dir }
}
