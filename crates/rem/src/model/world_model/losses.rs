//! The world model's training losses (Algorithm 6).

use burn::tensor::{Tensor, TensorData};
use rem_kernels::{Dropout, cross_entropy};

use super::{TokenBatch, WorldModel, ensemble};
use crate::config::{RewardHeadInput, Rewards};
use crate::model::hl_gauss;

/// The terms of the world model's objective.
pub struct WorldModelLosses {
    /// Cross-entropy of observation tokens.
    pub observations: Tensor<1>,
    /// Cross-entropy or squared error of rewards.
    pub rewards: Tensor<1>,
    /// Cross-entropy of ends.
    pub ends: Tensor<1>,
    /// Cross-entropy of observation tokens by the ensemble's heads, if there are any.
    pub ensemble: Option<Tensor<1>>,
    steps: StepLosses,
}

/// Losses on observations and rewards of single steps, without gradient, with their masks.
struct StepLosses {
    /// `[batch, predicted steps]`
    observations: Tensor<2>,
    /// `[batch, steps with an outcome]`
    rewards: Tensor<2>,
    masks: LossMasks,
}

impl WorldModelLosses {
    /// The minimized sum.
    pub fn total(&self) -> Tensor<1> {
        let total = self.observations.clone() + self.rewards.clone() + self.ends.clone();
        match &self.ensemble {
            Some(ensemble) => total + ensemble.clone(),
            None => total,
        }
    }

    /// The loss on observations plus that on rewards of each segment, `[batch]`, without gradient.
    pub(crate) fn by_segment(&self) -> Tensor<1> {
        let StepLosses {
            observations,
            rewards,
            masks,
        } = &self.steps;
        let [size, _] = observations.dims();
        let mean = |loss: &Tensor<2>, mask: &Tensor<2>, weights: &Tensor<2>| {
            let sums = (loss.clone() * mask.clone()).sum_dim(1);
            (sums / weights.clone().sum_dim(1).clamp_min(0.5)).reshape([size])
        };
        mean(observations, &masks.observations, &masks.weights)
            + mean(rewards, &masks.outcomes, &masks.outcomes)
    }
}

impl WorldModel {
    /// The training losses (Algorithm 6). Padded steps have no loss. Observations have one from
    /// [`first_observation`] on; see [`RewardLossStart`] for rewards and ends. Token by token, the first token of a
    /// segment has none, because nothing predicts it. `dropout_seed` determines the dropout masks.
    ///
    /// # Shapes
    ///
    /// - `codes`: `[vocabulary, width]`
    ///
    /// [`first_observation`]: crate::config::WorldModel::first_observation
    /// [`RewardLossStart`]: crate::config::RewardLossStart
    pub fn losses(
        &self,
        codes: &Tensor<2>,
        batch: &TokenBatch,
        dropout_seed: u64,
    ) -> WorldModelLosses {
        let [size, steps, k] = batch.tokens.dims();
        let c = self.first_observation;
        let dropout = Dropout {
            p: self.dropout as f32,
            seed: dropout_seed,
        };
        let (tokens, actions) = (batch.tokens.clone(), batch.actions.clone());
        let p = self.forward(codes, tokens, actions, c, dropout);
        let n = steps - c;

        let rows = size * n;
        let vocabulary = p.observations.dims()[3];
        let targets = batch.tokens.clone().narrow(1, c, n).reshape([rows * k]);
        let observation_loss = cross_entropy(
            p.observations.reshape([rows * k, vocabulary]),
            targets.clone(),
        );
        let by_step = |loss: Tensor<1>| -> Tensor<2> {
            let mut loss: Tensor<2> = loss.reshape([size, n * k]);
            if self.includes_unpredicted_token() {
                loss = loss * first_and_others(0.0, n * k, &batch.mask);
            }
            // Mean over the K tokens of each step: [size, n]
            let loss: Tensor<2> = loss.reshape([rows, k]);
            loss.mean_dim(1).reshape([size, n])
        };
        let observation_loss = by_step(observation_loss);
        let [.., width] = p.observation_outputs.dims();
        let outputs = p.observation_outputs.reshape([rows * k, width]);
        let ensemble_loss = ensemble::losses(&self.ensemble, outputs, targets).map(by_step);

        // The losses on rewards and ends may start one step before those on observations.
        let (o, m) = self.outcome_range(steps);
        let outcomes = size * m;
        let masks = self.loss_masks(&batch.mask, k);
        // The prediction of step c is the first one; it gives reward and end of the step before.
        let first = match self.reward_head_input {
            RewardHeadInput::Action => o,
            RewardHeadInput::PredictedObservation => o + 1 - c,
        };
        let reward_logits = p.rewards.narrow(1, first, m);
        let rewards = batch.rewards.clone().narrow(1, o, m);
        let reward_loss: Tensor<2> = match self.rewards {
            Rewards::Sign => {
                let classes = rewards.sign().add_scalar(1.0).int().reshape([outcomes]);
                cross_entropy(reward_logits.reshape([outcomes, 3]), classes).reshape([size, m])
            }
            Rewards::Continuous => (reward_logits.reshape([size, m]) - rewards).square(),
            Rewards::HlGauss => {
                let logits = reward_logits.reshape([outcomes, hl_gauss::BINS]);
                hl_gauss::losses(logits, rewards.reshape([outcomes])).reshape([size, m])
            }
        };
        let end_loss = cross_entropy(
            p.ends.narrow(1, first, m).reshape([outcomes, 2]),
            batch.ends.clone().narrow(1, o, m).reshape([outcomes]),
        );
        let steps = StepLosses {
            observations: observation_loss.clone().inner(),
            rewards: reward_loss.clone().inner(),
            masks: masks.clone(),
        };
        WorldModelLosses {
            ensemble: ensemble_loss
                .map(|loss| masked_mean(loss, masks.observations.clone(), masks.weights.clone())),
            observations: masked_mean(observation_loss, masks.observations, masks.weights),
            rewards: masked_mean(reward_loss, masks.outcomes.clone(), masks.outcomes.clone()),
            ends: masked_mean(
                end_loss.reshape([size, m]),
                masks.outcomes.clone(),
                masks.outcomes,
            ),
            steps,
        }
    }

