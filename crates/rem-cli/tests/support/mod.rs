//! Driving `rem` as a process, and comparing what it leaves on the disk.
#![allow(dead_code)] // each test file uses its own part

pub mod web;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest time that a child may take to do what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// `rem`, shut off from the user's own data directory.
pub fn rem() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rem"));
    command
        .env("REM_DATA_DIR", "/nowhere/of/rem/tests")
        .stdin(Stdio::null());
    command
}

/// `rem train` with the debug preset and `words` split at spaces, into `dir`.
pub fn debug_run(dir: &Path, words: &str) -> Command {
    let mut command = rem();
    command
        .args(["train", "--preset", "debug", "--threads", "2"])
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(dir);
    command
}

pub fn resume(dir: &Path) -> Command {
    let mut command = rem();
    command.args(["train", "--resume"]).arg(dir);
    command
}

/// Runs to the end, for which a child that hangs is not waited.
pub fn outcome(command: &mut Command) -> Output {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let started = Instant::now();
    // What `rem` says in a test fits into a pipe, so it need not be read meanwhile.
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} came to no end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// Runs to the end, which must be a good one.
pub fn succeeds(command: &mut Command) -> Output {
    let output = outcome(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        stderr(&output)
    );
    output
}

/// Runs to an end that must be a refusal: exit code 1, nothing on stdout, one line `error: …` and one line
/// `hint: …`, which are returned.
#[track_caller]
pub fn refused(command: &mut Command) -> (String, String) {
    let output = outcome(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{command:?}\n{text}");
    assert!(output.stdout.is_empty(), "{command:?}\n{text}");
    let lines: Vec<&str> = text.lines().collect();
    match lines[..] {
        [error, hint] if error.starts_with("error: ") && hint.starts_with("hint: ") => (
            error["error: ".len()..].into(),
            hint["hint: ".len()..].into(),
        ),
        _ => panic!("{command:?}: not one line of error and one of hint:\n{text}"),
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A training that ends with its test.
pub struct Training(Child);

impl Training {
    pub fn start(command: &mut Command) -> Self {
        Self(start(command))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn goes_on(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills the run in the middle of each of `epochs`, resuming it after each; the last time it goes to its end.
pub fn killed_in(dir: &Path, settings: &str, epochs: &[(u32, &str)]) {
    let mut in_the_middle = 0;
    for (i, &(epoch, phase)) in epochs.iter().enumerate() {
        let mut command = match i {
            0 => debug_run(dir, settings),
            _ => resume(dir),
        };
        kill_when(start(&mut command), || has_line(dir, epoch, phase));
        // The epoch had begun, and nothing but its lines tells of it.
        if has_line(dir, epoch, phase) && !checkpoint(dir, epoch).exists() {
            in_the_middle += 1;
        }
    }
    assert!(in_the_middle > 0, "no kill came in time");
    succeeds(&mut resume(dir));
}

/// Kills with SIGKILL as soon as `when` holds; false if the child was faster and had ended.
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
            assert!(status.success(), "the child failed by itself: {status}");
            return false;
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("waited in vain");
        }
        // No sleep: what is waited for may last only milliseconds.
        std::thread::yield_now();
    }
}

/// Whether `metrics.jsonl` has a line of this phase of this epoch.
pub fn has_line(run: &Path, epoch: u32, phase: &str) -> bool {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.contains(&format!("{{\"epoch\":{epoch},\"phase\":\"{phase}\""))
}

/// Puts a byte that means nothing in the place of a chunk's last outcome.
pub fn spoil_outcome(chunk: &Path) {
    let mut bytes = fs::read(chunk).unwrap();
    let steps = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
    bytes[32 + 6 * steps - 1] = 7;
    fs::write(chunk, bytes).unwrap();
}

pub fn checkpoint(run: &Path, epoch: u32) -> PathBuf {
    run.join(format!("checkpoints/epoch-{epoch:06}"))
}

/// Contents by path below a directory.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Every file of a run but the lock.
pub fn all_files(run: &Path) -> Files {
    let mut files = Files::new();
    gather(run, "", &mut files);
    files.remove(".lock");
    files
}

/// Every file of a run that a clock has no part in.
pub fn lasting_files(run: &Path) -> Files {
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

/// The same files with the same bytes.
#[track_caller]
pub fn assert_same(found: &Files, expected: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "not the same set of files");
    let different: Vec<&String> = expected
        .keys()
        .filter(|name| found[*name] != expected[*name])
        .collect();
    let show = |name: &String| {
        let text = |files: &Files| String::from_utf8(files[name].clone()).unwrap_or_default();
        let (a, b) = (text(found), text(expected));
        let line = a.lines().zip(b.lines()).find(|(a, b)| a != b);
        line.map_or_else(String::new, |(a, b)| format!("\n  found {a}\n  not   {b}"))
    };
    let list: String = different
        .iter()
        .map(|name| format!("\n{name}{}", show(name)))
        .collect();
    assert!(different.is_empty(), "files differ:{list}");
}

pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in all_files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A place for runs.
pub fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The numbers of the list `"key": [...]`, or the number of `"key": 1.5`, where it first appears in a JSON text.
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

/// A finished run of two epochs with every phase in each.
pub const SHORT: &str = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=1 \
    --set world_model.optimise.start_after=0 --set actor_critic.optimise.start_after=0";

/// As little as a run with all of its parts takes: two epochs, one evaluation of one episode.
pub const BRIEF: &str = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=0 \
    --set evaluate.final_episodes=1 --set world_model.optimise.start_after=0 \
    --set actor_critic.optimise.start_after=0";

/// A run and the place that it lies in.
pub struct Run {
    _place: TempDir,
    dir: PathBuf,
}

impl Run {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A copy of it, with something changed.
    pub fn changed(&self, change: impl FnOnce(&Path)) -> Run {
        let place = place();
        let dir = place.path().join("run");
        copy_dir(&self.dir, &dir);
        change(&dir);
        Run { _place: place, dir }
    }

    /// A resume refuses it and leaves it as it is.
    #[track_caller]
    pub fn is_refused(&self) -> (String, String) {
        let before = all_files(&self.dir);
        let (error, hint) = refused(&mut resume(&self.dir));
        assert_same(&all_files(&self.dir), &before);
        (error, hint)
    }
}

pub fn finished(settings: &str) -> Run {
    let place = place();
    let dir = place.path().join("run");
    succeeds(&mut debug_run(&dir, settings));
    Run { _place: place, dir }
}
