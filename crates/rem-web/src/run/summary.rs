//! The summary of a run: what the list of runs shows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rem::run::Scores;
use rem_run::{Labels, ProtocolValues, Score, layout, parse_lines};
use serde::Serialize;
use serde_json::Value;

use super::config;
use super::files::{read_json, run_file};
use super::preset;

/// A row in the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// The name of the run in the list.
    pub name: String,
    /// Whether it trains.
    pub state: RunState,
    /// The name in `labels.json`.
    pub title: Option<String>,
    /// Its tags in `labels.json`.
    pub tags: BTreeSet<String>,
    /// Its note in `labels.json`.
    pub note: Option<String>,
    /// The name of the environment.
    pub game: Option<String>,
    /// The preset that it started from, if `protocol.json` has it, or the nearest one.
    pub preset: Option<String>,
    /// The number of keys in which the config differs from it, if it is the nearest one.
    pub preset_changes: Option<usize>,
    /// The seed.
    pub seed: Option<u64>,
    /// The epoch of the last line in `metrics.jsonl`.
    pub epoch: u32,
    /// The epochs of the whole run.
    pub epochs: Option<u32>,
    /// The mean return of the last evaluation.
    pub score: Option<f64>,
    /// Epochs and mean returns of evaluations, thinned out to [`CURVE_POINTS`].
    pub curve: Vec<(u32, f32)>,
    /// Time since the run last wrote a file.
    pub idle_seconds: Option<f64>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// The run has written a file recently.
    Training,
    /// The run has not written a file recently, and has no final score.
    Stopped,
    /// The run has a final score.
    Finished,
}

/// A run that writes no file for this long is stopped, unless its phases take longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Most points of the curve in a summary: a sparkline has few pixels.
const CURVE_POINTS: usize = 60;

/// The files of a summary. A change of one of the first [`WRITTEN`] means that the run is training.
const FILES: [&str; 7] = [
    layout::METRICS,
    layout::TIMING,
    layout::CHECKPOINTS,
    layout::CONFIG,
    layout::PROTOCOL,
    layout::SCORES,
    layout::LABELS,
];
const WRITTEN: usize = 5;

/// Modification time and length of a file.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads the summary of a run. Reads its files again only when they have changed.
#[derive(Default)]
pub(crate) struct SummaryReader(Option<([Stamp; FILES.len()], FileContents)>);

/// The part of a summary that does not depend on the current time.
struct FileContents {
    labels: Labels,
    game: Option<String>,
    preset: Option<String>,
    preset_changes: Option<usize>,
    seed: Option<u64>,
    epoch: u32,
    epochs: Option<u32>,
    score: Option<f64>,
    curve: Vec<(u32, f32)>,
    finished: bool,
    /// A training run writes at least this often.
    idle_timeout: Duration,
}

impl SummaryReader {
    pub fn read(&mut self, name: &str, dir: &Path) -> Summary {
        let stamps = FILES.map(|file| stamp(&dir.join(file)));
        let contents = match self.0.take() {
            Some((cached, contents)) if cached == stamps => contents,
            _ => FileContents::read(dir),
        };
        let written = stamps[..WRITTEN]
            .iter()
            .flatten()
            .map(|(written, _)| *written);
        let (_, contents) = self.0.insert((stamps, contents));
        let idle = written.max().map(|latest| {
            let since = SystemTime::now().duration_since(latest);
            since.unwrap_or_default()
        });
        Summary {
            name: name.into(),
            state: match idle {
                _ if contents.finished => RunState::Finished,
                Some(idle) if idle < contents.idle_timeout => RunState::Training,
                _ => RunState::Stopped,
            },
            title: contents.labels.name.clone(),
            tags: contents.labels.tags.clone(),
            note: contents.labels.note.clone(),
            game: contents.game.clone(),
            preset: contents.preset.clone(),
            preset_changes: contents.preset_changes,
            seed: contents.seed,
            epoch: contents.epoch,
            epochs: contents.epochs,
            score: contents.score,
            curve: contents.curve.clone(),
            idle_seconds: idle.map(|idle| idle.as_secs_f64()),
        }
    }
}

