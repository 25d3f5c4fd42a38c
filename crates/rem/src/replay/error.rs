//! What can go wrong between the replay and the disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why a chunk could not be written, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("replay chunk `{}` is missing", path.display())]
    Missing { path: PathBuf },
    #[error("`{file}` is not a plain file name, as a replay chunk must have")]
    Name { file: String },
    #[error("`{}` is not a replay chunk: it does not begin with `REMREPL1`", path.display())]
    Foreign { path: PathBuf },
    #[error("replay chunk `{}` is a link to another file", path.display())]
    Link { path: PathBuf },
    #[error("replay chunk `{}` has frames of {found} bytes, expected {expected}", path.display())]
    FrameSize {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error(
        "replay chunk `{}` begins at step {found}, expected {expected}: \
         a chunk is left out, doubled or out of order",
        path.display()
    )]
    Order {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error("replay chunk `{}` holds {found} steps, expected {expected}", path.display())]
    Steps {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error("replay chunk `{}` is {found} bytes long, expected {expected}", path.display())]
    Length {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error(
        "replay chunk `{}` has checksum {found:08x}, expected {expected:08x}: it is damaged",
        path.display()
    )]
    Checksum {
        path: PathBuf,
        found: u32,
        expected: u32,
    },
    #[error("replay chunk `{}` has an impossible {what} at its step {step}", path.display())]
    Value {
        path: PathBuf,
        what: &'static str,
        step: usize,
    },
    #[error("cannot {action} `{}`: {error}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        error: io::Error,
    },
}

pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReplayError {
    let path = path.to_owned();
    move |error| ReplayError::Io {
        action,
        path,
        error,
    }
}
