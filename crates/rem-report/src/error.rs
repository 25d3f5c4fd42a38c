//! Errors of reports, with hints.

use std::path::{Path, PathBuf};

use rem_stats::ScoresError;

/// A result whose error is [`Error`] unless stated otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a report cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of scores by game is invalid.
    #[error(transparent)]
    Scores(#[from] ScoresError),
    /// A file of a run is invalid.
    #[error(transparent)]
    Run(#[from] rem_run::Error),
    /// An input is invalid.
    #[error("`{}`: {reason}", path.display())]
    Input {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// No published system has this name.
    #[error("no published scores for `{name}`")]
    UnknownBaseline {
        /// The name.
        name: String,
        /// Names to choose from.
        hint: String,
    },
    /// Two systems have the same name.
    #[error("two systems are called `{0}`")]
    DuplicateName(String),
    /// No input has this name.
    #[error("none of your systems is named `{name}`")]
    UnknownSystem {
        /// The name.
        name: String,
        /// Names to choose from.
        hint: String,
    },
    /// There are no systems.
    #[error("no runs, scores or published systems given")]
    NoSystems,
    /// A file cannot be read or written.
    #[error("cannot {verb} `{}`: {}", path.display(), rem_run::reason(error))]
    File {
        /// The operation, such as `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: an error of `verb` on `path`.
    pub(crate) fn file(
        verb: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::File { verb, path, error }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        use std::io::ErrorKind;
        match self {
            Self::Scores(error) => error.hint(),
            Self::Run(error) => error.hint().into(),
            Self::Input { hint, .. }
            | Self::UnknownBaseline { hint, .. }
            | Self::UnknownSystem { hint, .. } => hint.clone(),
            Self::DuplicateName(name) => {
                format!("rename one of them: `rem report my-{name}=PATH`")
            }
            Self::NoSystems => "pass a run, a directory of runs, a JSON file of scores, or published systems with `--against`".into(),
            Self::File { error, .. } => match error.kind() {
                ErrorKind::NotFound => "check the path",
                ErrorKind::PermissionDenied => "check the permissions of this path",
                ErrorKind::StorageFull => "free some disk space",
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "choose another directory with `--out`",
                ErrorKind::InvalidData => "is it a text file?",
                _ => "check the disk and this path",
            }
            .into(),
        }
    }
}
