//! `rem bench play`: the dream of a run is stepped as the console does it, and its pace is told.

mod support;

use support::{SHORT, finished, place, refused, rem, stdout, succeeds};

#[test]
fn the_pace_of_a_dream_is_told() {
    let run = finished(SHORT);
    let told = stdout(&succeeds(
        rem()
            .args(["bench", "play", "--steps", "20"])
            .arg(run.dir()),
    ));
    let line: serde_json::Value = serde_json::from_str(&told).unwrap();
    let number = |key: &str| line[key].as_f64().unwrap();
    assert_eq!(
        (line["game"].as_str(), number("steps")),
        (Some("catch"), 20.0)
    );
    assert!(number("frames_per_second") >= 1.0, "{told}");
    assert!(
        number("ms_median") > 0.0 && number("ms_longest") >= number("ms_median"),
        "{told}"
    );
}

#[test]
fn without_a_run_there_is_nothing_to_dream() {
    let place = place();
    let (error, _) = refused(rem().args(["bench", "play"]).arg(place.path()));
    assert!(error.contains("there is no run in it"), "{error}");
}
