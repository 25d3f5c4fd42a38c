//! Training on Python environments as a user does it: runs, errors, resume, doctor.
//!
//! Needs the Python of `scripts/setup-gymnasium`, or `REM_TEST_PYTHON`. Without one the tests are skipped; with
//! `REM_REQUIRE_GYMNASIUM` set they fail.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use support::*;

/// The factories of the tests of the crate `rem`.
const ENVS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rem/tests/python");

fn python() -> Option<PathBuf> {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../third-party/gymnasium/bin/python"
    );
    let python = std::env::var_os("REM_TEST_PYTHON").map_or(own.into(), PathBuf::from);
    let required = std::env::var_os("REM_REQUIRE_GYMNASIUM").is_some();
    match python.exists() {
        true => Some(python),
        false if required => panic!(
            "{} is missing: run scripts/setup-gymnasium",
            python.display()
        ),
        false => {
            eprintln!("skipped: no Python with gymnasium");
            None
        }
    }
}

/// `rem` in the directory of the factories.
fn rem_with(python: &Path) -> Command {
    let mut command = rem();
    command.current_dir(ENVS).arg("--python").arg(python);
    command
}

fn train(python: &Path, env: &str, dir: &Path, words: &str) -> Command {
    let mut command = rem_with(python);
    command
        .args(["train", "--preset", "debug", "--threads", "2", "--env", env])
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(dir);
    command
}

/// The processes of `rem_env` whose parent is `parent`.
fn workers_of(parent: u32) -> Vec<u32> {
    let children = format!("/proc/{parent}/task/{parent}/children");
    let threads = fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<u32> = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    if found.is_empty() {
        let list = fs::read_to_string(children).unwrap_or_default();
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

#[test]
fn a_python_environment_trains_and_evaluates() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let output = succeeds(&mut train(&python, "python:bridge_envs:plain", &dir, BRIEF));
    let text = stderr(&output);
    assert!(text.contains("environment: image 20x30x3"), "{text}");
    assert!(text.contains("its state cannot be saved"), "{text}");
    assert!(stdout(&output).starts_with("python:bridge_envs:plain: mean return"));
    let protocol = fs::read_to_string(dir.join("protocol.json")).unwrap();
    for part in [
        "\"gymnasium\": ",
        "resize 20x30 to 32x32, bilinear",
        "\"snapshots\": false",
    ] {
        assert!(protocol.contains(part), "no {part} in {protocol}");
    }
    let score = stdout(&output);
    let eval = stdout(&succeeds(rem_with(&python).arg("eval").arg(&dir)));
    let mean = |text: &str| text.split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(mean(&eval), mean(&score));
}

#[test]
fn a_run_with_snapshots_resumes_exactly_and_another_one_says_so() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let words = format!("{SHORT} --set collect.envs=2");
    for (factory, exact) in [("saved", true), ("plain", false)] {
        let env = format!("python:bridge_envs:{factory}");
        let whole = temp.path().join(format!("{factory}-whole"));
        succeeds(&mut train(&python, &env, &whole, &words));
        let killed = temp.path().join(format!("{factory}-killed"));
        let mut command = train(&python, &env, &killed, &words);
        assert!(kill_when(start(&mut command), || checkpoint(&killed, 1).exists()));
        let mut resume = rem_with(&python);
        let output = succeeds(resume.args(["train", "--resume"]).arg(&killed));
        // An environment whose episode had just ended loses nothing.
        let note = "of 2 environments, whose state cannot be saved";
        assert_eq!(
            stderr(&output).contains(note),
            !exact,
            "{}",
            stderr(&output)
        );
        let metrics = |dir: &Path| fs::read(dir.join("metrics.jsonl")).unwrap();
        assert_eq!(metrics(&killed) == metrics(&whole), exact, "{factory}");
        // Also what was written after the resume reads back.
        let listed = stdout(&succeeds(rem().arg("episodes").arg(&killed)));
        assert!(listed.lines().count() > 4, "{listed}");
    }
}

#[test]
fn an_exception_shows_the_traceback_and_keeps_the_last_epoch() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let dir = temp.path().join("run");
    // Fails in its 60th step: after the first epoch of 40, with an environment that plays on.
    let module = temp.path().join("late.py");
    let code = "from bridge_envs import Walk\n\
        steps = [0]\n\
        class Late(Walk):\n    \
            def step(self, action):\n        \
                steps[0] += 1\n        \
                if steps[0] == LIMIT:\n            \
                    raise RuntimeError('too late')\n        \
                return super().step(action)\n\
        def make():\n    return Late(limit=1000)\n";
    let write = |limit: &str| fs::write(&module, code.replace("LIMIT", limit)).unwrap();
    write("-1");
    let path = format!("{}:{ENVS}", temp.path().display());
    let run = |command: &mut Command| output_of(command.env("PYTHONPATH", &path));
    let mut command = train(&python, "python:late:make", &dir, SHORT);
    let whole = run(&mut command);
    assert!(whole.status.success(), "{}", stderr(&whole));
    fs::remove_dir_all(&dir).unwrap();

    let mut command = train(&python, "python:late:make", &dir, SHORT);
    let mut child = start(command.env("PYTHONPATH", &path));
    let started = Instant::now();
    while !checkpoint(&dir, 1).exists() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no first epoch"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    write("3");
    let mut resume = rem_with(&python);
    let failed = run(resume.args(["train", "--resume"]).arg(&dir));
    assert_eq!(failed.status.code(), Some(1));
    let text = stderr(&failed);
    assert!(text.contains("late.py\", line 7, in step"), "{text}");
    let error = text
        .lines()
        .find(|line| line.starts_with("error: "))
        .unwrap();
    assert!(
        error.ends_with("raised RuntimeError in step: too late"),
        "{error}"
    );
    assert!(text.lines().last().unwrap().starts_with("hint: "), "{text}");
    assert!(checkpoint(&dir, 1).exists());
    write("-1");
    let mut resume = rem_with(&python);
    let resumed = run(resume.args(["train", "--resume"]).arg(&dir));
    assert!(resumed.status.success(), "{}", stderr(&resumed));
}

