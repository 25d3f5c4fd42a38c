//! `trackers.json`: where the metrics of a run go.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rem_run::{layout, read_json, write_json};
use serde::{Deserialize, Serialize};

use super::Tracker;
use crate::error::Result;

/// Where the metrics of a run go, and the identifier that the run has there. Not part of the config: it changes no
/// number, and may change when a run resumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Where training writes.
    pub log: Vec<Tracker>,
    /// 32 hexadecimal digits.
    pub id: String,
    /// Seconds since the Unix epoch.
    pub started: f64,
}

impl State {
    /// The choice of a run that made none: TensorBoard. It starts now, or did so when its protocol was written.
    fn new(dir: &Path) -> Self {
        let written = fs::metadata(dir.join(layout::PROTOCOL)).and_then(|file| file.modified());
        let started = written.unwrap_or_else(|_| SystemTime::now());
        let started = started.duration_since(UNIX_EPOCH);
        // Not from the run's seed: the same run, trained twice, is two runs for those who compare them.
        let mut id = [0; 16];
        getrandom::fill(&mut id).expect("the system provides randomness");
        Self {
            log: vec![Tracker::Tensorboard],
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            started: started.map_or(0.0, |time| time.as_secs_f64()),
        }
    }

    /// The choice of the run in `dir`, or the default.
    ///
    /// # Errors
    ///
    /// If there is a file that cannot be read.
    pub fn read(dir: &Path) -> Result<Self> {
        let hint = "remove the file to log to TensorBoard only, and pass `--log` again";
        let found = read_json(&dir.join(layout::TRACKERS), hint)?;
        Ok(found.unwrap_or_else(|| Self::new(dir)))
    }

    /// Writes `trackers.json`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        Ok(write_json(&dir.join(layout::TRACKERS), self)?)
    }
}
