//! The world model's training phase (paper, Algorithm 6: `train_M`).

use burn::module::Module;
use rand::{Rng, RngExt};

use super::learners::WorldLearner;
use super::optimizer::NotFinite;
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use crate::data::batch::TokenSource;
use crate::data::replay::Segment;
use crate::host;
use crate::model::tokenizer::Tokenizer;
use crate::model::weights::{Array, Arrays, WeightAverage};
use crate::model::world_model::WorldModel;
use crate::seeds::Purpose;

/// Maximum number of segments for the validation losses.
const MAX_VALIDATION_SEGMENTS: usize = 64;

impl WorldLearner<'_> {
    /// Trains the world model for an epoch.
    pub(super) fn train_world_model(
        &mut self,
        mut on_step: impl FnMut(usize),
    ) -> Result<PhaseReport, Diverged> {
        let config = &self.epoch.config.world_model;
        let (settings, horizon) = (&config.optimizer, self.epoch.config.train.horizon);
        let mut rng = self.epoch.rng(Purpose::WorldModel);
        // Seeds dropout on devices that have their own generator. No other phase of training draws from it.
        (self.epoch.seeds).seed_device(self.epoch.device, self.epoch.number, Purpose::WorldModel);
        let tokenizer = self.tokenizer.valid();
        let codes = tokenizer.codes();
        let validation = self.validation_losses(&tokenizer);
        let (mut means, mut average) = (Means::default(), WeightAverage::default());
        let mut ensembles = Means::default();
        let averaged = (settings.steps_per_epoch as f64 * config.weight_averaging).round() as usize;
        for step in 0..settings.steps_per_epoch {
            let Some(segments) = self.sample_segments(&mut rng) else {
                return Ok(PhaseReport::no_segments("world model"));
            };
            let batch = (self.token_source(&tokenizer)).augmented_segments(
                &segments,
                horizon,
                config.random_shift,
                &mut rng,
            );
            let losses = self.world_model.losses(&codes, &batch, rng.random());
            let total = losses.total();
            let result = (self.world_model_optimizer).step(self.world_model.clone(), &total);
            let (world_model, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: Phase::WorldModel.name(),
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(batch.tokens.float())),
                    ("actions".into(), Array::from_tensor(batch.actions.float())),
                    ("rewards".into(), Array::from_tensor(batch.rewards)),
                    ("ends".into(), Array::from_tensor(batch.ends.float())),
                    ("mask".into(), Array::from_tensor(batch.mask)),
                ]),
            })?;
            *self.world_model = world_model;
            if config.prioritized_fraction > 0.0 {
                let by_segment = host::floats(losses.by_segment());
                (self.segment_losses).record(self.replay, &segments, &by_segment);
            }
            if step + averaged >= settings.steps_per_epoch {
                average.add(self.world_model);
            }
            means.add(&[
                ("loss", scalar(&total)),
                ("loss_obs", scalar(&losses.observations)),
                ("loss_rewards", scalar(&losses.rewards)),
                ("loss_ends", scalar(&losses.ends)),
                ("grad_norm", norm),
            ]);
            if let Some(ensemble) = &losses.ensemble {
                ensembles.add(&[("loss_ensemble", scalar(ensemble))]);
            }
            on_step(step + 1);
        }
        *self.world_model = average.apply_to(self.world_model.clone());
        let mut values = means.take();
        values.extend(ensembles.take());
        values.extend(validation);
        Ok(PhaseReport {
            values,
            warnings: vec![],
        })
    }

    /// The segments of a batch: a fraction by their last losses, the others uniformly. `None` if no episode is long
    /// enough.
    fn sample_segments(&self, rng: &mut impl Rng) -> Option<Vec<Segment>> {
        let config = &self.epoch.config.world_model;
        let (count, horizon) = (config.optimizer.batch_size, self.epoch.config.train.horizon);
        let min_real = config.first_outcome() + 1;
        let prioritized = (count as f64 * config.prioritized_fraction).round() as usize;
        let uniform = count - prioritized;
        let mut segments = self
            .replay
            .sample_forward(uniform, horizon, min_real, rng)?;
        if prioritized > 0 {
            let losses = &*self.segment_losses;
            let drawn =
                (self.replay).sample_prioritized(prioritized, horizon, min_real, losses, rng);
            segments.extend(drawn?);
        }
        Some(segments)
    }

    /// The losses on the epoch's new steps, before the world model is trained on them. Empty without such steps.
    fn validation_losses(&mut self, tokenizer: &Tokenizer) -> Vec<(&'static str, f64)> {
        let config = &self.epoch.config.world_model;
        let (batch_size, horizon) = (config.optimizer.batch_size, self.epoch.config.train.horizon);
        let min_real = config.first_outcome() + 1;
        let mut segments = (self.replay).segments_since(self.first_new, horizon, min_real);
        let every = segments.len().div_ceil(MAX_VALIDATION_SEGMENTS).max(1);
        segments = segments.into_iter().step_by(every).collect();
        let model = self.world_model.valid();
        let mut source = self.token_source(tokenizer);
        let names = [
            "validation/loss_obs",
            "validation/loss_rewards",
            "validation/loss_ends",
        ];
        mean_losses(names, model, &mut source, &segments, batch_size, horizon)
    }
}

