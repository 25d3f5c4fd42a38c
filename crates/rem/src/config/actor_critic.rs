//! Settings of the controller.

use serde::{Deserialize, Serialize};

use super::OptimizerConfig;

/// Settings of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorCritic {
    /// Inputs of the LSTM.
    pub inputs: ControllerInputs,
    /// Width of the LSTM.
    pub lstm_dim: usize,
    /// Replay steps that warm up the LSTM before a rollout.
    pub burn_in: usize,
    /// Length of an imagined rollout.
    pub rollout_length: RolloutLength,
    /// Discount factor γ of the λ-returns.
    pub discount: f64,
    /// λ of the λ-returns.
    pub lambda: f64,
    /// Weight of the entropy bonus.
    pub entropy_weight: f64,
    /// Whether steps after an imagined termination are masked out of the losses.
    pub mask_after_termination: bool,
    /// Value of a terminal state in λ-returns; a negative value penalizes lost lives.
    pub terminal_value: f64,
    /// Weight of the disagreement of `world_model.ensemble_heads` in imagined rewards (curiosity).
    #[serde(default)]
    pub curiosity_weight: f64,
    /// How values are modeled.
    #[serde(default)]
    pub values: Values,
    /// Use of a slow critic, a moving average of the controller's weights.
    #[serde(default)]
    pub slow_critic: SlowCritic,
    /// Share of the uniform distribution in the policy.
    #[serde(default)]
    pub uniform_mix: f64,
    /// What divides the advantages in the policy loss.
    #[serde(default)]
    pub return_scaling: ReturnScaling,
    /// When and how the controller is trained.
    pub optimizer: OptimizerConfig,
}

/// Inputs of the LSTM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControllerInputs {
    /// The grid of code vectors, and the actions.
    CodesAndActions {
        /// Whether the burn-in feeds the actions too (published code: no).
        #[serde(default = "yes")]
        burn_in_actions: bool,
    },
    /// The grid of code vectors alone (the paper's controller without action inputs).
    Codes {},
    /// Decoded frames through a CNN, and no actions (IRIS's controller).
    Pixels {},
}

/// Length of an imagined rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutLength {
    /// Up to the length of a segment: context and rollout have `train.horizon` observations together.
    Segment,
    /// `train.horizon` imagined observations after the context (Algorithm 7).
    Horizon,
}

impl RolloutLength {
    /// The name in config files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Horizon => "horizon",
        }
    }
}

/// How values are modeled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// One number with squared error.
    #[default]
    Continuous,
    /// One number as a histogram over 129 bins in symlog space with cross-entropy (HL-Gauss, Simulus).
    HlGauss,
}

/// Use of a slow critic, a moving average of the controller's weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SlowCritic {
    /// None (paper).
    Off {},
    /// The λ-returns bootstrap from its values.
    Target {
        /// Fraction of the average that an update keeps.
        #[serde(default = "slow_decay")]
        decay: f64,
    },
    /// The critic also learns the values of the slow critic (DreamerV3).
    Regularizer {
        /// Fraction of the average that an update keeps.
        #[serde(default = "slow_decay")]
        decay: f64,
        /// Weight of the loss towards the values of the slow critic.
        #[serde(default = "slow_weight")]
        weight: f64,
    },
}

fn slow_decay() -> f64 {
    0.98
}

fn slow_weight() -> f64 {
    1.0
}

impl Default for SlowCritic {
    fn default() -> Self {
        Self::Off {}
    }
}

impl SlowCritic {
    /// Fraction of the average that an update keeps; `None` without a slow critic.
    pub fn decay(self) -> Option<f64> {
        match self {
            Self::Off {} => None,
            Self::Target { decay } | Self::Regularizer { decay, .. } => Some(decay),
        }
    }
}

/// What divides the advantages in the policy loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReturnScaling {
    /// Nothing (paper).
    Off {},
    /// Half the distance between the 2.5% and the 97.5% quantile of recent λ-returns (Simulus).
    QuantileRange {
        /// Batches of rollouts whose λ-returns are recent.
        #[serde(default = "window")]
        window: usize,
        /// Smallest divisor.
        #[serde(default = "floor")]
        floor: f64,
    },
}

fn window() -> usize {
    500
}

fn floor() -> f64 {
    1.0
}

impl Default for ReturnScaling {
    fn default() -> Self {
        Self::Off {}
    }
}

fn yes() -> bool {
    true
}

impl ControllerInputs {
    /// Whether the burn-in before a rollout feeds the actions.
    pub fn burn_in_actions(self) -> bool {
        matches!(
            self,
            Self::CodesAndActions {
                burn_in_actions: true
            }
        )
    }
}
