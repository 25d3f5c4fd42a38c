//! Settings of the tokenizer.

use serde::{Deserialize, Serialize};

use super::OptimizerConfig;

/// Settings of the tokenizer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    /// N: number of codes.
    pub vocabulary: usize,
    /// Dimension of a code, which is also the width of the world model.
    pub embedding: usize,
    /// Channels of the first convolution; each downsampling doubles them.
    pub channels: usize,
    /// Number of downsamplings by two.
    pub downsamplings: usize,
    /// The encoder and its decoder.
    pub encoder: Encoder,
    /// The reconstruction loss.
    pub reconstruction: Reconstruction,
    /// Weight of the reconstruction loss.
    pub reconstruction_weight: f64,
    /// The perceptual (LPIPS) loss.
    pub perceptual: Perceptual,
    /// How latents become tokens.
    #[serde(default)]
    pub quantizer: Quantizer,
    /// Initial codes.
    pub codebook_init: CodebookInit,
    /// Steps without use, counted within an epoch, after which a code is reset to a latent; 0 means never.
    pub dead_code_reset_after: u32,
    /// Pixels by which frames are shifted at most, at random in both directions (image augmentation); 0 means never.
    #[serde(default)]
    pub random_shift: usize,
    /// When and how the tokenizer is trained.
    pub optimizer: OptimizerConfig,
}

/// The encoder and its decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Encoder {
    /// The paper's CNN: a code depends on nearly the whole frame.
    Cnn {
        /// Whether 1x1 convolutions surround the quantizer (paper: no).
        #[serde(default = "yes")]
        quantizer_convs: bool,
    },
    /// A fixed whitening of each patch: a code depends on the pixels of its own cell only.
    WhitenedPatches {},
}

fn yes() -> bool {
    true
}

/// How latents become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Quantizer {
    /// The nearest code of a learned codebook (paper).
    Codebook {},
    /// Three numbers, each rounded to one of a few levels (FSQ, Simulus). The vocabulary is the product of the levels.
    FiniteScalar {
        /// Levels of each number, at least 3.
        #[serde(default = "levels")]
        levels: [usize; 3],
    },
}

fn levels() -> [usize; 3] {
    [8; 3]
}

impl Default for Quantizer {
    fn default() -> Self {
        Self::Codebook {}
    }
}

/// The reconstruction loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reconstruction {
    /// Mean squared error.
    Mse,
    /// Mean absolute error (paper).
    L1,
}

/// The perceptual (LPIPS) loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Perceptual {
    /// On if the LPIPS weights were imported with `rem import lpips`.
    Auto,
    /// Off.
    Off,
    /// On; an error if the weights are missing.
    Required,
}

/// Initial codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CodebookInit {
    /// Uniform in ±1/N.
    Uniform,
    /// Latents of the first batch, spread as by k-means++.
    Data,
}