    /// The first step of a segment with a loss on reward and end, and the number of these steps.
    fn outcome_range(&self, steps: usize) -> (usize, usize) {
        let end = match self.reward_head_input {
            RewardHeadInput::Action => steps,
            // Nothing predicts the observation after the segment.
            RewardHeadInput::PredictedObservation => steps - 1,
        };
        (self.first_outcome, end - self.first_outcome)
    }

    /// Whether the losses include a first token that nothing predicts.
    fn includes_unpredicted_token(&self) -> bool {
        self.first_observation == 0 && !self.network.predicts_first_token()
    }

    /// Which steps have losses, from the mask of the real ones, `[batch, steps]`.
    fn loss_masks(&self, mask: &Tensor<2>, k: usize) -> LossMasks {
        let [_, steps] = mask.dims();
        let (c, (o, m)) = (self.first_observation, self.outcome_range(steps));
        let observations = mask.clone().narrow(1, c, steps - c);
        let weights = match self.includes_unpredicted_token() {
            false => observations.clone(),
            true => {
                let share = (k - 1) as f64 / k as f64;
                observations.clone() * first_and_others(share, steps, mask)
            }
        };
        LossMasks {
            observations,
            weights,
            outcomes: mask.clone().narrow(1, o, m),
        }
    }

    /// The number of steps over which each loss of a batch is a mean: observations, rewards, ends.
    pub(crate) fn loss_steps(&self, batch: &TokenBatch) -> [f64; 3] {
        let [_, _, k] = batch.tokens.dims();
        let masks = self.loss_masks(&batch.mask, k);
        let sum = |t: Tensor<2>| f64::from(t.sum().into_scalar::<f32>());
        let outcomes = sum(masks.outcomes);
        [sum(masks.weights), outcomes, outcomes]
    }
}

/// Which steps of a batch have losses.
#[derive(Clone)]
struct LossMasks {
    /// 1 for observations with a loss, `[batch, predicted steps]`.
    observations: Tensor<2>,
    /// The same times the share of tokens with a loss.
    weights: Tensor<2>,
    /// 1 for rewards and ends with a loss, `[batch, steps with an outcome]`.
    outcomes: Tensor<2>,
}

/// A row that begins with `first` and continues with ones, `[1, length]`; device and type are those of `like`.
fn first_and_others(first: f64, length: usize, like: &Tensor<2>) -> Tensor<2> {
    let mut row = vec![1.0; length];
    row[0] = first;
    Tensor::from_data(
        TensorData::new(row, [1, length]),
        (&like.device(), like.dtype()),
    )
}

/// The mean over elements with mask 1. `weights` is the share of each element that has a loss; 0 without any.
fn masked_mean(loss: Tensor<2>, mask: Tensor<2>, weights: Tensor<2>) -> Tensor<1> {
    (loss * mask).sum() / weights.sum().clamp_min(0.5)
}
