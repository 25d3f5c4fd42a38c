//! `rem bench play` reports the frame rate of a run's dreams.

mod support;

use support::{SHORT, fails, finished, rem, stdout, succeeds, temp_dir};

#[test]
fn reports_the_frame_rate_of_dreams() {
    let run = finished(SHORT);
    let text = stdout(&succeeds(
        rem()
            .args(["bench", "play", "--json", "--steps", "20"])
            .arg(run.dir()),
    ));
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| line[key].as_f64().unwrap();
    assert_eq!(
        (line["game"].as_str(), number("steps")),
        (Some("catch"), 20.0)
    );
    assert!(number("frames_per_second") >= 1.0, "{text}");
    assert!(
        number("ms_median") > 0.0 && number("ms_longest") >= number("ms_median"),
        "{text}"
    );
    let sentence = stdout(&succeeds(
        rem()
            .args(["bench", "play", "--steps", "20"])
            .arg(run.dir()),
    ));
    assert!(
        sentence.starts_with("dreams of catch run at ") && sentence.lines().count() == 1,
        "{sentence}"
    );
}

#[test]
fn directories_without_a_run_are_rejected() {
    let temp = temp_dir();
    let (error, _) = fails(rem().args(["bench", "play"]).arg(temp.path()));
    assert!(error.contains("does not contain a run"), "{error}");
}