/// The summary readers of all runs.
#[derive(Default)]
pub(crate) struct SummaryCache(Mutex<HashMap<PathBuf, SummaryReader>>);

impl SummaryCache {
    pub fn read(&self, runs: &BTreeMap<String, PathBuf>) -> Vec<Summary> {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::new();
        let summary = |(name, dir): (&String, &PathBuf)| {
            let reader = now.entry(dir.clone());
            let reader = reader.or_insert_with(|| before.remove(dir).unwrap_or_default());
            reader.read(name, dir)
        };
        let summaries = runs.iter().map(summary).collect();
        *before = now;
        summaries
    }
}

impl FileContents {
    fn read(dir: &Path) -> Self {
        let config = config(dir).ok();
        let scores: Option<Scores> = read_json(dir, layout::SCORES).ok().flatten();
        let protocol = read_json::<ProtocolValues>(dir, layout::PROTOCOL);
        let protocol = protocol.ok().flatten();
        let recorded = |key: &str| Some(protocol.as_ref()?.text(key)?.to_owned());
        let nearest = config.as_ref().and_then(preset::nearest);
        let preset = recorded("preset").or(nearest.map(|nearest| nearest.name.into()));
        let nearest = nearest.filter(|nearest| preset.as_deref() == Some(nearest.name));
        let game = config.as_ref().map(|config| config.env.game.clone());
        let evaluations = scores.as_ref().map_or(&[][..], |s| &s.evaluations);
        let labels = read_json(dir, layout::LABELS).ok().flatten();
        Self {
            // Damaged labels are not worth an error here: they change nothing about the run.
            labels: labels.unwrap_or_default(),
            preset_changes: nearest.map(|nearest| nearest.changes),
            preset,
            curve: thinned(evaluations),
            game: game.or_else(|| recorded("game")),
            seed: config.as_ref().map(|config| config.seed),
            epoch: last_lines(dir, layout::METRICS)
                .iter()
                .rev()
                .find_map(|line| Some(line["epoch"].as_u64()? as u32))
                .unwrap_or(0),
            epochs: config.map(|config| config.train.epochs),
            finished: scores.as_ref().is_some_and(|s| s.final_score.is_some()),
            score: evaluations.last().map(|score| score.mean),
            idle_timeout: IDLE_TIMEOUT.max(slowest_phase(dir).saturating_mul(3)),
        }
    }
}

/// The first, the last, and evenly spaced evaluations between them.
fn thinned(evaluations: &[Score]) -> Vec<(u32, f32)> {
    let count = evaluations.len().min(CURVE_POINTS);
    let index = |i: usize| i * (evaluations.len() - 1) / (count - 1).max(1);
    let point = |i: usize| {
        (
            evaluations[index(i)].epoch,
            evaluations[index(i)].mean as f32,
        )
    };
    (0..count).map(point).collect()
}

/// The duration of the slowest recent phase.
fn slowest_phase(dir: &Path) -> Duration {
    let lines = last_lines(dir, layout::TIMING);
    let seconds = lines.iter().filter_map(|line| line["seconds"].as_f64());
    let longest = seconds.fold(0.0, f64::max);
    Duration::try_from_secs_f64(longest).unwrap_or_default()
}

