//! Sizes that a world model takes from other components.

use crate::config::Config;

/// Sizes that a world model takes from other components.
#[derive(Clone, Copy, Debug)]
pub struct WorldModelSizes {
    /// Width of the network: the dimension of a code.
    pub width: usize,
    /// N: number of codes.
    pub vocabulary: usize,
    /// K: tokens per observation.
    pub tokens_per_obs: usize,
    /// Number of actions.
    pub actions: usize,
    /// Steps in the context window of a Transformer.
    pub context_window_steps: usize,
}

impl WorldModelSizes {
    /// The sizes given by a config and the environment's number of actions.
    pub fn of(config: &Config, actions: usize) -> Self {
        Self {
            width: config.tokenizer.embedding,
            vocabulary: config.tokenizer.vocabulary,
            tokens_per_obs: config.tokens_per_obs(),
            actions,
            context_window_steps: config.context_window_steps(),
        }
    }
}
