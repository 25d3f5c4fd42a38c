//! Trains a tiny agent for a few seconds and compares its metrics with recorded ones.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rem::config::{Config, Precision};
use rem::env::EnvFactory;
use rem::run::RunDir;
use rem::threads;
use rem::train::Trainer;
use serde_json::{Map, Value};

use super::Finding::{self, Failed, Note, Passed};

/// The metrics of `rem train --preset debug --seed 1 --set precision=f32 --set tokenizer.perceptual=off --device flex`.
/// They cover every phase. With AVX-512 they are bit-identical for any number of threads.
const RECORDED: &str = include_str!("recorded.jsonl");

/// Maximum relative difference in f32. Measured without AVX2: 2e-6. Not measured: AVX2 without AVX-512.
const TOLERANCE: f64 = 1e-4;
/// Maximum relative difference of mixed-precision losses from f32 losses. Measured: 4e-3.
const MIXED_TOLERANCE: f64 = 0.02;

/// Trains in f32 and, if the run uses it, in mixed precision. Writes temporary files to `dir`.
pub fn run(precision: Precision, threads: usize, dir: &Path) -> Finding {
    let start = Instant::now();
    let result = train(Precision::F32, threads, dir).and_then(|metrics| {
        let exact = metrics == RECORDED;
        let mut difference = largest_difference(&metrics, |_| true)?;
        let mut tolerance = TOLERANCE;
        if precision == Precision::Mixed && difference <= tolerance {
            let metrics = train(precision, threads, dir)?;
            difference = largest_difference(&metrics, |name| name == "loss")?;
            tolerance = MIXED_TOLERANCE;
        }
        Ok((exact, difference, tolerance))
    });
    let seconds = start.elapsed().as_secs_f64();
    let recorded = crc32fast::hash(RECORDED.as_bytes());
    match result {
        Err(error) => Failed(
            format!("training failed: {error:#}"),
            "if this is not a file error, report it with this output".into(),
        ),
        Ok((_, difference, tolerance)) if difference > tolerance => Failed(
            format!(
                "metrics differ from the recorded ones by {difference:.1e} (relative), tolerance {tolerance:.0e}"
            ),
            "`rem` computes wrong results on this machine; report it with this output".into(),
        ),
        Ok((true, ..)) => Passed(format!(
            "trained in {seconds:.1} s; metrics match the recorded ones exactly (checksum {recorded:08x})"
        )),
        Ok((false, difference, _)) => Note(
            format!(
                "trained in {seconds:.1} s; metrics match the recorded ones within {difference:.1e} (relative)"
            ),
            "not bit-identical: the instruction set or math library differs".into(),
        ),
    }
}

/// Returns the metrics of a run in a temporary directory.
fn train(precision: Precision, threads: usize, dir: &Path) -> Result<String> {
    let set = [
        format!("precision={}", precision.name()),
        format!("threads={threads}"),
        "seed=1".into(),
        "device=flex".into(),
        "tokenizer.perceptual=off".into(),
    ];
    let config = Config::load("debug", &set)?;
    let folder = tempfile::Builder::new()
        .prefix(".rem-doctor-")
        .tempdir_in(dir)
        .with_context(|| format!("cannot write to `{}`", dir.display()))?;
    let run = RunDir::create(folder.path())?;
    let envs = EnvFactory::named(&config.env)?;
    let trainer = Trainer::start(run, config, envs, None)?;
    threads::on_worker(|| trainer.train(&mut |_| {}))?;
    let file = folder.path().join(rem_run::layout::METRICS);
    std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))
}

/// The largest difference between selected values of `metrics` and the recorded ones, relative to the recorded value if
/// that exceeds 1. Infinite if a recorded value is missing; values that are not finite are null.
fn largest_difference(metrics: &str, selected: impl Fn(&str) -> bool) -> Result<f64> {
    let (ours, recorded) = (lines(metrics)?, lines(RECORDED)?);
    if ours.len() != recorded.len() {
        return Ok(f64::INFINITY);
    }
    let mut largest = 0.0f64;
    for (ours, recorded) in ours.iter().zip(&recorded) {
        for (name, value) in recorded.iter().filter(|(name, _)| selected(name)) {
            let difference = match (value.as_f64(), ours.get(name).and_then(Value::as_f64)) {
                (Some(a), Some(b)) => (a - b).abs() / a.abs().max(1.0),
                _ if ours.get(name) == Some(value) => 0.0,
                _ => f64::INFINITY,
            };
            largest = largest.max(difference);
        }
    }
    Ok(largest)
}

fn lines(text: &str) -> Result<Vec<Map<String, Value>>> {
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_missing_and_null_values_count_as_differences() {
        let all = |metrics: &str| largest_difference(metrics, |_| true).unwrap();
        assert_eq!(all(RECORDED), 0.0);
        assert_eq!(all(""), f64::INFINITY);
        let (_, value) = RECORDED.split_once("\"loss\":").unwrap();
        let (value, _) = value.split_once(',').unwrap();
        let loss = format!("\"loss\":{value}");
        let larger = value.parse::<f64>().unwrap() + 0.001;
        let changed = all(&RECORDED.replace(&loss, &format!("\"loss\":{larger}")));
        assert!((changed - 0.001).abs() < 1e-9, "{changed}");
        assert_eq!(
            all(&RECORDED.replace(&loss, "\"loss\":null")),
            f64::INFINITY
        );
        assert_eq!(all(&RECORDED.replace(&loss, "\"lost\":0")), f64::INFINITY);
        assert_eq!(
            all(&RECORDED.replacen("collect", "elsewhere", 1)),
            f64::INFINITY
        );
        let (before, value) = RECORDED.split_once("\"loss_rewards\":").unwrap();
        let (_, after) = value.split_once(',').unwrap();
        let changed = format!("{before}\"loss_rewards\":9,{after}");
        assert_eq!(
            largest_difference(&changed, |name| name == "loss").unwrap(),
            0.0
        );
    }
}
