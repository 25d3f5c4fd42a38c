//! Ctrl-C and SIGTERM stop `rem train` after the epoch, the second time at once, and SIGUSR1 at once. Each time it says
//! which epoch is saved, and the resumed run writes the same bytes as an uninterrupted one.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use support::study::{Process, kill, pid_of, wait_until};
use support::*;

/// Epochs of about half a second.
const SETTINGS: &str = "--set train.epochs=4 --set collect.epochs=3 --set evaluate.every=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0 \
    --set world_model.optimizer.steps_per_epoch=150";
const EPOCHS: u32 = 4;

/// How a signal is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Ctrl-C on a terminal.
    Keyboard,
    Kill(&'static str),
}

/// A run whose output goes to a file.
struct Stopped {
    dir: PathBuf,
    log: PathBuf,
    child: Process,
    keyboard: Option<ChildStdin>,
}

impl Stopped {
    fn start(temp: &Path, name: &str, from: By) -> Self {
        let (dir, log) = (temp.join(name), temp.join(format!("{name}.log")));
        let output = fs::File::create(&log).unwrap();
        let mut run = debug_run(&dir, SETTINGS);
        let mut command = match from {
            By::Keyboard => on_terminal(&run, &[]),
            By::Kill(_) => {
                run.stdout(Stdio::null());
                run
            }
        };
        if from == By::Keyboard {
            command.stdout(output).stderr(Stdio::null());
        } else {
            command.stderr(output);
        }
        let mut child: Child = command.spawn().unwrap();
        let keyboard = child.stdin.take();
        let child = Process(child);
        Self {
            dir,
            log,
            child,
            keyboard,
        }
    }

    /// A run in its second epoch.
    fn in_the_second_epoch(temp: &Path, from: By) -> Self {
        let run = Self::start(temp, &format!("{from:?}"), from);
        wait_until("an epoch", 60, || has_line(&run.dir, 2, "collect"));
        run
    }

    /// Asserts that nothing owns the run, and that it resumes to the same bytes as `whole`.
    #[track_caller]
    fn resumes_to(&self, whole: &Files) {
        assert_eq!(pid_of(&self.dir), None);
        succeeds(&mut resume(&self.dir));
        assert_same(&reproducible_files(&self.dir), whole);
    }

    fn signal(&mut self, from: By) {
        match from {
            By::Keyboard => {
                let keyboard = self.keyboard.as_mut().unwrap();
                keyboard.write_all(b"\x03").unwrap();
                keyboard.flush().unwrap();
            }
            By::Kill(signal) => kill(signal, self.child.0.id()),
        }
    }

    /// What it has printed, without the codes of a terminal.
    fn text(&self) -> String {
        let text = fs::read(&self.log).unwrap();
        plain(&String::from_utf8_lossy(&text))
    }

    /// The exit code. Panics if the process runs for longer than this.
    fn code(&mut self, within: Duration) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(started.elapsed() < within, "it runs on:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The epoch that the last line says is saved.
    #[track_caller]
    fn saved(&self, prefix: &str) -> u32 {
        let text = self.text();
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap();
        let expected = format!(
            " is saved; resume with `rem train --resume {}`",
            self.dir.display()
        );
        let start = last.find(prefix).unwrap_or_else(|| panic!("{text}"));
        let rest = last[start + prefix.len()..].strip_prefix("epoch ");
        let epoch = rest.and_then(|rest| rest.trim_end().strip_suffix(&expected));
        let epoch = epoch.unwrap_or_else(|| panic!("{text}"));
        epoch.parse().unwrap()
    }
}

fn uninterrupted(temp: &Path) -> Files {
    let whole = temp.join("whole");
    succeeds(&mut debug_run(&whole, SETTINGS));
    reproducible_files(&whole)
}

fn cases() -> Vec<(By, i32, &'static str)> {
    let mut cases = vec![
        (By::Kill("INT"), 130, ""),
        (By::Kill("TERM"), 143, "stopped by SIGTERM; "),
    ];
    if cfg!(target_os = "linux") {
        cases.push((By::Keyboard, 130, ""));
    }
    cases
}

#[test]
fn the_first_signal_finishes_the_epoch() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path());
    for (from, code, prefix) in cases() {
        let mut run = Stopped::in_the_second_epoch(temp.path(), from);
        run.signal(from);
        assert_eq!(run.code(Duration::from_secs(60)), Some(code), "{from:?}");
        let epoch = run.saved(prefix);
        assert!((2..EPOCHS).contains(&epoch), "{from:?}: {epoch}");
        let text = run.text();
        assert!(
            text.contains(&format!("finishing epoch {epoch}; ")),
            "{text}"
        );
        assert!(
            text.contains(&format!("epoch {epoch}/{EPOCHS}  ")),
            "{text}"
        );
        assert!(checkpoint(&run.dir, epoch).exists());
        assert!(!has_line(&run.dir, epoch + 1, "collect"), "it went on");
        run.resumes_to(&whole);
    }
}

#[test]
fn the_second_signal_stops_at_once() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path());
    for (from, code, prefix) in cases() {
        let mut run = Stopped::in_the_second_epoch(temp.path(), from);
        run.signal(from);
        wait_until("an answer", 60, || run.text().contains("finishing epoch "));
        run.signal(from);
        assert_eq!(run.code(Duration::from_secs(2)), Some(code), "{from:?}");
        let epoch = run.saved(prefix);
        let text = run.text();
        assert!(
            text.contains(&format!("finishing epoch {}; ", epoch + 1)),
            "{text}"
        );
        let again = match from {
            By::Kill("TERM") => "send SIGTERM again to stop now",
            _ => "press again to stop now",
        };
        assert!(text.contains(again), "{text}");
        assert!(!checkpoint(&run.dir, epoch + 1).exists(), "it went on");
        run.resumes_to(&whole);
    }
}

#[test]
fn sigusr1_stops_at_once() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path());
    let from = By::Kill("USR1");
    let mut run = Stopped::in_the_second_epoch(temp.path(), from);
    assert_eq!(pid_of(&run.dir), Some(run.child.0.id()));
    run.signal(from);
    assert_eq!(run.code(Duration::from_secs(2)), Some(75));
    let epoch = run.saved("stopped by SIGUSR1; ");
    assert!(!checkpoint(&run.dir, epoch + 1).exists(), "it went on");
    run.resumes_to(&whole);
}

/// A signal in the last epoch does not keep the run from its end.
#[test]
fn a_run_that_ends_is_done() {
    let temp = temp_dir();
    let from = By::Kill("INT");
    let mut run = Stopped::start(temp.path(), "run", from);
    wait_until("the last epoch", 60, || {
        has_line(&run.dir, EPOCHS, "tokenizer")
    });
    run.signal(from);
    assert_eq!(run.code(Duration::from_secs(60)), Some(0));
    assert!(!run.text().contains("resume with"), "{}", run.text());
    let scores = fs::read_to_string(run.dir.join("scores.json")).unwrap();
    assert!(!scores.contains("\"final\": null"), "{scores}");
}
