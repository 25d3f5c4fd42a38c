//! What is known of a run, from its files.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;
use rem::run::{Scores, checkpoint, read_config};
use rem_run::{Labels, Owner, ProtocolValues, files, layout};
use serde::Serialize;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process trains it
    Running,
    /// It has a final score
    Done,
    /// `rem train --resume` continues it
    Stopped,
    /// Its config cannot be read
    Damaged,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Damaged => "damaged",
        }
    }
}

/// A run.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its directory below the listed one.
    pub run: String,
    pub path: PathBuf,
    pub state: State,
    pub game: Option<String>,
    pub seed: Option<u64>,
    /// The presets of its config; of older runs and runs of studies they are not known.
    pub preset: Option<String>,
    /// The mean return of the last evaluation.
    pub score: Option<f64>,
    /// Complete epochs.
    pub epoch: u32,
    pub epochs: Option<u32>,
    pub bytes: u64,
    /// Seconds since the run last wrote a file.
    pub age_seconds: Option<f64>,
    #[serde(flatten)]
    pub labels: Labels,
}

impl Row {
    /// Reads the files of a run. What cannot be read is missing.
    pub fn read(run: String, dir: &Path) -> Self {
        let config = read_config(dir).ok();
        let scores = Scores::read(dir).ok().flatten();
        let protocol = ProtocolValues::read(dir).ok().flatten();
        let text = |key: &str| Some(protocol.as_ref()?.text(key)?.to_owned());
        let is_done = scores.as_ref().is_some_and(|s| s.final_score.is_some());
        Self {
            state: match Owner::of_run(dir) {
                Some(_) => State::Running,
                None if is_done => State::Done,
                None if config.is_some() => State::Stopped,
                None => State::Damaged,
            },
            game: (config.as_ref().map(|config| config.env.game.clone()))
                .or_else(|| text("game"))
                .or_else(|| Some(scores.as_ref()?.game.clone())),
            seed: config.as_ref().map(|config| config.seed),
            preset: text("preset"),
            score: scores.and_then(|scores| Some(scores.evaluations.last()?.mean)),
            epoch: checkpoint::epochs(dir).last().copied().unwrap_or(0),
            epochs: config.as_ref().map(|config| config.train.epochs),
            bytes: files::directory_size(dir),
            age_seconds: age(dir),
            labels: Labels::read(dir).unwrap_or_default(),
            path: dir.into(),
            run,
        }
    }
}

/// Seconds since training last wrote a file.
fn age(dir: &Path) -> Option<f64> {
    let names = [
        layout::CONFIG,
        layout::PROTOCOL,
        layout::METRICS,
        layout::SCORES,
        layout::CHECKPOINTS,
    ];
    let written = |name| dir.join(name).metadata().ok()?.modified().ok();
    let last = names.into_iter().filter_map(written).max()?;
    let age = SystemTime::now().duration_since(last).unwrap_or_default();
    Some(age.as_secs_f64())
}
