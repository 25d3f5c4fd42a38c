//! [`ReplayError`].

use std::io;
use std::path::{Path, PathBuf};

/// A chunk of the replay that cannot be written, or is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file does not exist.
    #[error("replay chunk `{}` is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The name is not a plain file name.
    #[error("replay chunk `{file}`: not a plain file name")]
    Name {
        /// The name.
        file: String,
    },
    /// The file is not a replay chunk.
    #[error("`{}` is not a replay chunk: it does not begin with `REMREPL1`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is a symbolic link.
    #[error("replay chunk `{}` is a symbolic link", path.display())]
    Link {
        /// The file.
        path: PathBuf,
    },
    /// The frames do not have the size of the config.
    #[error("replay chunk `{}` has frames of {found} bytes, expected {expected}", path.display())]
    FrameSize {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The chunk does not continue the previous one.
    #[error(
        "replay chunk `{}` begins at step {found}, expected {expected}: \
         a chunk is missing, repeated or out of order",
        path.display()
    )]
    Order {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The number of steps is not that of the checkpoint.
    #[error("replay chunk `{}` holds {found} steps, expected {expected}", path.display())]
    Steps {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The length is not that of the checkpoint, or does not fit the header.
    #[error("replay chunk `{}` is {found} bytes long, expected {expected}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The checksum is not that of the checkpoint.
    #[error(
        "replay chunk `{}` has checksum {found:08x}, expected {expected:08x}: it is damaged",
        path.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        found: u32,
        /// The expected value.
        expected: u32,
    },
    /// A value that no environment produces.
    #[error("replay chunk `{}` has an impossible {what} at step {step}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// `reward` or `outcome`.
        what: &'static str,
        /// Number of the step within the chunk.
        step: usize,
    },
    /// A system call failed.
    #[error("cannot {action} `{}`: {}", path.display(), rem_run::reason(error))]
    Io {
        /// What failed, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The failure.
        error: io::Error,
    },
}

/// Adds the failed action and the path to an I/O error.
pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReplayError {
    let path = path.to_owned();
    move |error| ReplayError::Io {
        action,
        path,
        error,
    }
}
