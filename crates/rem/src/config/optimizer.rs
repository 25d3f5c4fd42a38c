//! How a component is trained.

use serde::{Deserialize, Serialize};

/// When and how a component is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Epochs before training of the component starts.
    pub start_after: u32,
    /// Last epoch in which the component is trained; 0 means the last of the run.
    pub stop_after: u32,
    /// Optimizer steps per epoch.
    pub steps_per_epoch: usize,
    /// Frames, segments or rollouts per step.
    pub batch_size: usize,
    /// Learning rate of the first epoch.
    pub learning_rate: f64,
    /// Fraction of the learning rate left in the component's last epoch, by linear decay; 1 keeps it constant.
    pub final_lr_fraction: f64,
    /// AdamW's weight decay.
    pub weight_decay: f64,
    /// Maximum global gradient norm; larger gradients are scaled down to it.
    pub max_grad_norm: f64,
}

impl OptimizerConfig {
    /// Whether the component learns in `epoch` (the first is 1).
    pub fn learns_in(&self, epoch: u32) -> bool {
        let stopped = self.stop_after > 0 && epoch > self.stop_after;
        epoch > self.start_after && !stopped && self.steps_per_epoch > 0
    }

    /// The learning rate in `epoch` of a run of `epochs`.
    pub fn learning_rate_in(&self, epoch: u32, epochs: u32) -> f64 {
        let first = self.start_after + 1;
        let last = match self.stop_after {
            0 => epochs,
            stop => stop.min(epochs),
        };
        if last <= first {
            return self.learning_rate;
        }
        let passed = f64::from(epoch.saturating_sub(first)) / f64::from(last - first);
        self.learning_rate * (1.0 - passed.min(1.0) * (1.0 - self.final_lr_fraction))
    }
}
