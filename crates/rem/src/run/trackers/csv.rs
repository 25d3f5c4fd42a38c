//! `metrics.csv`: one row per epoch, one column per metric.

use std::io;
use std::path::{Path, PathBuf};

use rem_run::files::{failed, write_atomic};
use rem_run::metrics::METRICS;
use rem_run::{Phase, files};

use super::{History, Row};

/// The table of a run.
pub(super) struct Table {
    path: PathBuf,
    columns: Vec<String>,
}

impl Table {
    /// Replaces the file by a table of the history.
    pub(super) fn create(path: &Path, history: &History) -> io::Result<Self> {
        let columns = columns(history);
        let mut text = format!("epoch,{}\n", columns.join(","));
        for row in &history.rows {
            text += &line(&columns, row);
        }
        let dir = files::parent(path);
        std::fs::create_dir_all(dir).map_err(failed("create directory", dir))?;
        write_atomic(path, text.as_bytes())?;
        Ok(Self {
            path: path.into(),
            columns,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn append(&self, row: &Row) -> io::Result<()> {
        super::append(&self.path, line(&self.columns, row).as_bytes())
    }
}

/// All metrics, whether or not a run logs them, so that the tables of different runs have the same columns; then those of
/// runs from before a metric was renamed.
fn columns(history: &History) -> Vec<String> {
    let metrics = METRICS.iter().map(|metric| metric.tag());
    let times = Phase::ALL.iter().map(|phase| format!("time/{phase}"));
    let mut columns: Vec<String> = metrics.chain(times).collect();
    for (tag, _) in history.rows.iter().flat_map(|row| &row.values) {
        if !columns.contains(tag) {
            columns.push(tag.clone());
        }
    }
    columns
}

/// A row, with nothing where the epoch has no value. Numbers are in the shortest form that parses to the same.
fn line(columns: &[String], row: &Row) -> String {
    let cell = |tag: &String| match row.get(tag) {
        Some(value) if value.is_nan() => "nan".into(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let cells: Vec<String> = columns.iter().map(cell).collect();
    format!("{},{}\n", row.epoch, cells.join(","))
}