/// The complete lines in the last 8 KiB of a log.
fn last_lines(dir: &Path, log: &str) -> Vec<Value> {
    const BYTES: u64 = 8192;
    let read = || -> Option<Vec<u8>> {
        let mut file = File::open(run_file(dir, log).ok()??).ok()?;
        let length = file.metadata().ok()?.len();
        let start = length.saturating_sub(BYTES);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let bytes = read().unwrap_or_default();
    parse_lines(&bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;

    #[test]
    fn a_huge_phase_duration_does_not_panic() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("timing.jsonl"), "{\"seconds\":1e19}\n").unwrap();
        let state = SummaryReader::default().read("run", parent.path()).state;
        assert_eq!(state, RunState::Training);
    }

    #[test]
    fn unchanged_files_are_not_read_again() {
        let parent = tempfile::tempdir().unwrap();
        let log = parent.path().join("metrics.jsonl");
        let write = |epoch: u32| {
            fs::write(&log, format!("{{\"epoch\":{epoch}}}\n")).unwrap();
            let log = File::options().append(true).open(&log).unwrap();
            log.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        let runs = BTreeMap::from([("run".to_owned(), parent.path().to_owned())]);
        let summaries = SummaryCache::default();
        write(3);
        assert_eq!(summaries.read(&runs)[0].epoch, 3);
        write(4);
        assert_eq!(summaries.read(&runs)[0].epoch, 3);
        write(10);
        assert_eq!(summaries.read(&runs)[0].epoch, 10);
        assert!(summaries.read(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn a_long_curve_keeps_its_ends() {
        let score = |epoch| Score {
            epoch,
            steps: 0,
            mean: f64::from(epoch),
            returns: Vec::new(),
        };
        let curve = |epochs: u32| thinned(&(1..=epochs).map(score).collect::<Vec<_>>());
        assert_eq!(curve(0), []);
        assert_eq!(curve(1), [(1, 1.0)]);
        assert_eq!(curve(3), [(1, 1.0), (2, 2.0), (3, 3.0)]);
        let long = curve(601);
        assert_eq!(
            (long.len(), long[0], long[59]),
            (60, (1, 1.0), (601, 601.0))
        );
        assert!(long.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn labels_do_not_make_a_run_look_active() {
        let parent = tempfile::tempdir().unwrap();
        let mut reader = SummaryReader::default();
        assert_eq!(reader.read("run", parent.path()).title, None);
        let labels = r#"{"name": "longer horizon", "tags": ["paper"]}"#;
        fs::write(parent.path().join("labels.json"), labels).unwrap();
        let summary = reader.read("run", parent.path());
        assert_eq!(summary.title.as_deref(), Some("longer horizon"));
        assert!(summary.tags.contains("paper"));
        assert_eq!(
            (summary.state, summary.idle_seconds),
            (RunState::Stopped, None)
        );
        // Damaged labels count as none.
        fs::write(parent.path().join("labels.json"), "{").unwrap();
        assert_eq!(reader.read("run", parent.path()).title, None);
    }

    #[test]
    fn the_state_follows_writes_and_the_final_score() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path();
        // One reader throughout: it must notice every change.
        let reader = RefCell::new(SummaryReader::default());
        let summary = || reader.borrow_mut().read("run", dir);
        let state = || summary().state;
        assert_eq!(state(), RunState::Stopped);
        let log = dir.join("metrics.jsonl");
        fs::write(&log, "{\"epoch\":3,\"phase\":\"collect\"}\n{\"epoch\":4").unwrap();
        assert_eq!(state(), RunState::Training);
        assert_eq!(summary().epoch, 3);
        let past = SystemTime::now() - Duration::from_secs(600);
        File::options()
            .append(true)
            .open(&log)
            .unwrap()
            .set_modified(past)
            .unwrap();
        assert_eq!(state(), RunState::Stopped);
        fs::write(dir.join("timing.jsonl"), "{\"seconds\":500.0}\n").unwrap();
        assert_eq!(state(), RunState::Training);
        let score = r#"{"epoch": 4, "steps": 9, "mean": 0.5, "returns": [0.5]}"#;
        let scores = format!(
            r#"{{"game": "catch", "seed": 1, "evaluations": [{score}], "final": {score}}}"#
        );
        fs::write(dir.join("scores.json"), scores).unwrap();
        assert_eq!((state(), summary().score), (RunState::Finished, Some(0.5)));
    }
}
