//! The world model's losses on test episodes.

use super::phase::scalar;
use super::trainer::Trainer;
use crate::config;
use crate::data::batch::TokenSource;
use crate::data::test_episodes::TestEpisodes;
use crate::model::tokenizer::Tokenizer;
use crate::model::world_model::{TokenBatch, WorldModel, WorldModelLosses};

impl Trainer {
    /// The world model's losses on the episodes of an evaluation, with the current tokenizer. Draws no random numbers.
    /// Empty before the world model is trained, and if no episode is long enough.
    pub(super) fn test_losses(
        &self,
        tokenizer: &Tokenizer,
        world_model: &WorldModel,
        episodes: TestEpisodes,
    ) -> Vec<(&'static str, f64)> {
        if self.optimizers.world_model.steps() == 0 {
            return Vec::new();
        }
        let tokens_per_obs = self.config.tokens_per_obs();
        let config = &self.config.world_model;
        let mut replay = episodes.into_replay(self.config.frame_bytes(), tokens_per_obs);
        let (batch_size, horizon) = (config.optimizer.batch_size, self.config.train.horizon);
        let segments = replay.segments_since(0, horizon, config.first_outcome() + 1);
        let model = world_model.clone().without_dropout();
        let codes = tokenizer.codes();
        let mut means = WeightedMeans::default();
        for segments in segments.chunks(batch_size) {
            let mut source = TokenSource {
                replay: &mut replay,
                tokenizer,
                generation: 1,
                tokens_per_obs,
                device: &self.device,
            };
            let batch = source.segments(segments, horizon);
            means.add(&model.losses(&codes, &batch, 0), &batch, config);
        }
        let names = ["test/loss_obs", "test/loss_rewards", "test/loss_ends"];
        let means = names.into_iter().zip(means.take());
        means
            .filter_map(|(name, mean)| Some((name, mean?)))
            .collect()
    }
}

/// Means of the three losses over the unpadded steps of several batches.
#[derive(Default)]
struct WeightedMeans {
    sums: [f64; 3],
    steps: [f64; 3],
}

impl WeightedMeans {
    /// Adds the losses of a batch, each weighted by the number of unpadded steps that it is a mean of.
    fn add(&mut self, losses: &WorldModelLosses, batch: &TokenBatch, config: &config::WorldModel) {
        let [_, length] = batch.mask.dims();
        let steps_from = |first| scalar(&batch.mask.clone().narrow(1, first, length - first).sum());
        let outcomes = steps_from(config.first_outcome());
        let parts = [
            (&losses.observations, steps_from(config.first_observation())),
            (&losses.rewards, outcomes),
            (&losses.ends, outcomes),
        ];
        for (i, (loss, steps)) in parts.into_iter().enumerate() {
            self.sums[i] += steps * scalar(loss);
            self.steps[i] += steps;
        }
    }

    /// The means; `None` without an unpadded step.
    fn take(self) -> [Option<f64>; 3] {
        let mean = |i| (self.steps[i] > 0.0).then(|| self.sums[i] / self.steps[i]);
        std::array::from_fn(mean)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::config::Config;

    #[test]
    fn batches_are_weighted_by_their_unpadded_steps() {
        let config = Config::load("debug", &["env.game=catch".into()]).unwrap();
        let config = config.world_model; // losses start at step 2 of a segment
        let device = Device::flex();
        let batch = |mask: [[f32; 5]; 2]| TokenBatch {
            tokens: Tensor::zeros([2, 5, 1], &device),
            actions: Tensor::zeros([2, 5], &device),
            rewards: Tensor::zeros([2, 5], &device),
            ends: Tensor::zeros([2, 5], &device),
            mask: Tensor::from_floats(mask, &device),
        };
        let losses = |values: [f32; 3]| {
            let [observations, rewards, ends] =
                values.map(|value| Tensor::from_floats([value], &device));
            WorldModelLosses {
                observations,
                rewards,
                ends,
            }
        };
        let mut means = WeightedMeans::default();
        // Six and one unpadded steps with a loss.
        let full = batch([[1.0; 5], [1.0; 5]]);
        means.add(&losses([1.0, 2.0, 3.0]), &full, &config);
        let padded = batch([[1.0, 1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0]]);
        means.add(&losses([8.0, 9.0, 10.0]), &padded, &config);
        assert_eq!(means.take(), [Some(2.0), Some(3.0), Some(4.0)]);
        assert_eq!(WeightedMeans::default().take(), [None; 3]);
    }
}
