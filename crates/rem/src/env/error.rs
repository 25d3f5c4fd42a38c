//! [`EnvError`].

use super::{GAMES, atari_names};
use crate::config::FRAME_SIZES;

/// An environment that cannot be created or restored.
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
    /// The frame size is not supported.
    #[error("unsupported frame size {size}x{size} (choose from {FRAME_SIZES:?})")]
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

impl EnvError {
    /// What the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGame {
                closest: Some(name),
                ..
            } => format!("did you mean `{name}`?"),
            Self::UnknownGame { .. } => format!(
                "the built-in games are {}; the Atari games are {}",
                GAMES.join(", "),
                atari_names().join(", ")
            ),
            Self::BadSize { .. } => "set it with `--set env.frame_size=…`".into(),
            Self::NoSteps => "set it with `--set env.max_steps.train=…`".into(),
            Self::Snapshot { .. } => {
                "the checkpoint is damaged: resume from an older one with `--from-epoch N`".into()
            }
            Self::WithoutAtari { .. } => {
                "run `scripts/setup-atari`, then build with `--features atari`".into()
            }
            Self::Atari(error) => error.hint(),
        }
    }
}
