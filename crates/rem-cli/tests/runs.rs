//! `rem runs` lists, labels and deletes runs, and never deletes one that is being trained.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::study::{kill, wait_until};
use support::*;

/// `rem runs` with these words, in a directory.
fn runs(dir: &Path, words: &str) -> Command {
    let mut command = rem();
    command
        .current_dir(dir)
        .arg("runs")
        .args(words.split_whitespace());
    command
}

fn list(dir: &Path, words: &str) -> Vec<Value> {
    let output = succeeds(&mut runs(dir, &format!("{words} --json")));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["run"].as_str().unwrap())
        .collect()
}

/// `runs/done` of catch, `runs/stopped` of paddle, which has completed two of four epochs, and `runs/damaged`.
fn some_runs() -> tempfile::TempDir {
    let temp = temp_dir();
    let dir = temp.path().join("runs");
    succeeds(&mut debug_run(&dir.join("done"), SHORT));
    let stopped = dir.join("stopped");
    succeeds(&mut debug_run(&stopped, &format!("{SHORT} --game paddle")));
    // As if it had more epochs.
    let config = fs::read_to_string(stopped.join("config.toml")).unwrap();
    let longer = config.replacen("epochs = 2", "epochs = 4", 2);
    assert_ne!(longer, config);
    fs::write(stopped.join("config.toml"), longer).unwrap();
    let scores = fs::read_to_string(stopped.join("scores.json")).unwrap();
    let last = scores.find("\"final\":").unwrap();
    let scores = format!("{}\"final\": null\n}}\n", &scores[..last]);
    fs::write(stopped.join("scores.json"), scores).unwrap();
    copy_dir(&dir.join("done"), &dir.join("damaged"));
    fs::remove_file(dir.join("damaged/scores.json")).unwrap();
    fs::write(dir.join("damaged/config.toml"), "seed = \n").unwrap();
    fs::create_dir(dir.join("something else")).unwrap();
    temp
}

#[test]
fn runs_are_listed_filtered_and_sorted() {
    let temp = some_runs();
    let dir = temp.path();
    let rows = list(dir, "");
    assert_eq!(names(&rows), ["damaged", "done", "stopped"]);
    let [damaged, done, stopped] = &rows[..] else {
        panic!()
    };
    assert_eq!(damaged["state"], "damaged");
    assert_eq!(
        (&done["state"], &stopped["state"]),
        (&"done".into(), &"stopped".into())
    );
    assert_eq!(
        (&done["game"], &stopped["game"]),
        (&"catch".into(), &"paddle".into())
    );
    assert_eq!(done["preset"], "debug");
    assert_eq!((&done["epoch"], &done["epochs"]), (&2.into(), &2.into()));
    assert_eq!(stopped["epochs"], 4);
    let scores = fs::read_to_string(dir.join("runs/done/scores.json")).unwrap();
    let means = numbers(&scores[scores.find("final").unwrap()..], "mean");
    assert_eq!(done["score"].as_f64(), Some(means[0]));
    let size: usize = all_files(&dir.join("runs/done"))
        .values()
        .map(Vec::len)
        .sum();
    assert_eq!(done["bytes"].as_u64(), Some(size as u64));
    assert!(done["age_seconds"].as_f64().unwrap() < 600.0, "{done}");

    assert_eq!(names(&list(dir, "--state stopped")), ["stopped"]);
    assert_eq!(names(&list(dir, "--game catch --state done")), ["done"]);
    assert_eq!(names(&list(dir, "--preset quick")), [""; 0]);
    assert_eq!(
        names(&list(dir, "--sort state")),
        ["done", "stopped", "damaged"]
    );
    let by_size = list(dir, "--sort size --reverse");
    let sizes: Vec<u64> = by_size
        .iter()
        .map(|row| row["bytes"].as_u64().unwrap())
        .collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    // A table for people.
    let text = stdout(&succeeds(&mut runs(dir, "")));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("run "), "{text}");
    assert!(
        lines[2].starts_with("done ") && lines[2].contains(" 2 / 2 "),
        "{text}"
    );
    let (error, hint) = fails(&mut runs(dir, "absent"));
    assert!(
        error.contains("`absent`: there is no such directory"),
        "{error}"
    );
    assert!(hint.contains("`runs`"), "{hint}");
}

