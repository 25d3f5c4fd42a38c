//! `rem train` without arguments learns `catch`. Takes several minutes.

mod support;

use support::rem;

#[test]
fn default_run_learns_catch() {
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
    // Random play scores -0.5, optimal play 1. CPUs round differently, hence the margin.
    assert!(mean >= 0.8, "final mean return {mean}");
}
