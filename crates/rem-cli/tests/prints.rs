//! What `rem` prints, and what it does when it cannot.

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Output, Stdio};

use support::*;

/// Every write fails: no space is left.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Runs the command with stdout, or stderr too, into a pipe that nobody reads.
fn into_closed_pipe(command: &mut Command, errors_too: bool) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    if errors_too {
        drop(child.stderr.take());
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let run = finished(BRIEF);
    let commands: [&[&str]; 5] = [
        &["episodes", run.dir().to_str().unwrap()],
        &["eval", run.dir().to_str().unwrap(), "--episodes", "1"],
        &["runs", run.dir().to_str().unwrap()],
        &["config"],
        &["train", "--help"],
    ];
    for args in commands {
        let output = into_closed_pipe(rem().args(args), false);
        let text = stderr(&output);
        assert!(output.status.success(), "{args:?}: {text}");
        assert!(
            !text.contains("error") && !text.contains("panicked"),
            "{text}"
        );
    }
}

#[test]
fn training_goes_on_without_a_reader() {
    let temp = temp_dir();
    let whole = temp.path().join("whole");
    succeeds(&mut debug_run(&whole, SHORT));
    let expected = reproducible_files(&whole);

    let dir = temp.path().join("closed");
    let output = into_closed_pipe(&mut debug_run(&dir, SHORT), true);
    assert!(output.status.success(), "{}", output.status);
    assert_same(&reproducible_files(&dir), &expected);
}

#[cfg(target_os = "linux")]
#[test]
fn training_goes_on_when_its_output_is_full() {
    let temp = temp_dir();
    let whole = temp.path().join("whole");
    succeeds(&mut debug_run(&whole, SHORT));
    let expected = reproducible_files(&whole);

    let dir = temp.path().join("errors");
    let status = debug_run(&dir, SHORT)
        .stdout(full())
        .stderr(full())
        .status();
    assert!(status.as_ref().unwrap().success(), "{status:?}");
    assert_same(&reproducible_files(&dir), &expected);

    let dir = temp.path().join("results");
    let mut train = debug_run(&dir, SHORT);
    let output = train.stdout(full()).stderr(Stdio::piped()).spawn();
    let output = output.unwrap().wait_with_output().unwrap();
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    let note = text.lines().find(|line| line.starts_with("note: "));
    let note = note.unwrap_or_else(|| panic!("{text}"));
    assert!(
        note.contains("cannot write the result to standard output"),
        "{note}"
    );
    assert!(note.ends_with("scores.json` has it"), "{note}");
    assert_same(&reproducible_files(&dir), &expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let run = finished(BRIEF);
    let commands: [&[&str]; 3] = [
        &["eval", run.dir().to_str().unwrap(), "--json"],
        &["episodes", run.dir().to_str().unwrap()],
        &["config"],
    ];
    for args in commands {
        let mut command = rem();
        command.args(args).stdout(full()).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        let lines: Vec<&str> = text.lines().collect();
        let [.., error, hint] = lines[..] else {
            panic!("{text}");
        };
        assert!(
            error.starts_with("error: cannot write the result to standard output: No space left"),
            "{text}"
        );
        assert!(
            hint.starts_with("hint: free some space where standard output goes"),
            "{text}"
        );
    }
}

fn epoch_lines(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with("epoch "))
        .collect()
}

#[test]
fn an_epoch_is_a_line_of_at_most_four_numbers_and_100_columns() {
    let temp = temp_dir();
    let output = succeeds(&mut debug_run(&temp.path().join("run"), SHORT));
    let text = stderr(&output);
    let lines = epoch_lines(&text);
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert!(line.chars().count() <= 100, "{line}");
        assert!(line.ends_with(" left"), "{line}");
        let numbers = line.split("  ").count() - 2;
        assert_eq!(numbers, 4, "{line}");
        assert!(
            line.contains("  score ") && line.contains("  loss_obs "),
            "{line}"
        );
    }
    assert!(text.ends_with(" on disk\n"), "{text}");
    // Nothing else per epoch.
    let first = text.find("epoch 1/2").unwrap();
    assert_eq!(text[first..].lines().count(), 3, "{text}");
}

#[test]
fn quiet_and_verbose() {
    let temp = temp_dir();
    let quiet = succeeds(debug_run(&temp.path().join("quiet"), BRIEF).arg("-q"));
    assert_eq!(stderr(&quiet), "");
    assert!(stdout(&quiet).starts_with("catch: mean return "));
    let verbose = stderr(&succeeds(
        debug_run(&temp.path().join("verbose"), BRIEF).arg("-v"),
    ));
    for part in ["  world_model: loss ", " grad_norm ", "/s, "] {
        assert!(verbose.contains(part), "{verbose}");
    }
    assert_eq!(epoch_lines(&verbose).len(), 2, "{verbose}");
}

#[test]
fn colors_are_for_terminals_or_by_request() {
    let color = "\x1b[1m";
    let temp = temp_dir();
    let run = |name: &str, option: &str| {
        let mut command = debug_run(&temp.path().join(name), BRIEF);
        if !option.is_empty() {
            command.args(["--color", option]);
        }
        command
    };
    assert!(!stderr(&succeeds(&mut run("auto", ""))).contains('\x1b'));
    let always = stderr(&succeeds(run("always", "always").env("NO_COLOR", "1")));
    assert!(always.contains(color), "{always}");
    if !cfg!(target_os = "linux") {
        return;
    }
    let screen = |name: &str, option: &str, environment: &[(&str, &str)]| {
        let mut child = on_terminal(&run(name, option), environment)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        text
    };
    let colored = screen("terminal", "", &[]);
    assert!(colored.contains(color), "{colored}");
    // Bars and lines fit the terminal.
    let long = plain(&colored);
    let long = long.lines().filter(|line| line.starts_with("epoch "));
    for line in long {
        assert!(line.trim_end().chars().count() <= 100, "{line}");
    }
    for text in [
        screen("no-color", "", &[("NO_COLOR", "1")]),
        screen("never", "never", &[]),
    ] {
        assert!(!text.contains(color), "{text}");
        assert!(text.contains("epoch 2/2"), "{text}");
    }
}

/// The time of a resumed run is that of all its epochs.
#[test]
fn a_resumed_run_says_what_its_time_counts() {
    let run = finished(BRIEF);
    let run = run.changed(|dir| {
        // An epoch that took an hour, and one that is trained again.
        let path = dir.join("timing.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        let seconds = numbers(first, "seconds")[0];
        let slow = first.replacen(&seconds.to_string(), "3600.5", 1);
        fs::write(&path, text.replacen(first, &slow, 1)).unwrap();
    });
    let output = succeeds(resume(run.dir()).args(["--from-epoch", "1"]));
    let text = stdout(&output);
    assert!(text.contains("(1 h 0 min in all, "), "{text}");
    assert!(text.trim_end().ends_with(" s since epoch 1)"), "{text}");
}
