//! `rem report` reads the runs that `rem train` writes.

mod support;

use std::fs;

use support::*;

#[test]
fn report_includes_runs_score_files_and_published_scores() {
    let temp = temp_dir();
    let run = temp.path().join("mine/catch-seed1");
    succeeds(&mut debug_run(&run, SHORT));
    let scores = temp.path().join("theirs.json");
    fs::write(&scores, r#"{"Pong": [20.5, 18.0], "Boxing": [80, 85]}"#).unwrap();
    let out = temp.path().join("report");
    let output = succeeds(
        rem()
            .arg("report")
            .args([&run, &scores])
            .args(["--against", "rem,iris", "--replicates", "200", "--out"])
            .arg(&out),
    );
    let (notes, text) = (stderr(&output), stdout(&output));
    assert!(notes.contains("report.html, "), "{notes}");
    for part in ["IQM (↑)", "theirs", "catch", "games without a human score"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    // The tables contain the score and the protocol of the run.
    let runs = fs::read_to_string(out.join("tables/runs.csv")).unwrap();
    let scores = fs::read_to_string(run.join("scores.json")).unwrap();
    let last = scores.split("\"final\"").nth(1).unwrap();
    let (seed, mean) = (numbers(&scores, "seed")[0], numbers(last, "mean")[0]);
    let line = format!("catch-seed1,mine,catch,{seed},{mean},");
    assert!(runs.contains(&line), "no {line} in {runs}");
    let protocols = fs::read_to_string(out.join("tables/protocols.csv")).unwrap();
    for line in ["precision,mixed", "device,flex", "frame skip,1"] {
        assert!(protocols.contains(line), "{protocols}");
    }
}

#[test]
fn unknown_games_and_systems_print_an_error_and_a_hint() {
    let temp = temp_dir();
    let out = temp.path().join("report");
    let scores = temp.path().join("my.json");
    fs::write(&scores, r#"{"Pogn": [1]}"#).unwrap();
    let (error, hint) = fails(rem().arg("report").arg(&scores).arg("--out").arg(&out));
    assert!(
        error.contains("my.json`: `Pogn` is not a game of the benchmark"),
        "{error}"
    );
    assert!(hint.contains("did you mean `Pong`"), "{hint}");
    let (error, hint) = fails(
        rem()
            .args(["report", "--against", "strom", "--out"])
            .arg(&out),
    );
    assert_eq!(error, "no published scores for `strom`");
    assert_eq!(hint, "did you mean `storm`?");
    assert!(!out.exists());
}
