//! Errors of studies, with hints.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A result whose error is [`Error`] unless stated otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a study cannot be made, run or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A config, a game or a file of a run.
    #[error(transparent)]
    Rem(#[from] rem::Error),
    /// What was asked for is not possible.
    #[error("{message}")]
    Argument {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The directory is not a study, or its manifest is damaged.
    #[error("study `{}`: {reason}", path.display())]
    Study {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A command of Slurm failed.
    #[error("`{command}`: {reason}")]
    Slurm {
        /// The command.
        command: &'static str,
        /// What it said.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {}", path.display(), rem_run::reason(error))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

impl Error {
    pub(crate) fn argument(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Argument {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// For `map_err`: an error on `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::Io { path, error }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Rem(error) => error.hint(),
            Self::Argument { hint, .. } | Self::Study { hint, .. } | Self::Slurm { hint, .. } => {
                Some(hint.clone())
            }
            Self::Io { error, .. } => Some(
                match error.kind() {
                    ErrorKind::NotFound => "check the path",
                    ErrorKind::PermissionDenied => "check the permissions of that path",
                    ErrorKind::StorageFull => "free some disk space, then run the study again",
                    _ => "check the disk and that path",
                }
                .into(),
            ),
        }
    }
}

impl From<rem::config::ConfigError> for Error {
    fn from(error: rem::config::ConfigError) -> Self {
        Self::Rem(error.into())
    }
}

impl From<rem::env::EnvError> for Error {
    fn from(error: rem::env::EnvError) -> Self {
        Self::Rem(error.into())
    }
}

impl From<rem_run::Error> for Error {
    fn from(error: rem_run::Error) -> Self {
        Self::Rem(error.into())
    }
}
