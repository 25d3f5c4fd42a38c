//! Settings of the world model and its ablations.

use std::fmt;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::OptimizerConfig;

/// Settings of the world model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorldModel {
    /// The network, and with it how an observation is predicted.
    pub architecture: Architecture,
    /// Embeddings of observation tokens.
    pub embeddings: Embeddings,
    /// Layers.
    pub layers: usize,
    /// Heads per layer.
    pub heads: usize,
    /// Hidden width of the feed-forward sublayer.
    pub feed_forward: usize,
    /// Dropout probability in training.
    pub dropout: f64,
    /// c: observations before the first predicted one.
    pub context: usize,
    /// First observation of a segment with a loss; 0 means the one after the context, `every_step` all of them (paper).
    #[schemars(with = "usize", extend("x-types" = "integer | `every_step`"))]
    pub loss_start: LossStart,
    /// Activation of the feed-forward sublayer.
    pub activation: Activation,
    /// How rewards are modeled.
    pub rewards: Rewards,
    /// First step of a segment with a loss on rewards and ends.
    pub reward_loss_start: RewardLossStart,
    /// Input of the heads for rewards and ends.
    #[serde(default)]
    pub reward_head_input: RewardHeadInput,
    /// Additional observation heads on detached outputs, whose disagreement measures novelty; 0 means none.
    #[serde(default)]
    pub ensemble_heads: usize,
    /// Fraction of each batch that is sampled by the segments' last losses, new segments first; the others are uniform.
    #[serde(default)]
    pub prioritized_fraction: f64,
    /// Fraction of an epoch's last updates whose weights are averaged at its end.
    pub weight_averaging: f64,
    /// Pixels by which the frames of a segment are shifted at most, all equally (image augmentation); 0 means never.
    #[serde(default)]
    pub random_shift: usize,
    /// When and how the world model is trained.
    pub optimizer: OptimizerConfig,
}

/// The network, and with it how an observation is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Architecture {
    /// A RetNet with POP: all tokens of an observation in parallel.
    Pop {
        /// Calls per imagined step.
        #[serde(default)]
        mode: PopMode,
        /// Decay rates of the retention heads.
        #[serde(default)]
        decay: Decay,
        /// Base of the rotary position encoding: angles per token range from 1 to 1/base radians.
        #[serde(default = "rope_theta")]
        rope_theta: f64,
    },
    /// A plain RetNet, token by token (the paper's "No POP").
    Retnet {
        /// Decay rates of the retention heads.
        #[serde(default)]
        decay: Decay,
        /// Base of the rotary position encoding: angles per token range from 1 to 1/base radians.
        #[serde(default = "rope_theta")]
        rope_theta: f64,
    },
    /// A causal Transformer with a key-value cache, token by token (IRIS).
    Transformer {},
    /// A causal Transformer with POP: rotary positions, a key-value cache, all tokens of an observation in parallel
    /// (Simulus).
    PopAttention {
        /// Base of the rotary position encoding: angles per token range from 1 to 1/base radians.
        #[serde(default = "rope_theta")]
        rope_theta: f64,
    },
}

fn rope_theta() -> f64 {
    10_000.0
}

/// Calls per imagined step with POP. The results are the same up to rounding.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PopMode {
    /// One call updates the state with the block, a second one predicts (the paper's default).
    #[default]
    TwoCalls,
    /// Block and prediction tokens in one call (the paper's alternative).
    OneCall,
    /// The faster of the two, measured at the start of a run.
    Auto,
}

/// Decay rates η of the retention heads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Decay {
    /// 1 - η evenly spaced in the logarithm.
    LogSpaced {
        /// Timescales in tokens, 1 / (1 - η), of the first and the last head.
        #[serde(default = "timescales")]
        timescales: [f64; 2],
    },
    /// η = 1 - 2^(-5-i) (paper).
    PowersOfTwo {},
}

fn timescales() -> [f64; 2] {
    [32.0, 512.0]
}

impl Default for Decay {
    fn default() -> Self {
        Self::LogSpaced {
            timescales: timescales(),
        }
    }
}

/// How the next observation of an imagined rollout is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// POP, [`PopMode::TwoCalls`].
    TwoCalls,
    /// POP, [`PopMode::OneCall`].
    OneCall,
    /// One token per call.
    TokenByToken,
}

impl Architecture {
    /// POP in the given mode, with default retention.
    pub fn pop(mode: PopMode) -> Self {
        Self::Pop {
            mode,
            decay: Decay::default(),
            rope_theta: rope_theta(),
        }
    }

    /// A plain RetNet with default retention.
    pub fn retnet() -> Self {
        Self::Retnet {
            decay: Decay::default(),
            rope_theta: rope_theta(),
        }
    }

    /// Decay rates and rotary base; `None` without retention.
    pub fn retention(&self) -> Option<(Decay, f64)> {
        match *self {
            Self::Pop {
                decay, rope_theta, ..
            }
            | Self::Retnet { decay, rope_theta } => Some((decay, rope_theta)),
            Self::Transformer {} | Self::PopAttention { .. } => None,
        }
    }

