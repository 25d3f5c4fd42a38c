//! `rem episodes` lists, exports and reads back episodes, and deletes only media files.

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use support::{
    SHORT, all_files, corrupt_outcome, fails, finished, output_of, rem, stderr, stdout, succeeds,
};

#[test]
fn listed_episodes_export_and_read_back() {
    let run = finished(SHORT);
    let listed = stdout(&succeeds(rem().arg("episodes").arg(run.dir())));
    let lines: Vec<&str> = listed.lines().collect();
    // 80 steps in episodes of 7 or 8.
    assert!(lines.len() > 8 && lines[0].contains("return"), "{listed}");
    assert!(lines[1].ends_with("terminated"), "{listed}");
    let last = stdout(&succeeds(
        rem().arg("episodes").arg(run.dir()).args(["--last", "2"]),
    ));
    assert_eq!(last.lines().count(), 3);

    let temp = support::temp_dir();
    let export = |format: &str, name: &str| {
        let file = temp.path().join(name);
        let mut command = rem();
        command
            .arg("episodes")
            .arg(run.dir())
            .args(["export", "0", "--to", format, "--out"])
            .arg(&file);
        succeeds(&mut command);
        file
    };
    assert!(
        fs::read(export("gif", "e.gif"))
            .unwrap()
            .starts_with(b"GIF89a")
    );
    assert!(
        fs::read(export("strip", "e.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    let file = export("npz", "e.npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&file)));
    let steps: usize = lines[1].split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(
        shown.starts_with(&format!("catch: {steps} steps")),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), steps + 2);
    // An episode file exports like an episode of a run.
    let again = temp.path().join("again.npz");
    succeeds(
        rem()
            .arg("episodes")
            .arg(&file)
            .args(["export", "--to", "npz", "--out"])
            .arg(&again),
    );
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap());
}

/// A chunk with an impossible outcome is skipped with a note; earlier episodes are still listed.
#[test]
fn damaged_replay_lists_the_readable_episodes() {
    let run = finished(SHORT);
    let list = |dir: &Path| output_of(rem().arg("episodes").arg(dir));
    let whole = stdout(&list(run.dir())).lines().count();
    let second = run.changed(|dir| corrupt_outcome(&dir.join("replay/epoch-000002.chunk")));
    let first = run.changed(|dir| corrupt_outcome(&dir.join("replay/epoch-000001.chunk")));
    for (bad, least, most) in [(second, 3, whole - 1), (first, 1, 1)] {
        let output = list(bad.dir());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("impossible outcome"));
        let lines = stdout(&output).lines().count();
        assert!((least..=most).contains(&lines), "{lines} of {whole}");
    }
}

/// `rem episodes RUN | head` must not fail.
#[test]
fn closed_pipe_is_not_an_error() {
    let run = finished(SHORT);
    let piped = Stdio::piped;
    let mut command = rem();
    command.arg("episodes").arg(run.dir());
    let mut child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn delete_media_keeps_other_files() {
    let run = finished(SHORT);
    let note = run.dir().join("media/mine.png");
    fs::write(&note, "kept").unwrap();
    let before = all_files(run.dir());
    let delete = |words: &[&str]| {
        stdout(&succeeds(
            rem()
                .arg("episodes")
                .arg(run.dir())
                .arg("delete-media")
                .args(words),
        ))
    };
    assert!(delete(&["--keep-last"]).starts_with("deleted 4 media files"));
    assert!(run.dir().join("media/epoch-000002-dream.gif").exists());
    assert!(delete(&[]).starts_with("deleted 4 media files"));
    let mut after = before.clone();
    after.retain(|name, _| !name.starts_with("media/epoch-"));
    support::assert_same(&all_files(run.dir()), &after);
}

#[test]
fn missing_runs_and_episodes_print_an_error_and_a_hint() {
    let run = finished(SHORT);
    let temp = support::temp_dir();
    let (error, _) = fails(rem().arg("episodes").arg(temp.path()));
    assert!(error.contains("does not contain a run"), "{error}");
    let (error, hint) = fails(
        rem()
            .arg("episodes")
            .arg(run.dir())
            .args(["export", "999", "--to", "gif"]),
    );
    assert!(
        error.contains("no episode 999") && hint.contains("episodes 0 to"),
        "{error} {hint}"
    );
    let foreign = temp.path().join("foreign.npz");
    fs::write(&foreign, "not an archive").unwrap();
    let (error, _) = fails(rem().arg("episodes").arg(&foreign));
    assert!(error.contains("not an .npz file"), "{error}");
    let (error, _) = fails(rem().arg("watch").arg(temp.path().join("absent")));
    assert!(error.contains("no such directory"), "{error}");
}
