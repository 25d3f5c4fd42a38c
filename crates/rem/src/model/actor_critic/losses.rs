//! The controller's training losses (Appendix A.1.3).

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};

use crate::config::{self, SlowCritic, Values};
use crate::model::hl_gauss;

/// Imagined trajectories with λ-returns, the input of [`losses`].
pub struct Experience {
    /// Policy logits, `[batch, steps, actions]`, with gradient.
    pub logits: Tensor<3>,
    /// Values, `[batch, steps]`.
    pub values: Tensor<2>,
    /// Outputs of the critic, `[batch, steps, outputs]`, with gradient. One output is the value itself.
    pub critic: Tensor<3>,
    /// Actions, `[batch, steps]`.
    pub actions: Tensor<2, Int>,
    /// λ-returns, `[batch, steps]`.
    pub returns: Tensor<2>,
    /// Weight of each step in the losses, `[batch, steps]`.
    pub weights: Tensor<2>,
    /// Values of the slow critic, `[batch, steps]`, if there is one.
    pub slow_values: Option<Tensor<2>>,
    /// Divides the advantages; 1 leaves them as they are.
    pub return_scale: f64,
}

/// The terms of the controller's objective.
pub struct ActorCriticLosses {
    /// REINFORCE loss.
    pub policy: Tensor<1>,
    /// Squared error of the values, or cross-entropy of their histograms.
    pub value: Tensor<1>,
    /// Negative entropy times its weight.
    pub entropy: Tensor<1>,
    /// Mean entropy of the policy in nats, without gradient.
    pub mean_entropy: Tensor<1>,
}

impl ActorCriticLosses {
    /// The minimized sum.
    pub fn total(&self) -> Tensor<1> {
        self.policy.clone() + self.value.clone() + self.entropy.clone()
    }
}

/// REINFORCE with the value as baseline, squared error of the value (or cross-entropy of its histogram), and an entropy
/// bonus (Appendix A.1.3). With [`SlowCritic::Regularizer`] the values of the slow critic are targets, too.
pub fn losses(x: Experience, config: &config::ActorCritic) -> ActorCriticLosses {
    let [batch, steps, _] = x.logits.dims();
    let log_policy = log_softmax(x.logits, 2);
    let chosen = log_policy
        .clone()
        .gather(2, x.actions.reshape([batch, steps, 1]));
    let chosen: Tensor<2> = chosen.reshape([batch, steps]);
    let entropy = (log_policy.clone().exp() * log_policy).sum_dim(2).neg();
    let entropy: Tensor<2> = entropy.reshape([batch, steps]);
    let advantage = x.returns.clone() - x.values.clone().detach();
    let advantage = advantage.div_scalar(x.return_scale);

    let value_losses = |targets: Tensor<2>| -> Tensor<2> {
        let critic = x.critic.clone();
        match config.values {
            Values::Continuous => (critic.reshape([batch, steps]) - targets).square(),
            Values::HlGauss => {
                let rows = batch * steps;
                let logits = critic.reshape([rows, hl_gauss::BINS]);
                hl_gauss::losses(logits, targets.reshape([rows])).reshape([batch, steps])
            }
        }
    };
    let value_losses = match (config.slow_critic, x.slow_values) {
        (SlowCritic::Regularizer { weight, .. }, Some(slow)) => {
            value_losses(x.returns) + value_losses(slow).mul_scalar(weight)
        }
        _ => value_losses(x.returns),
    };

    let total = x.weights.clone().sum();
    let mean = |t: Tensor<2>| (t * x.weights.clone()).sum() / total.clone();
    let mean_entropy = mean(entropy);
    ActorCriticLosses {
        policy: mean(chosen * advantage).neg(),
        value: mean(value_losses),
        entropy: mean_entropy.clone().mul_scalar(-config.entropy_weight),
        mean_entropy: mean_entropy.detach(),
    }
}
