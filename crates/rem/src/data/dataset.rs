//! Data sets: recorded episodes to train on without an environment.
//!
//! A data set is a directory with `dataset.json` and a replay in `replay/`, in the format of a run's. [`Import`] makes one from
//! NumPy files, and [`recorded_episodes`](crate::run::recorded_episodes) takes a run for one.

mod import;
mod recorded;

use std::path::{Path, PathBuf};

use rem_run::{layout, read_json, write_json};
use serde::{Deserialize, Serialize};

pub use import::Import;

use crate::data::replay::{ChunkInfo, Replay, ReplayError};
use crate::env::{ActionSpace, MAX_ACTIONS, ObservationSpace, Spaces};

/// The name of the description in a data set's directory.
const FILE: &str = "dataset.json";
pub(crate) const FORMAT: u32 = 1;
const HINT: &str = "`rem import episodes` writes this file; import the episodes again";

/// A data set that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The directory is neither a data set nor a run.
    #[error("`{}` is neither a data set nor a run", path.display())]
    Absent {
        /// The directory.
        path: PathBuf,
    },
    /// There are no episodes.
    #[error("`{}` has no episodes", path.display())]
    Empty {
        /// The file or directory.
        path: PathBuf,
    },
    /// The directory exists.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file does not hold episodes.
    #[error("`{}`: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The description cannot be read or written.
    #[error(transparent)]
    File(#[from] rem_run::Error),
    /// The replay cannot be read or written.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A system call on a path failed.
    #[error("`{}`: {}", path.display(), rem_run::reason(error))]
    Io {
        /// The path.
        path: PathBuf,
        /// The failure.
        error: std::io::Error,
    },
}

impl DatasetError {
    /// What the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::Absent { .. } => "`rem import episodes FILES --out DIR` makes a data set".into(),
            Self::Empty { .. } => "`rem episodes` lists the episodes of a run".into(),
            Self::Exists { .. } => "choose another directory with `--out`, or remove it".into(),
            Self::Invalid { .. } => {
                "`rem import episodes --help` describes the arrays of a file".into()
            }
            Self::File(error) => error.hint().into(),
            Self::Replay(_) => "import the episodes again".into(),
            Self::Io { .. } => "check the path and the disk".into(),
        }
    }
}

/// What a data set holds: `dataset.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetInfo {
    /// The version of the format.
    pub format: u32,
    /// The name of the environment.
    pub game: String,
    /// The names of its actions.
    pub actions: Vec<String>,
    /// Height and width of a frame in pixels.
    pub frame_size: usize,
    /// Number of episodes.
    pub episodes: usize,
    /// Number of steps.
    pub steps: usize,
    /// The files of the replay.
    pub(crate) chunks: Vec<ChunkInfo>,
}

impl DatasetInfo {
    /// Reads the description of a data set. `None` if the directory is no data set.
    ///
    /// # Errors
    /// If the description is invalid, or there are no episodes.
    pub fn read(dir: &Path) -> Result<Option<Self>, DatasetError> {
        match read_json::<Self>(&dir.join(FILE), HINT)? {
            Some(info) => info.checked(dir).map(Some),
            None => Ok(None),
        }
    }

    /// The description, if it is one to train on.
    pub(crate) fn checked(self, dir: &Path) -> Result<Self, DatasetError> {
        let invalid = |reason: String| DatasetError::Invalid {
            path: dir.join(FILE),
            reason,
        };
        let info = self;
        if info.format != FORMAT {
            return Err(invalid(format!("format {} is not {FORMAT}", info.format)));
        }
        if info.steps == 0 {
            return Err(DatasetError::Empty { path: dir.into() });
        }
        if !(2..=MAX_ACTIONS).contains(&info.actions.len()) {
            return Err(invalid(format!("{} actions", info.actions.len())));
        }
        Ok(info)
    }

    /// The spaces of the environment, as far as the episodes show them.
    pub fn spaces(&self) -> Spaces {
        Spaces {
            observation: ObservationSpace::rgb(self.frame_size, self.frame_size),
            action: ActionSpace::named(self.actions.iter().cloned()),
        }
    }

    /// Reads the episodes. An open one becomes a truncated one.
    ///
    /// # Errors
    /// If a chunk is missing or damaged.
    pub fn load(&self, dir: &Path, tokens_per_obs: usize) -> Result<Replay, DatasetError> {
        let frame_bytes = self.spaces().observation.bytes();
        let replay = dir.join(layout::REPLAY);
        Ok(Replay::load(
            &replay,
            &self.chunks,
            frame_bytes,
            tokens_per_obs,
        )?)
    }

    fn write(&self, dir: &Path) -> Result<(), DatasetError> {
        Ok(write_json(&dir.join(FILE), self)?)
    }
}
