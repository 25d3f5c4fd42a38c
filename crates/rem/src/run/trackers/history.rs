//! The metrics of a run, one row per epoch.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rem_run::{MetricsLine, TimingLine, layout, parse_lines};

use crate::error::{Error, Result};

/// The metrics of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The epoch, from 1.
    pub epoch: u32,
    /// `phase/name` and value; `time/phase` and seconds. A value that is not finite is NaN.
    pub values: Vec<(String, f64)>,
    /// Seconds of all phases up to the end of this epoch.
    pub seconds: f64,
}

impl Row {
    pub(super) fn add(&mut self, phase: &str, values: &[(impl AsRef<str>, f64)]) {
        for (name, value) in values {
            // As in the file, where it is null.
            let value = if value.is_finite() { *value } else { f64::NAN };
            let tag = format!("{phase}/{}", name.as_ref());
            self.values.push((tag, value));
        }
    }

    pub(super) fn add_time(&mut self, phase: &str, seconds: f64) {
        self.values.push((format!("time/{phase}"), seconds));
        self.seconds += seconds;
    }

    /// The value of a tag.
    pub fn get(&self, tag: &str) -> Option<f64> {
        let found = self.values.iter().find(|(name, _)| name == tag);
        found.map(|(_, value)| *value)
    }
}

/// The metrics of a run, in the order of the epochs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One row per epoch.
    pub rows: Vec<Row>,
}

impl History {
    /// The epochs up to `last` in the logs of a run.
    ///
    /// # Errors
    ///
    /// If a log cannot be read. A log that does not exist has no lines.
    pub fn read(dir: &Path, last: u32) -> Result<Self> {
        let metrics = read(&dir.join(layout::METRICS))?;
        let timing = read(&dir.join(layout::TIMING))?;
        let timing: Vec<TimingLine> = parse_lines(&timing).collect();
        let mut rows: Vec<Row> = Vec::new();
        for line in parse_lines::<MetricsLine>(&metrics) {
            let MetricsLine::Scalars {
                epoch,
                phase,
                values,
            } = line
            else {
                continue;
            };
            if epoch > last {
                break;
            }
            if rows.last().is_none_or(|row| row.epoch != epoch) {
                rows.push(Row {
                    epoch,
                    ..Row::default()
                });
            }
            let row = rows.last_mut().expect("just pushed");
            row.add(&phase, &values);
            let timed = timing.iter().find(|t| t.epoch == epoch && t.phase == phase);
            if let Some(timed) = timed {
                row.add_time(&phase, timed.seconds);
            }
        }
        let mut history = Self::default();
        rows.into_iter().for_each(|row| history.push(row));
        Ok(history)
    }

    /// Adds a row whose `seconds` are those of its epoch alone.
    pub(super) fn push(&mut self, mut row: Row) {
        row.seconds += self.seconds();
        self.rows.push(row);
    }

    /// Seconds of all phases.
    pub fn seconds(&self) -> f64 {
        self.rows.last().map_or(0.0, |row| row.seconds)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(Error::io(path)),
    }
}
