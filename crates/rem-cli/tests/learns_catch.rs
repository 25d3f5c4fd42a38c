//! The embedded default learns its game: `rem train` as a newcomer runs it, some ten minutes on two cores.

mod support;

use support::rem;

#[test]
fn learns_catch() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let status = rem()
        .arg("train")
        .arg("--run-dir")
        .arg(&run)
        .status()
        .unwrap();
    assert!(status.success());
    let scores = std::fs::read_to_string(run.join("scores.json")).unwrap();
    let (_, last) = scores
        .split_once("\"final\"")
        .expect("a finished run has a final score");
    let mean = last
        .split("\"mean\":")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let mean: f64 = mean.trim().parse().unwrap();
    // A random player has -0.5, the best possible is 1; other processors round differently, so leave them room.
    assert!(mean >= 0.8, "final mean return {mean}");
}
