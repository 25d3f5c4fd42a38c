//! [`EnvError`].

use super::GAMES;
use super::python::PythonError;
use crate::config::FRAME_SIZES;
use crate::suggest;

/// An environment that cannot be created or restored, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// There is no game of that name.
    #[error("unknown game `{game}`")]
    UnknownGame {
        /// The name.
        game: String,
        /// The most similar known game.
        closest: Option<&'static str>,
    },
    /// A name of a Python environment is malformed.
    #[error("`{name}` is not the name of an environment")]
    BadName {
        /// The name.
        name: String,
    },
    /// The agent cannot play with the spaces of the environment.
    #[error("the environment's spaces are not supported: {reason}")]
    Spaces {
        /// Which one, and why.
        reason: String,
    },
    /// The environment returned something that it must not return.
    #[error("the environment returned {what}")]
    Invalid {
        /// What it returned.
        what: String,
    },
    /// An environment failed.
    #[error("the environment failed: {message}")]
    Failed {
        /// Why.
        message: String,
    },
    /// There are recorded episodes, but no environment.
    #[error("`{game}` cannot be played: there are only recorded episodes of it")]
    DataOnly {
        /// The name of the environment.
        game: String,
    },
    /// A Python environment failed.
    #[error(transparent)]
    Python(#[from] PythonError),
    /// The frame size is not supported.
    #[error("unsupported frame size {size}x{size}: it must be {}", frame_sizes())]
    BadSize {
        /// Height and width in pixels.
        size: usize,
    },
    /// The time limit is 0.
    #[error("the time limit of an episode must be at least one step, not 0")]
    NoSteps,
    /// A snapshot is damaged or of another environment.
    #[error("cannot restore the environment: {reason}")]
    Snapshot {
        /// What is wrong with it.
        reason: String,
    },
    /// The state of the environment cannot be saved, which a diagnosis needs.
    #[error("the state of `{game}` cannot be saved and restored")]
    NoSnapshots {
        /// The name of the environment.
        game: String,
    },
    /// The program was built without the feature `atari`.
    #[error("`{game}` is an Atari game, but `rem` was built without Atari support")]
    WithoutAtari {
        /// The game.
        game: &'static str,
    },
    /// The emulator or the ROM.
    #[error(transparent)]
    Atari(#[from] rem_ale::AleError),
}

/// `32 or 64`.
fn frame_sizes() -> String {
    let sizes: Vec<String> = FRAME_SIZES.iter().map(usize::to_string).collect();
    suggest::or(&sizes)
}

impl EnvError {
    /// A failure of your own environment.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self::Failed {
            message: message.to_string(),
        }
    }

    /// What the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGame {
                closest: Some(name),
                ..
            } => format!("did you mean `{name}`?"),
            Self::UnknownGame { .. } => {
                let atari: Vec<_> = rem_ale::Game::benchmark().map(|game| game.name).collect();
                format!(
                    "the built-in games are {}; the Atari games are {}; others are `gym:ID` and `python:MODULE:FACTORY`",
                    GAMES.join(", "),
                    atari.join(", ")
                )
            }
            Self::BadName { .. } => {
                "names have the form `gym:CartPole-v1` or `python:my_module:make_env`".into()
            }
            Self::Spaces { .. } => {
                "images of 1 or 3 channels and discrete actions are supported; a wrapper can convert others".into()
            }
            Self::Invalid { .. } => {
                "observations must have the size of the space, and rewards must be finite numbers".into()
            }
            Self::Failed { .. } => {
                "the run is as after its last epoch: `rem train --resume` continues it".into()
            }
            Self::DataOnly { .. } => {
                "name an environment with `--env`, or import the episodes with its name".into()
            }
            Self::Python(error) => error.hint(),
            Self::BadSize { .. } => "set it with `--set env.frame_size=…`".into(),
            Self::NoSteps => "set it with `--set env.max_steps.train=…`".into(),
            Self::Snapshot { .. } => {
                "the checkpoint is damaged: resume from an older one with `--from-epoch N`".into()
            }
            Self::NoSnapshots { .. } => {
                "built-in games and Atari games can be diagnosed; other environments need `snapshot` and `restore`".into()
            }
            Self::WithoutAtari { .. } => {
                "run `scripts/setup-atari`, then build with `--features atari`".into()
            }
            Self::Atari(error) => error.hint(),
        }
    }
}