/// The three losses of segments without dropout, as means over all their steps with a loss, by name. A loss without
/// such steps is left out.
pub(crate) fn mean_losses(
    names: [&'static str; 3],
    model: WorldModel,
    source: &mut TokenSource,
    segments: &[Segment],
    batch_size: usize,
    horizon: usize,
) -> Vec<(&'static str, f64)> {
    let model = model.without_dropout();
    let codes = source.tokenizer.codes();
    let mut means = WeightedMeans::default();
    for segments in segments.chunks(batch_size) {
        let batch = source.segments(segments, horizon);
        let losses = model.losses(&codes, &batch, 0);
        let losses = [&losses.observations, &losses.rewards, &losses.ends];
        means.add(losses.map(scalar), model.loss_steps(&batch));
    }
    let means = names.into_iter().zip(means.take());
    means
        .filter_map(|(name, mean)| Some((name, mean?)))
        .collect()
}

/// Means of the three losses over batches with different numbers of unmasked steps.
#[derive(Default)]
struct WeightedMeans {
    sums: [f64; 3],
    steps: [f64; 3],
}

impl WeightedMeans {
    /// Adds the mean losses of a batch, and the numbers of steps that they are means over.
    fn add(&mut self, losses: [f64; 3], steps: [f64; 3]) {
        for i in 0..3 {
            self.sums[i] += steps[i] * losses[i];
            self.steps[i] += steps[i];
        }
    }

    /// The means over all steps; `None` for a loss without any.
    fn take(self) -> [Option<f64>; 3] {
        std::array::from_fn(|i| (self.steps[i] > 0.0).then(|| self.sums[i] / self.steps[i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::model::world_model::{TokenBatch, WorldModelSizes};
    use burn::tensor::{Device, Tensor};
    use rem_kernels::Precision;

    /// Segments of 5 steps, of which the first `real` are real, with different tokens, rewards and ends.
    fn batch(real: &[usize]) -> TokenBatch {
        let (size, steps, k) = (real.len(), 5, 4);
        let device = Device::flex();
        let hashed = |i: usize| (i * i * 7 + i * 3) % 11;
        let numbers = |count: usize, below: usize| -> Tensor<1> {
            let numbers: Vec<f32> = (0..count).map(|i| (hashed(i) % below) as f32).collect();
            Tensor::from_floats(&numbers[..], &device)
        };
        let mask: Vec<f32> = (real.iter())
            .flat_map(|real| (0..steps).map(move |t| f32::from(t < *real)))
            .collect();
        TokenBatch {
            tokens: numbers(size * steps * k, 9).int().reshape([size, steps, k]),
            actions: numbers(size * steps, 3).int().reshape([size, steps]),
            rewards: numbers(size * steps, 2).reshape([size, steps]),
            ends: numbers(size * steps, 2).int().reshape([size, steps]),
            mask: Tensor::<1>::from_floats(&mask[..], &device).reshape([size, steps]),
        }
    }

    /// Segment `i` of a batch.
    fn segment(batch: &TokenBatch, i: usize) -> TokenBatch {
        TokenBatch {
            tokens: batch.tokens.clone().narrow(0, i, 1),
            actions: batch.actions.clone().narrow(0, i, 1),
            rewards: batch.rewards.clone().narrow(0, i, 1),
            ends: batch.ends.clone().narrow(0, i, 1),
            mask: batch.mask.clone().narrow(0, i, 1),
        }
    }

    /// Segments of 5, 2 and 3 real steps: a mean over segments would weigh the short ones as much as the long one.
    #[test]
    fn validation_losses_weigh_by_unmasked_steps() {
        for set in [
            "world_model.reward_loss_start=after_context",
            "world_model.reward_loss_start=from_context",
            "world_model.loss_start=every_step",
            "world_model.loss_start=every_step world_model.architecture=retnet",
        ] {
            let set: Vec<String> = set.split(' ').map(str::to_owned).collect();
            let config = Config::load("debug", &set).unwrap();
            let sizes = WorldModelSizes {
                tokens_per_obs: 4,
                ..WorldModelSizes::of(&config, 3)
            };
            let device = Device::flex();
            let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
            let model = model.without_dropout();
            let codes = Tensor::ones([sizes.vocabulary, sizes.width], &device);
            let losses = |batch: &TokenBatch| {
                let l = model.losses(&codes, batch, 0);
                [&l.observations, &l.rewards, &l.ends].map(scalar)
            };
            let whole = batch(&[5, 2, 3]);
            let mut means = WeightedMeans::default();
            let mut by_segment = [0.0; 3];
            for i in 0..3 {
                let part = segment(&whole, i);
                means.add(losses(&part), model.loss_steps(&part));
                for (sum, loss) in by_segment.iter_mut().zip(losses(&part)) {
                    *sum += loss / 3.0;
                }
            }
            let (means, expected) = (means.take(), losses(&whole));
            for i in 0..3 {
                let mean = means[i].unwrap();
                assert!((mean - expected[i]).abs() < 1e-5, "{set:?}: {means:?}");
            }
            // The weights are random, so a single loss may be the same by chance.
            let differs = |i: usize| (by_segment[i] - expected[i]).abs() > 1e-4;
            assert!((0..3).any(differs), "{set:?}: {by_segment:?}");
        }
    }

    #[test]
    fn a_loss_without_steps_has_no_mean() {
        let mut means = WeightedMeans::default();
        means.add([0.0, 2.0, 4.0], [0.0, 3.0, 3.0]);
        assert_eq!(means.take(), [None, Some(2.0), Some(4.0)]);
    }
}
