//! `train.overlap_phases`: the controller learns beside tokenizer and world model, in copies of the epoch before.

mod support;

use std::path::Path;
use std::process::Command;

use support::*;

/// Batches large enough for kernels that split their work over threads; dropout on.
const SETTINGS: &str = "--set train.epochs=5 --set world_model.dropout=0.1 --set world_model.optimizer.batch_size=16 \
    --set world_model.optimizer.steps_per_epoch=6 --set actor_critic.optimizer.batch_size=32 \
    --set actor_critic.optimizer.steps_per_epoch=6 --set tokenizer.optimizer.batch_size=32 \
    --set evaluate.every=0";
const OVERLAP: &str = "--set train.overlap_phases=true";

fn run(dir: &Path, threads: &str, words: &str) -> Command {
    let mut command = rem();
    command
        .args(["train", "--preset", "debug", "--threads", threads])
        .args(words.split_whitespace())
        .arg("--run-dir")
        .arg(dir);
    command
}

/// Trains, and returns the files without those that name the number of threads.
fn trained(threads: &str, words: &str) -> Files {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut run(&dir, threads, words));
    let mut files = reproducible_files(&dir);
    files.retain(|name, _| {
        let with_threads = ["config.toml", "protocol.json", "manifest.json"];
        !with_threads.iter().any(|end| name.ends_with(end))
    });
    assert!(
        files
            .keys()
            .any(|name| name.ends_with("world_model.optimizer.safetensors"))
    );
    files
}

/// The log's lines of a phase, one per epoch.
fn lines(files: &Files, phase: &str) -> Vec<String> {
    let text = String::from_utf8(files["metrics.jsonl"].clone()).unwrap();
    let name = format!("\"phase\":\"{phase}\"");
    let lines = text.lines().filter(|line| line.contains(&name));
    lines.map(String::from).collect()
}

/// One thread runs one side after the other. Two run both at once, and of three, one helps both.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let settings = format!("{SETTINGS} {OVERLAP}");
    let expected = trained("1", &settings);
    for threads in ["2", "2", "3"] {
        assert_same(&trained(threads, &settings), &expected);
    }
}

/// The learning rate of the world model's first epoch changes the controller of that epoch only if that waits for it.
#[test]
fn the_controller_learns_in_the_world_model_of_the_epoch_before() {
    let first = |overlap: &str, rate: &str| {
        let settings = format!(
            "{SETTINGS} --set world_model.optimizer.start_after=2 {overlap} \
             --set world_model.optimizer.learning_rate={rate}"
        );
        let lines = lines(&trained("2", &settings), "actor_critic");
        assert!(lines[0].contains("\"epoch\":3"), "{}", lines[0]);
        lines[0].clone()
    };
    assert_eq!(first(OVERLAP, "1e-3"), first(OVERLAP, "1e-2"));
    assert_ne!(first("", "1e-3"), first("", "1e-2"));
}

#[test]
fn tokenizer_and_world_model_learn_as_without_it() {
    let [with, without] =
        [OVERLAP, ""].map(|overlap| trained("2", &format!("{SETTINGS} {overlap}")));
    // Up to epoch 3, in which the controller starts to learn, both runs collect the same.
    for phase in ["collect", "tokenizer", "world_model"] {
        let [a, b] = [&with, &without].map(|files| lines(files, phase)[..2].to_vec());
        assert_eq!(a, b);
    }
    assert_ne!(
        lines(&with, "actor_critic"),
        lines(&without, "actor_critic")
    );
}

/// With nothing to run beside it, the controller learns as always.
#[test]
fn a_controller_that_learns_alone_is_the_same() {
    let settings = format!(
        "{SETTINGS} --set tokenizer.optimizer.stop_after=2 --set world_model.optimizer.stop_after=2"
    );
    let with = trained("2", &format!("{settings} {OVERLAP}"));
    assert_same(&with, &trained("2", &settings));
    assert_eq!(lines(&with, "actor_critic").len(), 3);
}

#[test]
fn both_sides_are_timed() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut run(&dir, "2", &format!("{SETTINGS} {OVERLAP}")));
    let text = std::fs::read_to_string(dir.join("timing.jsonl")).unwrap();
    let phases: Vec<&str> = (text.lines())
        .filter(|line| line.contains("\"epoch\":4,"))
        .map(|line| {
            line.split("\"phase\":\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(phases, ["tokenizer", "world_model", "actor_critic"]);
    assert!(
        text.lines().all(|line| numbers(line, "seconds")[0] > 0.0),
        "{text}"
    );
}
