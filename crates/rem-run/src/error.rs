//! Errors of reading and writing run files.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::FORMAT;

/// A result whose error is [`Error`] unless stated otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file of a run could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read `{}`: {}", path.display(), reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file could not be written. The message of an error from [`files`](crate::files) names the file.
    #[error("{0}")]
    Write(std::io::Error),
    /// The content is not what this file holds.
    #[error("`{}`: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the key where one is known.
        reason: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A newer version of `rem` wrote the run.
    #[error("`{}`: run format {found} is newer than {FORMAT}, the newest that this version reads", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format that it declares.
        found: u32,
    },
}

/// The message of an I/O error for users: `no such file or directory`, without the number of the operating system.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    if error.raw_os_error().is_none() {
        return text;
    }
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Invalid { hint, .. } => hint,
            Self::NewerFormat { .. } => "update `rem` to read this run",
            Self::Read { source, .. } | Self::Write(source) => match source.kind() {
                ErrorKind::NotFound => "check the path",
                ErrorKind::PermissionDenied => "check the permissions of this path",
                ErrorKind::StorageFull => "free some disk space",
                ErrorKind::InvalidData => "is it a text file?",
                _ => "check the disk and this path",
            },
        }
    }
}
