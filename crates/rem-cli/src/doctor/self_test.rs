//! A tiny agent trained for seconds, its numbers compared with recorded ones.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rem::config::{Config, Precision};
use rem::run::RunDir;
use rem::threads;
use rem::train::Trainer;
use serde_json::{Map, Value};

use super::Finding::{self, Fine, Note, Wrong};

/// The metrics of `rem train --preset debug --seed 1 --set precision=f32 --set tokenizer.perceptual=off --device flex`.
/// Every phase is in them, and with AVX-512 they are the same to the last digit for any number of threads.
const RECORDED: &str = include_str!("recorded.jsonl");

/// Without AVX2 the largest difference is 2e-6 of the value; with AVX2 but no AVX-512 it was not recorded.
const TOLERANCE: f64 = 1e-4;
/// Of losses in mixed precision from those in f32, where 4e-3 was measured.
const MIXED_TOLERANCE: f64 = 0.02;

/// Trains in f32, and in mixed precision too if that is what the run will use. Writes into `place` and cleans up.
pub fn run(precision: Precision, threads: usize, place: &Path) -> Finding {
    let start = Instant::now();
    let verdict = train(Precision::F32, threads, place).and_then(|metrics| {
        let exact = metrics == RECORDED;
        let mut difference = largest_difference(&metrics, |_| true)?;
        let mut tolerance = TOLERANCE;
        if precision == Precision::Mixed && difference <= tolerance {
            let metrics = train(precision, threads, place)?;
            difference = largest_difference(&metrics, |name| name == "loss")?;
            tolerance = MIXED_TOLERANCE;
        }
        Ok((exact, difference, tolerance))
    });
    let seconds = start.elapsed().as_secs_f64();
    let recorded = crc32fast::hash(RECORDED.as_bytes());
    match verdict {
        Err(error) => Wrong(
            format!("a tiny training failed: {error:#}"),
            "if it is not about files, please report it with this output".into(),
        ),
        Ok((_, difference, tolerance)) if difference > tolerance => Wrong(
            format!("a tiny training differs from the recorded one by {difference:.1e} of a value, allowed are {tolerance:.0e}"),
            "this program does not compute what it should on this machine; please report it with this output".into(),
        ),
        Ok((true, ..)) => Fine(format!(
            "a tiny training in {seconds:.1} s, to the last digit as recorded (checksum {recorded:08x})"
        )),
        Ok((false, difference, _)) => Note(
            format!("a tiny training in {seconds:.1} s, as recorded to {difference:.1e} of each value"),
            "not to the last digit: another instruction set or math library".into(),
        ),
    }
}

/// The metrics of a run that is gone again.
fn train(precision: Precision, threads: usize, place: &Path) -> Result<String> {
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
        .tempdir_in(place)
        .with_context(|| format!("cannot write in `{}`", place.display()))?;
    let run = RunDir::create(folder.path())?;
    let trainer = Trainer::start(run, config, None)?;
    threads::on_worker(|| trainer.train(&mut |_| {}))?;
    let file = folder.path().join("metrics.jsonl");
    std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))
}

/// Between the numbers of these names in `metrics` and in the record, relative to the recorded one (or to 1, if that is
/// larger). Infinite where the record has what the metrics have not; what is not a number is null there.
fn largest_difference(metrics: &str, wanted: impl Fn(&str) -> bool) -> Result<f64> {
    let (ours, recorded) = (lines(metrics)?, lines(RECORDED)?);
    if ours.len() != recorded.len() {
        return Ok(f64::INFINITY);
    }
    let mut largest = 0.0f64;
    for (ours, recorded) in ours.iter().zip(&recorded) {
        for (name, value) in recorded.iter().filter(|(name, _)| wanted(name)) {
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
    fn a_changed_number_is_a_difference() {
        let all = |metrics: &str| largest_difference(metrics, |_| true).unwrap();
        assert_eq!(all(RECORDED), 0.0);
        assert_eq!(all(""), f64::INFINITY);
        let loss = "\"loss\":0.9369646906852722";
        assert!(RECORDED.contains(loss));
        let changed = all(&RECORDED.replace(loss, "\"loss\":0.9379646906852722"));
        assert!((changed - 0.001).abs() < 1e-9, "{changed}");
        assert_eq!(all(&RECORDED.replace(loss, "\"loss\":null")), f64::INFINITY);
        assert_eq!(all(&RECORDED.replace(loss, "\"lost\":0")), f64::INFINITY);
        assert_eq!(
            all(&RECORDED.replacen("collect", "elsewhere", 1)),
            f64::INFINITY
        );
        let reward = "\"rewards\":1.0186526477336884";
        let changed = RECORDED.replace(reward, "\"rewards\":9");
        assert_ne!(changed, RECORDED);
        assert_eq!(
            largest_difference(&changed, |name| name == "loss").unwrap(),
            0.0
        );
    }
}
