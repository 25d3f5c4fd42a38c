//! Settings of the environment.

use serde::{Deserialize, Serialize};

use super::wrappers::{Python, Wrappers};

/// Supported frame sizes in pixels: multiples of the 8x8 board of the built-in games that can be downsampled.
pub const FRAME_SIZES: &[usize] = &[32, 64];

/// Whether episodes are for training or for evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvMode {
    /// Episodes that the agent learns from.
    Train,
    /// Episodes that are scored.
    Test,
}

/// A value for training episodes and one for test episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainTest<T> {
    /// In training episodes.
    pub train: T,
    /// In test episodes.
    pub test: T,
}

impl<T: Copy> TrainTest<T> {
    /// The value for `mode`.
    pub fn of(self, mode: EnvMode) -> T {
        match mode {
            EnvMode::Train => self.train,
            EnvMode::Test => self.test,
        }
    }
}

/// Settings of the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvConfig {
    /// A built-in game (`catch`, `paddle`, `crossing`), an Atari game with the feature `atari`, `gym:ID` or `python:MODULE:FACTORY`.
    pub game: String,
    /// Height and width of a frame in pixels: 32 or 64.
    pub frame_size: usize,
    /// Whether a lost life ends an episode.
    pub end_on_life_loss: TrainTest<bool>,
    /// Steps before an episode is truncated: raw frames of native Atari games, agent steps of all other environments.
    pub max_steps: TrainTest<u32>,
    /// Settings that only Atari games read.
    pub atari: Atari,
    /// Wrappers around all environments but native Atari games.
    #[serde(default)]
    pub wrappers: Wrappers,
    /// Settings that only `gym:…` and `python:…` environments read.
    #[serde(default)]
    pub python: Python,
}

/// Settings that only Atari games read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Atari {
    /// Raw frames per agent step.
    pub frame_skip: u32,
    /// Largest number of no-ops at the start of an episode.
    pub max_noops: TrainTest<u32>,
    /// Probability that the emulator repeats the previous action.
    pub sticky_actions: f64,
}
