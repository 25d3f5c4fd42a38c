//! What can be wrong with an environment, each with a hint of what to do about it.

use super::{FRAME_SIZES, GAMES, atari_names};

#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    #[error("unknown game `{game}`")]
    UnknownGame {
        game: String,
        /// The game that was probably meant.
        closest: Option<&'static str>,
    },
    #[error("frames of {size}x{size} pixels are not possible (choose from {FRAME_SIZES:?})")]
    BadSize { size: usize },
    #[error("an episode needs room for at least one step, but the time limit is 0")]
    NoSteps,
    #[error("cannot restore the environment: {reason}")]
    Snapshot { reason: String },
    #[error("`{game}` is an Atari game, and this program was built without them")]
    WithoutAtari { game: &'static str },
    #[error(transparent)]
    Atari(#[from] rem_ale::AleError),
}

impl EnvError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGame {
                closest: Some(name),
                ..
            } => format!("did you mean `{name}`?"),
            Self::UnknownGame { .. } => format!(
                "the built-in games are {}; those of Atari are {}",
                GAMES.join(", "),
                atari_names().join(", ")
            ),
            Self::BadSize { .. } => "set it with `--set env.frame_size=…`".into(),
            Self::NoSteps => "set it with `--set env.max_steps.train=…`".into(),
            Self::Snapshot { .. } => {
                "the environment belongs to its checkpoint: resume from an older one with `--from-epoch N`".into()
            }
            Self::WithoutAtari { .. } => {
                "run `scripts/setup-atari`, then build with `--features atari`".into()
            }
            Self::Atari(error) => error.hint(),
        }
    }
}
