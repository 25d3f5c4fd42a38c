//! Settings of wrappers around an environment, and of Python environments.

use serde::{Deserialize, Serialize};

/// Wrappers around an environment. The frames of native Atari games have their own: `env.atari`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wrappers {
    /// Environment steps per agent step; the action is repeated and rewards are summed.
    pub frame_skip: u32,
    /// Whether a frame is the maximum over the last two of the skipped ones.
    pub max_of_two: bool,
    /// Whether frames lose their colors.
    pub grayscale: bool,
    /// How images are resized to `env.frame_size`.
    pub resize: ResizeFilter,
    /// What the agent learns from; scores have the rewards of the environment.
    pub rewards: RewardTransform,
}

impl Default for Wrappers {
    fn default() -> Self {
        Self {
            frame_skip: 1,
            max_of_two: false,
            grayscale: false,
            resize: ResizeFilter::Bilinear,
            rewards: RewardTransform::Raw,
        }
    }
}

/// How images are resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResizeFilter {
    /// Pillow's `BILINEAR`, which averages over all pixels when it makes an image smaller.
    Bilinear,
    /// The nearest pixel, for images of few large cells.
    Nearest,
}

impl ResizeFilter {
    /// The name in config files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bilinear => "bilinear",
            Self::Nearest => "nearest",
        }
    }
}

/// The rewards that the agent learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewardTransform {
    /// Those of the environment.
    Raw,
    /// Clipped to [-1, 1].
    Clip,
    /// sign(r) ln(1 + |r|).
    Symlog,
}

impl RewardTransform {
    /// The name in config files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Clip => "clip",
            Self::Symlog => "symlog",
        }
    }

    /// The reward to learn from.
    pub fn apply(self, reward: f32) -> f32 {
        match self {
            Self::Raw => reward,
            Self::Clip => reward.clamp(-1.0, 1.0),
            Self::Symlog => reward.abs().ln_1p().copysign(reward),
        }
    }
}

/// Settings that only `gym:…` and `python:…` environments read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// What the agent sees.
    pub observation: PythonObservation,
    /// Seconds after which a step or a reset that does not return is an error.
    pub timeout: f64,
    /// Keyword arguments of `gymnasium.make` or of the factory, such as `{ frameskip = 1 }`.
    #[schemars(with = "std::collections::BTreeMap<String, bool>")]
    pub kwargs: toml::Table,
}

impl Default for Python {
    fn default() -> Self {
        Self {
            observation: PythonObservation::Auto,
            kwargs: toml::Table::new(),
            timeout: 60.0,
        }
    }
}

/// What the agent sees of a Python environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PythonObservation {
    /// Its observations if they are images, or else what it renders.
    Auto,
    /// Its observations.
    Observation,
    /// What it renders with `render_mode="rgb_array"`.
    Render,
}

impl PythonObservation {
    /// The name in config files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Observation => "observation",
            Self::Render => "render",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_clipped_or_compressed() {
        let apply = |transform: RewardTransform| [-7.0, -0.5, 0.0, 3.0].map(|r| transform.apply(r));
        assert_eq!(apply(RewardTransform::Raw), [-7.0, -0.5, 0.0, 3.0]);
        assert_eq!(apply(RewardTransform::Clip), [-1.0, -0.5, 0.0, 1.0]);
        let [low, half, zero, high] = apply(RewardTransform::Symlog);
        assert!((low + 8f32.ln()).abs() < 1e-6 && (half + 1.5f32.ln()).abs() < 1e-6);
        assert!(zero == 0.0 && (high - 4f32.ln()).abs() < 1e-6);
    }
}
