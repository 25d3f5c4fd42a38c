//! What can go wrong outside our own code, each with a hint of what to do about it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::env::EnvError;
use crate::replay::ReplayError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    Config {
        message: String,
        hint: Option<String>,
    },
    #[error(transparent)]
    Env(#[from] EnvError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("{message}")]
    Device { message: String, hint: String },
    #[error("weights `{}`: {reason}", file.display())]
    Weights { file: PathBuf, reason: String },
    #[error("checkpoint `{}`: {reason}", path.display())]
    Checkpoint {
        path: PathBuf,
        reason: String,
        hint: Option<String>,
    },
    #[error("run directory `{}`: {reason}", path.display())]
    Run {
        path: PathBuf,
        reason: String,
        hint: String,
    },
    #[error("episode `{}`: {reason}", path.display())]
    Episode { path: PathBuf, reason: String },
    #[error("{phase} diverged {times} times in a row at epoch {epoch}: {what}")]
    Diverged {
        phase: &'static str,
        epoch: u32,
        times: u32,
        what: String,
        dump: PathBuf,
    },
    /// A system call on a path.
    #[error("`{}`: {error}", path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    /// As [`Error::Io`], from code whose message already names the file.
    #[error("{0}")]
    File(std::io::Error),
    #[error("{0}")]
    Logs(std::io::Error),
}

impl Error {
    pub fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Config {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Wraps an I/O error with the path it happened at: `.map_err(Error::io(path))`.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::Io { path, error }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config { hint, .. } | Self::Checkpoint { hint, .. } => hint.clone(),
            Self::Env(e) => Some(e.hint()),
            Self::Replay(ReplayError::Io { error, .. }) => Some(io_hint(error).into()),
            Self::Replay(_) => Some(
                "the replay belongs to its checkpoint: resume from an older one with `--from-epoch N`, or start a new run".into(),
            ),
            Self::Device { hint, .. } | Self::Run { hint, .. } => Some(hint.clone()),
            Self::Weights { .. } => Some(
                "was the file written by the program and for the config that you use it with?".into(),
            ),
            Self::Episode { .. } => Some(
                "`rem play` and `rem episodes RUN export --to npz` write such files".into(),
            ),
            Self::Diverged { dump, .. } => Some(format!(
                "the offending batch is in `{}`; try a lower learning rate or another seed",
                dump.display()
            )),
            Self::Io { error, .. } | Self::File(error) => Some(io_hint(error).into()),
            Self::Logs(error) if error.kind() != ErrorKind::InvalidData && error.kind() != ErrorKind::NotFound => {
                Some(io_hint(error).into())
            }
            Self::Logs(_) => Some(
                "the log belongs to the checkpoints: put it back, or go on from an older epoch with `--from-epoch N`".into(),
            ),
        }
    }
}

fn io_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "is the path right?",
        ErrorKind::PermissionDenied => "may you read and write there?",
        ErrorKind::StorageFull => "make room on the disk, then go on with `rem train --resume`",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "name another path",
        _ => "look at the disk and at that path; a run goes on with `rem train --resume`",
    }
}