#[cfg(target_os = "linux")]
#[test]
fn killing_rem_leaves_no_worker() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let words = "--set train.epochs=100000 --set collect.epochs=100000 --set evaluate.every=1";
    let mut command = train(&python, "python:bridge_envs:plain", &dir, words);
    let mut child = start(&mut command);
    let started = Instant::now();
    while !checkpoint(&dir, 2).exists() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no second epoch"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let workers = workers_of(child.id());
    assert!(!workers.is_empty(), "no worker found");
    child.kill().unwrap();
    child.wait().unwrap();
    let started = Instant::now();
    for worker in workers {
        while Path::new(&format!("/proc/{worker}")).exists() {
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "worker {worker} is left"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let left = fs::read_dir("/dev/shm").unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("rem-env-"));
    // Directories of other tests live for less than a second.
    let paths: Vec<_> = left.map(|entry| entry.path()).collect();
    std::thread::sleep(Duration::from_secs(5));
    assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
}

#[test]
fn mistakes_are_errors_before_a_run_exists() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let cases = [
        (
            "gym:",
            "is not the name of an environment",
            "gym:CartPole-v1",
        ),
        (
            "python:bridge_envs",
            "is not the name",
            "python:my_module:make_env",
        ),
        (
            "gym:Nowhere-v0",
            "raised NameNotFound in its construction",
            "rem doctor",
        ),
        (
            "python:nowhere:make",
            "needs the Python package `nowhere`",
            "pip install nowhere",
        ),
        (
            "python:bridge_envs:continuous",
            "is not discrete",
            "new-environment.md",
        ),
    ];
    for (env, part, advice) in cases {
        let output = output_of(&mut train(&python, env, &dir, BRIEF));
        assert_eq!(output.status.code(), Some(1), "{env}");
        let text = stderr(&output);
        let lines: Vec<&str> = text.lines().rev().take(2).collect();
        assert!(
            lines[1].starts_with("error: ") && lines[1].contains(part),
            "{text}"
        );
        assert!(
            lines[0].starts_with("hint: ") && lines[0].contains(advice),
            "{text}"
        );
        assert!(!dir.exists(), "{env}: created the run directory");
    }
    let absent = temp.path().join("python");
    let (error, hint) = fails(&mut train(&absent, "gym:CartPole-v1", &dir, BRIEF));
    assert!(error.contains("cannot start Python"), "{error}");
    assert!(hint.contains("--python"), "{hint}");
    let words = "--set env.python.kwargs=3";
    let (error, _) = fails(&mut train(&python, "gym:CartPole-v1", &dir, words));
    assert!(error.contains("is not a table"), "{error}");
    let words = "--set env.python.timeout=0";
    let (error, _) = fails(&mut train(&python, "gym:CartPole-v1", &dir, words));
    assert!(error.contains("env.python.timeout"), "{error}");
}

#[test]
fn doctor_checks_spaces_seed_snapshot_speed_and_picture() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    let picture = temp.path().join("picture.png");
    let doctor = |env: &str| {
        let mut command = rem_with(&python);
        command
            .args(["doctor", "--preset", "debug", "--env", env, "--run-dir"])
            .arg(temp.path());
        command
    };
    let output = succeeds(
        doctor("python:bridge_envs:saved")
            .arg("--picture")
            .arg(&picture),
    );
    let text = stdout(&output);
    let line = |text: &str, check: &str| {
        let line = text.lines().find(|line| line.starts_with(check));
        line.unwrap_or_else(|| panic!("no {check} in\n{text}"))
            .to_owned()
    };
    assert!(line(&text, "spaces").contains("image 20x30x3"));
    assert!(line(&text, "wrappers").contains("resize 20x30 to 32x32"));
    assert!(line(&text, "Python").contains("gymnasium "));
    assert!(line(&text, "seed").contains("ok") && line(&text, "snapshot").contains("ok"));
    assert!(line(&text, "speed").contains("steps/s"));
    assert!(line(&text, "picture").contains("picture.png"));
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));

    let text = stdout(&succeeds(&mut doctor("python:bridge_envs:unseeded")));
    assert!(line(&text, "seed").contains("note"), "{text}");
    assert!(line(&text, "snapshot").contains("note"), "{text}");

    let output = output_of(&mut doctor("python:bridge_envs:raises"));
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(
        line(&text, "game").contains("FAIL") && text.contains("in fault"),
        "{text}"
    );
}

#[test]
fn gymnasium_and_minigrid_environments_start() {
    let Some(python) = python() else { return };
    for (env, shown) in [
        (
            "gym:MiniGrid-Empty-5x5-v0",
            "image 160x160x3 · left, right, forward",
        ),
        ("gym:CartPole-v1", "image 400x600x3 · 0, 1"),
        (
            "gym:ALE/Breakout-v5",
            "image 210x160x3 · noop, fire, right, left",
        ),
    ] {
        let mut command = rem_with(&python);
        let output = succeeds(command.args(["doctor", "--preset", "debug", "--env", env]));
        assert!(stdout(&output).contains(shown), "{}", stdout(&output));
    }
}
