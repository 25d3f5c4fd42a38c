//! What can be wrong with what a report is asked for, each with a hint.

use std::path::{Path, PathBuf};

use rem_stats::ScoresError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Scores(#[from] ScoresError),
    #[error("`{}`: {reason}", path.display())]
    Input {
        path: PathBuf,
        reason: String,
        hint: String,
    },
    #[error("there are no published scores of `{name}`")]
    UnknownBaseline { name: String, hint: String },
    #[error("two systems are called `{0}`")]
    SameName(String),
    #[error("no system of yours is called `{name}`")]
    UnknownSystem { name: String, hint: String },
    #[error("there is nothing to report on")]
    Nothing,
    #[error("cannot {verb} `{}`: {error}", path.display())]
    File {
        verb: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
}

impl Error {
    pub(crate) fn file(
        verb: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::File { verb, path, error }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        use std::io::ErrorKind;
        match self {
            Self::Scores(error) => error.hint(),
            Self::Input { hint, .. }
            | Self::UnknownBaseline { hint, .. }
            | Self::UnknownSystem { hint, .. } => hint.clone(),
            Self::SameName(name) => {
                format!("give one of them a name of its own: `rem report my-{name}=PATH`")
            }
            Self::Nothing => "name a run, a folder of runs or a JSON of scores, or published systems by `--against`".into(),
            Self::File { error, .. } => match error.kind() {
                ErrorKind::NotFound => "is the path right?",
                ErrorKind::PermissionDenied => "may you read and write there?",
                ErrorKind::StorageFull => "make room on the disk",
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "name another folder by `--out`",
                ErrorKind::InvalidData => "is it a text file?",
                _ => "look at the disk and at that path",
            }
            .into(),
        }
    }
}
