//! The metrics of a run for other programs: a CSV table, MLflow's file store, and offline runs of Weights & Biases.
//!
//! All three are views of `metrics.jsonl` and `timing.jsonl`. When a run starts or resumes, each is written anew from the
//! epochs that its checkpoint has, and then grows by an epoch at a time. So no step is there twice, whatever stopped the
//! run. Nothing of this is read by training.

mod csv;
mod history;
mod mlflow;
mod state;
mod wandb;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rem_run::files::failed;
use rem_run::layout;

use crate::config::Config;
use crate::error::{Error, Result};

pub use history::{History, Row};
pub use state::State;

/// Where metrics go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tracker {
    /// TensorBoard events, which training writes itself.
    Tensorboard,
    /// `metrics.csv` in the run directory.
    Csv,
    /// An offline run of Weights & Biases, in the run directory.
    Wandb,
    /// A run in MLflow's file store `mlruns`, beside the run directory.
    Mlflow,
}

/// What the files say about a run, besides its metrics.
#[derive(Clone, Debug)]
struct About {
    /// The name of the run directory.
    name: String,
    config: Config,
    /// 32 hexadecimal digits.
    id: String,
    /// Seconds since the Unix epoch.
    started: f64,
}

/// The files of a run.
pub struct Trackers {
    open: Vec<Open>,
    about: About,
    history: History,
    /// The metrics of the current epoch.
    row: Row,
}

/// A file, or files of a store.
enum Open {
    Csv(csv::Table),
    Wandb(wandb::Run),
    Mlflow(mlflow::Run),
}

impl Trackers {
    /// Writes the epochs up to `epoch` of the run in `dir`, of which there are checkpoints, and waits for more. CSV and
    /// W&B go to `dir`, and MLflow beside it; with `out`, all go there.
    ///
    /// # Errors
    ///
    /// If the run cannot be read, or a file cannot be written.
    pub fn open(dir: &Path, state: &State, epoch: u32, out: Option<&Path>) -> Result<Self> {
        let about = About::read(dir, state)?;
        let history = History::read(dir, epoch)?;
        let place = out.unwrap_or(dir);
        let store = match out {
            Some(out) => out.join(layout::MLFLOW),
            None => beside(dir)?.join(layout::MLFLOW),
        };
        let open = |tracker: &Tracker| -> io::Result<Option<Open>> {
            Ok(match tracker {
                Tracker::Tensorboard => None,
                Tracker::Csv => Some(Open::Csv(csv::Table::create(
                    &place.join(layout::CSV),
                    &history,
                )?)),
                Tracker::Wandb => Some(Open::Wandb(wandb::Run::create(
                    &place.join(layout::WANDB),
                    &about,
                    &history,
                )?)),
                Tracker::Mlflow => {
                    Some(Open::Mlflow(mlflow::Run::create(&store, &about, &history)?))
                }
            })
        };
        let opened: Vec<Option<Open>> = (state.log.iter())
            .map(open)
            .collect::<io::Result<_>>()
            .map_err(Error::File)?;
        Ok(Self {
            open: opened.into_iter().flatten().collect(),
            about,
            history,
            row: Row::default(),
        })
    }

    /// The directories and files that are written.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.open.iter().map(|open| match open {
            Open::Csv(table) => table.path(),
            Open::Wandb(run) => run.path(),
            Open::Mlflow(run) => run.path(),
        })
    }

    /// Number of epochs that are written.
    pub fn epochs(&self) -> usize {
        self.history.rows.len()
    }

    /// An epoch starts, for the first time or again.
    pub fn start_epoch(&mut self) {
        self.row = Row::default();
    }

    /// A phase of the epoch is done.
    pub fn phase_done(&mut self, phase: &str, seconds: f64, values: &[(&str, f64)]) {
        self.row.add(phase, values);
        self.row.add_time(phase, seconds);
    }

    /// The epoch is done and its checkpoint is written. A file that cannot be written is given up; the messages say which.
    pub fn epoch_done(&mut self, epoch: u32) -> Vec<String> {
        let row = std::mem::take(&mut self.row);
        self.append(Row { epoch, ..row })
    }

    fn append(&mut self, row: Row) -> Vec<String> {
        self.history.push(row);
        let row = self.history.rows.last().expect("just pushed");
        let about = &self.about;
        write_each(&mut self.open, |open| match open {
            Open::Csv(table) => table.append(row),
            Open::Wandb(run) => run.append(about, row),
            Open::Mlflow(run) => run.append(about, row),
        })
    }

    /// Marks the run as finished. Messages as those of [`Trackers::epoch_done`].
    pub fn finish(mut self) -> Vec<String> {
        let (about, seconds) = (&self.about, self.history.seconds());
        write_each(&mut self.open, |open| match open {
            Open::Csv(_) => Ok(()),
            Open::Wandb(run) => run.finish(seconds),
            Open::Mlflow(run) => run.finish(about, seconds),
        })
    }
}

/// Applies `write` to each, and drops those that fail.
fn write_each(
    open: &mut Vec<Open>,
    mut write: impl FnMut(&mut Open) -> io::Result<()>,
) -> Vec<String> {
    let mut messages = Vec::new();
    open.retain_mut(|open| match write(open) {
        Ok(()) => true,
        Err(error) => {
            messages.push(format!(
                "{error}; nothing more is written there, and `rem export` writes it later"
            ));
            false
        }
    });
    messages
}

impl About {
    fn read(dir: &Path, state: &State) -> Result<Self> {
        let config = super::read_config(dir)?;
        let name = absolute(dir)?.file_name().map_or_else(
            || layout::run_name(&config.env.game, config.seed),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            name,
            config,
            id: state.id.clone(),
            started: state.started,
        })
    }
}

/// Appends to a file, which an export may have replaced in the meantime, or makes it.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(failed("append to", path))
}

fn absolute(dir: &Path) -> Result<PathBuf> {
    dir.canonicalize().map_err(Error::io(dir))
}

/// The directory in which the run directory is.
fn beside(dir: &Path) -> Result<PathBuf> {
    let dir = absolute(dir)?;
    Ok(dir.parent().unwrap_or(&dir).into())
}
