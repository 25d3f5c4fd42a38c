//! A run in the list of runs.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rem::run::Scores;
use serde::Serialize;
use serde_json::Value;

use super::{config, json};
use crate::library::own_file;

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

/// What a summary is made of; all but the last are signs of life.
const FILES: [&str; 6] = [
    "metrics.jsonl",
    "timing.jsonl",
    "checkpoints",
    "config.toml",
    "protocol.json",
    "scores.json",
];

/// When a file was last changed, and how long it is.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// What was seen of a run last: its files are read again only when they have changed.
#[derive(Default)]
pub struct Glance(Option<([Stamp; 6], Known)>);

/// What the files of a run tell, whatever the time is.
struct Known {
    game: Option<String>,
    seed: Option<u64>,
    epoch: u32,
    epochs: Option<u32>,
    score: Option<f64>,
    finished: bool,
    /// How long it may be quiet while it trains.
    patience: Duration,
}

impl Glance {
    /// A run now.
    pub fn summary(&mut self, name: &str, dir: &Path) -> Summary {
        let stamps = FILES.map(|file| stamp(&dir.join(file)));
        let known = match self.0.take() {
            Some((before, known)) if before == stamps => known,
            _ => Known::read(dir),
        };
        let signs = stamps[..5].iter().flatten().map(|(written, _)| *written);
        let (_, known) = self.0.insert((stamps, known));
        let quiet = signs.max().map(|latest| {
            let since = SystemTime::now().duration_since(latest);
            since.unwrap_or_default()
        });
        Summary {
            name: name.into(),
            state: match quiet {
                _ if known.finished => State::Finished,
                Some(quiet) if quiet < known.patience => State::Training,
                _ => State::Stopped,
            },
            game: known.game.clone(),
            seed: known.seed,
            epoch: known.epoch,
            epochs: known.epochs,
            score: known.score,
            seconds_quiet: quiet.map(|quiet| quiet.as_secs_f64()),
        }
    }
}

/// Of all runs of a list.
#[derive(Default)]
pub struct Summaries(Mutex<HashMap<PathBuf, Glance>>);

impl Summaries {
    pub fn of(&self, runs: &BTreeMap<String, PathBuf>) -> Vec<Summary> {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::new();
        let summary = |(name, dir): (&String, &PathBuf)| {
            let glance = now.entry(dir.clone());
            let glance = glance.or_insert_with(|| before.remove(dir).unwrap_or_default());
            glance.summary(name, dir)
        };
        let summaries = runs.iter().map(summary).collect();
        *before = now;
        summaries
    }
}

impl Known {
    fn read(dir: &Path) -> Self {
        let config = config(dir).ok();
        let scores: Option<Scores> = json(dir, "scores.json").ok().flatten();
        let protocol = || json::<Value>(dir, "protocol.json").ok().flatten();
        let game = config.as_ref().map(|config| config.env.game.clone());
        Self {
            game: game.or_else(|| Some(protocol()?["game"].as_str()?.to_owned())),
            seed: config.as_ref().map(|config| config.seed),
            epoch: last_lines(dir, "metrics.jsonl")
                .iter()
                .rev()
                .find_map(|line| Some(line["epoch"].as_u64()? as u32))
                .unwrap_or(0),
            epochs: config.map(|config| config.train.epochs),
            finished: scores.as_ref().is_some_and(|s| s.final_score.is_some()),
            score: scores.and_then(|s| Some(s.evaluations.last()?.mean)),
            patience: LONG.max(slowest_phase(dir).saturating_mul(3)),
        }
    }
}

/// The longest of its latest phases.
fn slowest_phase(dir: &Path) -> Duration {
    let lines = last_lines(dir, "timing.jsonl");
    let seconds = lines.iter().filter_map(|line| line["seconds"].as_f64());
    let longest = seconds.fold(0.0, f64::max);
    Duration::try_from_secs_f64(longest).unwrap_or_default()
}

/// The whole lines among a log's last few thousand bytes.
fn last_lines(dir: &Path, log: &str) -> Vec<Value> {
    const BYTES: u64 = 8192;
    let read = || -> Option<Vec<u8>> {
        let mut file = File::open(own_file(dir, log).ok()??).ok()?;
        let length = file.metadata().ok()?.len();
        let start = length.saturating_sub(BYTES);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
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
    use std::cell::RefCell;
    use std::fs;

    #[test]
    fn a_time_beyond_all_measure_is_no_harm() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("timing.jsonl"), "{\"seconds\":1e19}\n").unwrap();
        let state = Glance::default().summary("run", place.path()).state;
        assert_eq!(state, State::Training);
    }

    #[test]
    fn files_that_stay_as_they_are_are_read_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("metrics.jsonl");
        let write = |epoch: u32| {
            fs::write(&log, format!("{{\"epoch\":{epoch}}}\n")).unwrap();
            let log = File::options().append(true).open(&log).unwrap();
            log.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        let runs = BTreeMap::from([("run".to_owned(), place.path().to_owned())]);
        let summaries = Summaries::default();
        write(3);
        assert_eq!(summaries.of(&runs)[0].epoch, 3);
        write(4);
        assert_eq!(summaries.of(&runs)[0].epoch, 3);
        write(10);
        assert_eq!(summaries.of(&runs)[0].epoch, 10);
        assert!(summaries.of(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn a_run_goes_from_training_to_stopped_or_finished() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        // Kept: what changes must be seen all the same.
        let glance = RefCell::new(Glance::default());
        let seen = || glance.borrow_mut().summary("run", dir);
        let state = || seen().state;
        assert_eq!(state(), State::Stopped);
        let log = dir.join("metrics.jsonl");
        fs::write(&log, "{\"epoch\":3,\"phase\":\"collect\"}\n{\"epoch\":4").unwrap();
        assert_eq!(state(), State::Training);
        assert_eq!(seen().epoch, 3);
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
        assert_eq!((state(), seen().score), (State::Finished, Some(0.5)));
    }
}
