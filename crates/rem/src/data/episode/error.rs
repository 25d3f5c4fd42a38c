//! [`EpisodeError`].

use std::io;
use std::path::PathBuf;

/// An episode file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EpisodeError {
    /// The file does not hold a valid episode.
    #[error("episode `{}`: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be read.
    #[error("`{}`: {}", path.display(), rem_run::reason(error))]
    Read {
        /// The file.
        path: PathBuf,
        /// The failure.
        error: io::Error,
    },
    /// The file cannot be written; the message names it.
    #[error("{0}")]
    Write(io::Error),
}
