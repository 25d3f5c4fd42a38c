//! `rem train` says how long a long run will train, and the estimate does not change the run.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use support::*;

const ESTIMATE: &str = "estimated training time: ";

/// A run of so many epochs that its training time is estimated.
fn long_run(dir: &Path) -> std::process::Command {
    debug_run(
        dir,
        "--set train.epochs=1000000000 --set collect.epochs=2 --set evaluate.every=0",
    )
}

#[test]
fn long_runs_print_an_estimate_before_the_first_epoch() {
    let temp = temp_dir();
    let mut command = long_run(&temp.path().join("run"));
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let before_training: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.starts_with("epoch "))
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let estimate = before_training
        .iter()
        .find_map(|line| line.strip_prefix(ESTIMATE));
    let estimate = estimate.unwrap_or_else(|| panic!("no estimate in {before_training:?}"));
    for part in [
        "about ",
        " days (tokenizer ",
        ", world model ",
        ", controller ",
    ] {
        assert!(estimate.contains(part), "{estimate}");
    }
}

#[test]
fn short_runs_print_no_estimate() {
    let temp = temp_dir();
    let output = succeeds(&mut debug_run(&temp.path().join("run"), BRIEF));
    assert!(!stderr(&output).contains(ESTIMATE), "{}", stderr(&output));
}

/// Initial weights and the replay of two epochs are those of a run that is too short for an estimate: the measurement
/// draws no random number of the run.
#[test]
fn the_estimate_does_not_change_the_run() {
    let temp = temp_dir();
    let (short, long) = (temp.path().join("short"), temp.path().join("long"));
    succeeds(&mut debug_run(
        &short,
        "--set train.epochs=3 --set collect.epochs=2 --set evaluate.every=0",
    ));
    let stopped = kill_when(start(&mut long_run(&long)), || {
        checkpoint(&long, 3).exists()
    });
    assert!(stopped, "the long run has ended");
    let epochs = |dir: &Path, file: &str| -> Vec<String> {
        let text = std::fs::read_to_string(dir.join(file)).unwrap();
        let lines = text.lines().map(String::from);
        lines
            .filter(|line| (1..=3).any(|epoch| line.starts_with(&format!("{{\"epoch\":{epoch},"))))
            .filter(|line| !line.contains("\"evaluate\""))
            .collect()
    };
    let metrics = epochs(&short, "metrics.jsonl");
    assert!(metrics.len() >= 6, "{metrics:?}");
    assert_eq!(epochs(&long, "metrics.jsonl"), metrics);
    for epoch in 1..=2 {
        let chunk = format!("replay/epoch-{epoch:06}.chunk");
        let [a, b] = [&short, &long].map(|dir| std::fs::read(dir.join(&chunk)));
        assert_eq!(a.unwrap(), b.unwrap(), "{chunk}");
    }
}
