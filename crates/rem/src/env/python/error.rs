//! [`PythonError`].

use std::io;
use std::path::PathBuf;

/// A Python environment that cannot be created, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// Python cannot be started.
    #[error("cannot start Python `{}`: {error}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The failure.
        error: io::Error,
    },
    /// The file for frames, or the source of the worker, cannot be written.
    #[error("cannot share frames with Python: {0}")]
    Files(io::Error),
    /// A package is missing.
    #[error("`{name}` needs the Python package `{module}`, which `{}` does not have", python.display())]
    Missing {
        /// The environment.
        name: String,
        /// The module that could not be imported.
        module: String,
        /// The Python.
        python: PathBuf,
    },
    /// The environment is of a kind that is not supported.
    #[error("`{name}` cannot be played: {reason}")]
    Unsupported {
        /// The environment.
        name: String,
        /// Why.
        reason: String,
    },
    /// The environment raised an exception.
    #[error("`{name}` raised {kind} in {call}: {message}")]
    Raised {
        /// The environment.
        name: String,
        /// What it was asked to do.
        call: &'static str,
        /// The type of the exception.
        kind: String,
        /// Its message, on one line.
        message: String,
        /// Its traceback, on several lines; empty if there is none.
        traceback: String,
    },
    /// The environment did not return in time.
    #[error("`{name}` did not return from {call} within {seconds} seconds, and was stopped")]
    TimedOut {
        /// The environment.
        name: String,
        /// What it was asked to do.
        call: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// The process ended.
    #[error("the process of `{name}` ended in {call}: {status}")]
    Died {
        /// The environment.
        name: String,
        /// What it was asked to do.
        call: &'static str,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// The process sent something else than a reply.
    #[error("the process of `{name}` sent an invalid reply in {call}: {reason}")]
    Reply {
        /// The environment.
        name: String,
        /// What it was asked to do.
        call: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl PythonError {
    /// What the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::Start { .. } => {
                "pass the Python that has your environment with `--python`, or activate its virtual environment".into()
            }
            Self::Files(_) => "check the free space of /dev/shm and of the temporary directory".into(),
            Self::Missing { module, python, .. } => format!(
                "install it with `{} -m pip install {module}`, or pass another Python with `--python`",
                python.display()
            ),
            Self::Unsupported { .. } => {
                "the agent plays images and discrete actions; a wrapper in Python can convert others, see docs/guide/new-environment.md".into()
            }
            Self::Raised { .. } | Self::Died { .. } | Self::Reply { .. } => {
                "`rem doctor --env NAME` checks an environment; a run keeps its last epoch: `rem train --resume` continues it".into()
            }
            Self::TimedOut { .. } => {
                "set a longer limit with `--set env.python.timeout=…`, or find out why it hangs".into()
            }
        }
    }

    /// The Python traceback, or what the process printed last. Several lines, or empty.
    pub fn details(&self) -> &str {
        match self {
            Self::Raised { traceback, .. } => traceback,
            Self::Died { output, .. } => output,
            _ => "",
        }
    }
}