    /// Base of the rotary position encoding; `None` without one.
    pub fn rope_theta(&self) -> Option<f64> {
        match *self {
            Self::PopAttention { rope_theta } => Some(rope_theta),
            _ => self.retention().map(|(_, rope_theta)| rope_theta),
        }
    }

    /// Whether all tokens of an observation are predicted in parallel.
    pub fn is_pop(&self) -> bool {
        matches!(self, Self::Pop { .. } | Self::PopAttention { .. })
    }

    /// How an imagined observation is generated. [`PopMode::Auto`] counts as two calls until it is resolved.
    pub fn generation(&self) -> Generation {
        match self {
            Self::Pop {
                mode: PopMode::OneCall,
                ..
            } => Generation::OneCall,
            Self::Pop { .. } | Self::PopAttention { .. } => Generation::TwoCalls,
            Self::Retnet { .. } | Self::Transformer {} => Generation::TokenByToken,
        }
    }
}

/// Embeddings of observation tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Embeddings {
    /// The tokenizer's codes, frozen.
    Tokenizer,
    /// A learned table of the world model (the paper's separate embeddings, IRIS).
    Own,
}

impl Embeddings {
    /// The name in config files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::Own => "own",
        }
    }
}

/// Activation of the feed-forward sublayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// SiLU.
    Silu,
    /// GELU (paper).
    Gelu,
}

/// How rewards are modeled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rewards {
    /// Classes -1, 0, +1 with cross-entropy.
    Sign,
    /// One number with squared error.
    Continuous,
    /// One number as a histogram over 129 bins in symlog space with cross-entropy (HL-Gauss, Simulus).
    #[serde(rename = "hl_gauss")]
    HlGauss,
}

/// First observation of a segment with a loss. In config files: 0, a number above 0, or `every_step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossStart {
    /// The first observation after the context, as in the published program.
    AfterContext,
    /// The observation with this index, above 0.
    Observation(usize),
    /// The first of the segment, so that every step has all losses (Algorithm 6, IRIS). Token by token, nothing
    /// predicts the first token of a segment, which has no loss.
    EveryStep,
}

const EVERY_STEP: &str = "every_step";

impl From<usize> for LossStart {
    fn from(first: usize) -> Self {
        match first {
            0 => Self::AfterContext,
            first => Self::Observation(first),
        }
    }
}

impl fmt::Display for LossStart {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::AfterContext => f.write_str("0"),
            Self::Observation(first) => first.fmt(f),
            Self::EveryStep => f.write_str(EVERY_STEP),
        }
    }
}

impl Serialize for LossStart {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::AfterContext => to.serialize_u64(0),
            Self::Observation(first) => to.serialize_u64(first as u64),
            Self::EveryStep => to.serialize_str(EVERY_STEP),
        }
    }
}

impl<'de> Deserialize<'de> for LossStart {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct LossStartVisitor;
        impl Visitor<'_> for LossStartVisitor {
            type Value = LossStart;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "an index of an observation, or `{EVERY_STEP}`")
            }
            fn visit_u64<E: de::Error>(self, first: u64) -> Result<LossStart, E> {
                usize::try_from(first)
                    .map(LossStart::from)
                    .map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, first: i64) -> Result<LossStart, E> {
                match u64::try_from(first) {
                    Ok(first) => self.visit_u64(first),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(first), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LossStart, E> {
                // `--set` passes a number as text where the value was a string.
                match (text, text.parse::<usize>()) {
                    (EVERY_STEP, _) => Ok(LossStart::EveryStep),
                    (_, Ok(first)) => Ok(first.into()),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        from.deserialize_any(LossStartVisitor)
    }
}

/// First step of a segment with a loss on rewards and ends, relative to the first observation with a loss
/// ([`WorldModel::first_observation`]). A rollout's first step reads reward and end at the step before that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewardLossStart {
    /// The step of the first observation with a loss, as in the published program.
    AfterContext,
    /// The step before it, where rollouts begin.
    FromContext,
}

/// Input of the heads for rewards and ends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RewardHeadInput {
    /// The output at the action (paper).
    #[default]
    Action,
    /// The output at the last prediction token of the next observation (Simulus). Needs POP.
    PredictedObservation,
}

impl RewardHeadInput {
    /// The name in config files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::PredictedObservation => "predicted_observation",
        }
    }
}

impl WorldModel {
    /// The first observation of a segment with a loss.
    pub fn first_observation(&self) -> usize {
        match self.loss_start {
            LossStart::AfterContext => self.context,
            LossStart::Observation(first) => first,
            LossStart::EveryStep => 0,
        }
    }

    /// The first step of a segment with a loss on reward and end; it must be a real one.
    pub fn first_outcome(&self) -> usize {
        match self.reward_loss_start {
            RewardLossStart::AfterContext => self.first_observation(),
            RewardLossStart::FromContext => self.first_observation().saturating_sub(1),
        }
    }

    /// The last step of a segment of `horizon` steps with a loss on reward and end, plus 1. Nothing predicts the
    /// observation after a segment.
    pub fn outcomes_end(&self, horizon: usize) -> usize {
        match self.reward_head_input {
            RewardHeadInput::Action => horizon,
            RewardHeadInput::PredictedObservation => horizon - 1,
        }
    }
}