#[test]
fn labels_are_kept_and_do_not_touch_training() {
    let run = finished(BRIEF);
    let before = reproducible_files(run.dir());
    let label = |words: &[&str]| {
        let mut command = rem();
        command.args(["runs", "label"]).arg(run.dir()).args(words);
        command
    };
    succeeds(&mut label(&[
        "--name",
        "base line",
        "--tag",
        "b",
        "--tag",
        "a",
    ]));
    succeeds(&mut label(&["--note", "why", "--untag", "b", "--tag", "c"]));
    let text = stdout(&succeeds(&mut label(&[])));
    assert!(
        text.ends_with("  name  base line\n  tags  a c\n  note  why\n"),
        "{text}"
    );
    let parent = run.dir().parent().unwrap();
    let rows = list(parent, ". --tag a --tag c");
    assert_eq!(rows[0]["name"], "base line");
    assert_eq!(rows[0]["tags"], serde_json::json!(["a", "c"]));
    assert_eq!(names(&list(parent, ". --tag b")), [""; 0]);
    let mut after = reproducible_files(run.dir());
    assert!(after.remove("labels.json").is_some());
    assert_same(&after, &before);
    succeeds(&mut resume(run.dir()));
    // A tag is a word.
    let output = output_of(&mut label(&["--tag", "two words"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn runs_are_deleted_after_a_confirmation() {
    let temp = some_runs();
    let dir = temp.path();
    let before = all_files(dir);
    let shown = stdout(&succeeds(&mut runs(
        dir,
        "rm runs/done runs/damaged --dry-run",
    )));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(
        lines[0].starts_with("would delete ") && lines[0].contains("runs/done ("),
        "{shown}"
    );
    // Without a terminal nobody can be asked.
    let (error, hint) = fails(&mut runs(dir, "rm runs/done"));
    assert!(error.contains("no terminal to ask at"), "{error}");
    assert!(hint.contains("--yes"), "{hint}");
    let without_locks = |mut files: Files| {
        files.retain(|name, _| !name.ends_with(".lock"));
        files
    };
    assert_same(&without_locks(all_files(dir)), &without_locks(before));

    succeeds(&mut runs(dir, "rm runs/done runs/damaged --yes"));
    let left = fs::read_dir(dir.join("runs")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["something else", "stopped"]);
    for words in [
        "rm runs --yes",
        "rm absent --yes",
        "delete-media runs --yes",
    ] {
        let (error, _) = fails(&mut runs(dir, words));
        assert!(error.contains("it does not contain a run"), "{error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.join("runs/stopped"), dir.join("link")).unwrap();
        let (error, _) = fails(&mut runs(dir, "rm link --yes"));
        assert!(error.contains("symbolic link"), "{error}");
    }
    assert!(dir.join("runs/stopped/config.toml").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_asked() {
    let run = finished(BRIEF);
    for (answer, is_kept) in [("n\n", true), ("\n", true), ("y\n", false)] {
        let mut remove = rem();
        remove.args(["runs", "rm"]).arg(run.dir());
        let mut command = on_terminal(&remove, &[]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(answer.as_bytes()).unwrap();
        keyboard.flush().unwrap();
        let mut screen = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut screen)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{screen}");
        assert!(screen.contains("delete 1 run and "), "{screen}");
        assert_eq!(run.dir().exists(), is_kept, "{answer:?}: {screen}");
    }
}

#[test]
fn media_are_deleted_and_the_rest_is_kept() {
    let temp = some_runs();
    let dir = temp.path().join("runs/done");
    let media = |files: &Files| {
        files
            .keys()
            .filter(|name| name.starts_with("media/"))
            .count()
    };
    let before = all_files(&dir);
    let of_last = before
        .keys()
        .filter(|name| name.starts_with("media/epoch-000002"));
    let (all, of_last) = (media(&before), of_last.count());
    assert!(of_last > 0 && all > of_last);
    succeeds(&mut runs(&dir, "delete-media . --dry-run"));
    assert_same(&all_files(&dir), &before);
    let text = stdout(&succeeds(&mut runs(
        &dir,
        "delete-media . --keep-last --yes",
    )));
    assert!(
        text.starts_with(&format!("deleted {} media files, ", all - of_last)),
        "{text}"
    );
    assert_eq!(media(&all_files(&dir)), of_last);
    succeeds(&mut runs(&dir, "delete-media . --yes"));
    let mut kept = before;
    kept.retain(|name, _| !name.starts_with("media/"));
    assert_same(&all_files(&dir), &kept);
}

#[cfg(unix)]
#[test]
fn a_run_that_trains_is_neither_deleted_nor_changed() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let long = "--set train.epochs=100000 --set collect.epochs=2 --set evaluate.every=1";
    let training = Training::start(&mut debug_run(&dir, long));
    wait_until("an evaluation", 60, || has_line(&dir, 2, "evaluate"));
    let rows = list(temp.path(), ".");
    assert_eq!(rows[0]["state"], "running");
    // Held still, so that nothing else changes.
    kill("STOP", training.id());
    let before = all_files(&dir);
    for words in ["rm run --yes", "rm run --dry-run", "delete-media run --yes"] {
        let (error, hint) = fails(&mut runs(temp.path(), words));
        assert!(
            error.contains(&format!("process {} on ", training.id())),
            "{error}"
        );
        assert!(hint.contains("stop it"), "{hint}");
    }
    assert_same(&all_files(&dir), &before);
    // Its labels can change.
    succeeds(&mut runs(temp.path(), "label run --tag now"));
    kill("CONT", training.id());
}
