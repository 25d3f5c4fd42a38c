//! [`Error`]: failures that the user can act on, each with a hint.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rem_run::files;

use crate::config::ConfigError;
use crate::data::dataset::DatasetError;
use crate::data::episode::EpisodeError;
use crate::data::replay::ReplayError;
use crate::env::EnvError;

/// A [`std::result::Result`] whose error is [`Error`] unless stated otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of a file, a device, a config or a training run. [`Error::hint`] says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The config is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The environment cannot be created or restored.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The replay cannot be written, or one of its chunks is invalid.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// An episode file cannot be read or written.
    #[error(transparent)]
    Episode(#[from] EpisodeError),
    /// A data set cannot be read or written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The compute device, or the number of threads, is not available.
    #[error("{message}")]
    Device {
        /// What failed.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A weight file is invalid, or does not fit the config.
    #[error("weights `{}`: {reason}", file.display())]
    Weights {
        /// The weight file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint is missing or invalid.
    #[error("checkpoint `{}`: {reason}", path.display())]
    Checkpoint {
        /// The checkpoint's directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A run directory cannot be used.
    #[error("run directory `{}`: {reason}", path.display())]
    Run {
        /// The run directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A loss or gradient was not finite in every attempt at an epoch.
    #[error("{phase} diverged {times} times in a row at epoch {epoch}: {what}")]
    Diverged {
        /// The training phase.
        phase: &'static str,
        /// The epoch.
        epoch: u32,
        /// Number of attempts.
        times: u32,
        /// The loss or gradient that was not finite.
        what: String,
        /// The file that holds the batch of the last attempt.
        dump: PathBuf,
    },
    /// A loss or gradient was not finite when a controller was trained in the game.
    #[error("the controller diverged in the game: {what}")]
    DivergedInGame {
        /// The loss or gradient that was not finite.
        what: String,
    },
    /// The controller of a run is not trained yet.
    #[error("the controller is not trained yet at epoch {epoch}")]
    ControllerNotTrained {
        /// The epoch.
        epoch: u32,
        /// The last epoch before its training starts.
        starts_after: u32,
    },
    /// A system call on a path failed.
    #[error("`{}`: {}", path.display(), rem_run::reason(error))]
    Io {
        /// The path.
        path: PathBuf,
        /// The failure.
        error: std::io::Error,
    },
    /// Like [`Error::Io`], for an error whose message already names the file.
    #[error("{0}")]
    File(std::io::Error),
    /// A log is missing, shorter than the checkpoint expects, or cannot be written.
    #[error("{0}")]
    Logs(std::io::Error),
}

impl Error {
    /// Adds the path to an I/O error: `.map_err(Error::io(path))`.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::Io { path, error }
    }

    /// More about the error, on several lines: the traceback of a Python environment.
    pub fn details(&self) -> Option<&str> {
        match self {
            Self::Env(EnvError::Python(error)) => {
                Some(error.details()).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }

    /// What the user can do about the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(e) => Some(e.hint().into()),
            Self::Checkpoint { hint, .. } => hint.clone(),
            Self::Env(e) => Some(e.hint()),
            Self::Replay(ReplayError::Io { error, .. }) => Some(io_hint(error).into()),
            Self::Replay(_) => Some(
                "the checkpoint needs this replay: resume from an older one with `--from-epoch N`, or start a new run"
                    .into(),
            ),
            Self::Episode(EpisodeError::Invalid { .. }) => {
                Some("`rem play` and `rem episodes RUN export --to npz` write such files".into())
            }
            Self::Episode(EpisodeError::Read { error, .. } | EpisodeError::Write(error)) => {
                Some(io_hint(error).into())
            }
            Self::Dataset(error) => Some(error.hint()),
            Self::Device { hint, .. } | Self::Run { hint, .. } => Some(hint.clone()),
            Self::Weights { .. } => Some(
                "check that the file holds the weights of this model and fits the config".into(),
            ),
            Self::Diverged { dump, .. } => Some(format!(
                "the batch is saved in `{}`; try a lower learning rate or another seed",
                dump.display()
            )),
            Self::DivergedInGame { .. } => Some(
                "train a new run with a lower `actor_critic.optimizer.learning_rate`"
                    .into(),
            ),
            Self::ControllerNotTrained { starts_after, .. } => Some(format!(
                "its training starts after epoch {starts_after}: continue the run, or leave out `--simulator`"
            )),
            Self::Io { error, .. } | Self::File(error) => Some(io_hint(error).into()),
            Self::Logs(error)
                if error.kind() != ErrorKind::InvalidData && error.kind() != ErrorKind::NotFound =>
            {
                Some(io_hint(error).into())
            }
            Self::Logs(_) => Some(
                "the checkpoint needs this log: restore the file, or resume from an older epoch with `--from-epoch N`"
                    .into(),
            ),
        }
    }
}

fn io_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied => "check the permissions of that path",
        ErrorKind::StorageFull => "free some disk space, then continue with `rem train --resume`",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "choose another path",
        _ => "check the disk and that path; `rem train --resume` continues a run",
    }
}

impl From<rem_run::Error> for Error {
    fn from(error: rem_run::Error) -> Self {
        let hint = error.hint().into();
        match error {
            rem_run::Error::Read { path, source } => Self::io(&path)(source),
            rem_run::Error::Write(error) => Self::File(error),
            rem_run::Error::Invalid { path, reason, .. } => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                Self::Run {
                    path: files::parent(&path).into(),
                    reason: format!("{file}: {reason}"),
                    hint,
                }
            }
            rem_run::Error::NewerFormat { path, found } => Self::Run {
                path: files::parent(&path).into(),
                reason: format!(
                    "its format {found} is newer than {}, the newest that this version reads",
                    rem_run::FORMAT
                ),
                hint,
            },
        }
    }
}
