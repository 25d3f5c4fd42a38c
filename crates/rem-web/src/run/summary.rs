//! A run in the list of runs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rem::run::{Scores, read_config};
use serde::Serialize;
use serde_json::Value;

use super::json;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub name: String,
    pub state: State,
    pub game: Option<String>,
    pub seed: Option<u64>,
    /// Of the last line in `metrics.jsonl`.
    pub epoch: u32,
    pub epochs: Option<u32>,
    /// The mean of the last evaluation.
    pub score: Option<f64>,
    /// Since the last sign of life.
    pub seconds_quiet: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has written something lately.
    Training,
    /// It has not, and is not at its end.
    Stopped,
    Finished,
}

/// A run that has written nothing for so long has stopped, unless one of its phases took longer.
const LONG: Duration = Duration::from_secs(120);

impl Summary {
    pub fn read(name: &str, dir: &Path) -> Self {
        let config = read_config(dir).ok();
        let scores: Option<Scores> = json(&dir.join("scores.json")).ok().flatten();
        let protocol = || json::<Value>(&dir.join("protocol.json")).ok().flatten();
        let game = config.as_ref().map(|config| config.env.game.clone());
        let quiet = quiet(dir);
        let finished = scores.as_ref().is_some_and(|s| s.final_score.is_some());
        let patience = LONG.max(3 * slowest_phase(dir));
        Self {
            name: name.into(),
            state: match quiet {
                _ if finished => State::Finished,
                Some(quiet) if quiet < patience => State::Training,
                _ => State::Stopped,
            },
            game: game.or_else(|| Some(protocol()?["game"].as_str()?.to_owned())),
            seed: config.as_ref().map(|config| config.seed),
            epoch: last_lines(&dir.join("metrics.jsonl"))
                .iter()
                .rev()
                .find_map(|line| Some(line["epoch"].as_u64()? as u32))
                .unwrap_or(0),
            epochs: config.map(|config| config.train.epochs),
            score: scores.and_then(|s| Some(s.evaluations.last()?.mean)),
            seconds_quiet: quiet.map(|quiet| quiet.as_secs_f64()),
        }
    }
}

/// The time since anything of a run was written.
fn quiet(dir: &Path) -> Option<Duration> {
    let files = [
        "metrics.jsonl",
        "timing.jsonl",
        "checkpoints",
        "config.toml",
        "protocol.json",
    ];
    let written = files
        .iter()
        .filter_map(|file| dir.join(file).metadata().ok()?.modified().ok());
    let latest = written.max()?;
    Some(SystemTime::now().duration_since(latest).unwrap_or_default())
}

/// The longest of its latest phases.
fn slowest_phase(dir: &Path) -> Duration {
    let lines = last_lines(&dir.join("timing.jsonl"));
    let seconds = lines.iter().filter_map(|line| line["seconds"].as_f64());
    let longest = seconds.fold(0.0, f64::max);
    Duration::try_from_secs_f64(longest).unwrap_or_default()
}

/// The whole lines among a log's last few thousand bytes.
fn last_lines(path: &Path) -> Vec<Value> {
    const BYTES: u64 = 8192;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_run_goes_from_training_to_stopped_or_finished() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        let state = || Summary::read("run", dir).state;
        assert_eq!(state(), State::Stopped);
        let log = dir.join("metrics.jsonl");
        fs::write(&log, "{\"epoch\":3,\"phase\":\"collect\"}\n{\"epoch\":4").unwrap();
        assert_eq!(state(), State::Training);
        assert_eq!(Summary::read("run", dir).epoch, 3);
        let past = SystemTime::now() - Duration::from_secs(600);
        File::options()
            .append(true)
            .open(&log)
            .unwrap()
            .set_modified(past)
            .unwrap();
        assert_eq!(state(), State::Stopped);
        fs::write(dir.join("timing.jsonl"), "{\"seconds\":500.0}\n").unwrap();
        assert_eq!(state(), State::Training);
        let score = r#"{"epoch": 4, "steps": 9, "mean": 0.5, "returns": [0.5]}"#;
        let scores = format!(
            r#"{{"game": "catch", "seed": 1, "evaluations": [{score}], "final": {score}}}"#
        );
        fs::write(dir.join("scores.json"), scores).unwrap();
        assert_eq!(
            (state(), Summary::read("run", dir).score),
            (State::Finished, Some(0.5))
        );
    }
}
