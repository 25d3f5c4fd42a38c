//! The world model's training phase (paper, Algorithm 6: `train_M`).

use burn::module::Module;
use rand::RngExt;

use super::optimizer::NotFinite;
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use super::trainer::Trainer;
use super::{Event, Listener};
use crate::model::tokenizer::Tokenizer;
use crate::model::weights::{Array, Arrays, WeightAverage};
use crate::seeds::Purpose;

/// Maximum number of segments for the validation losses.
const MAX_VALIDATION_SEGMENTS: usize = 64;

impl Trainer {
    /// Trains the world model for an epoch. `first_new` is the position of the first replay step of this epoch.
    pub(super) fn train_world_model(
        &mut self,
        epoch: u32,
        first_new: usize,
        listener: Listener,
    ) -> Result<PhaseReport, Diverged> {
        let config = self.config.world_model.clone();
        let (settings, horizon) = (&config.optimizer, self.config.train.horizon);
        let mut rng = self.seeds.rng(epoch, Purpose::WorldModel);
        // Seeds dropout on devices that have their own generator.
        self.seeds
            .seed_device(&self.device, epoch, Purpose::WorldModel);
        let tokenizer = self.agent.tokenizer.valid();
        let codes = tokenizer.codes();
        let validation = self.validation_losses(&tokenizer, first_new);
        let (mut means, mut average) = (Means::default(), WeightAverage::default());
        let averaged = (settings.steps_per_epoch as f64 * config.weight_averaging).round() as usize;
        for step in 0..settings.steps_per_epoch {
            let segments = self.replay.sample_forward(
                settings.batch_size,
                horizon,
                config.first_outcome() + 1,
                &mut rng,
            );
            let Some(segments) = segments else {
                return Ok(PhaseReport::no_segments("world model"));
            };
            let batch = self.token_source(&tokenizer).segments(&segments, horizon);
            let losses = self.agent.world_model.losses(&codes, &batch, rng.random());
            let total = losses.total();
            let result = self
                .optimizers
                .world_model
                .step(self.agent.world_model.clone(), &total);
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
            self.agent.world_model = world_model;
            if step + averaged >= settings.steps_per_epoch {
                average.add(&self.agent.world_model);
            }
            means.add(&[
                ("loss", scalar(&total)),
                ("loss_obs", scalar(&losses.observations)),
                ("loss_rewards", scalar(&losses.rewards)),
                ("loss_ends", scalar(&losses.ends)),
                ("grad_norm", norm),
            ]);
            listener(Event::Step { done: step + 1 });
        }
        self.agent.world_model = average.apply_to(self.agent.world_model.clone());
        let mut values = means.take();
        values.extend(validation);
        Ok(PhaseReport {
            values,
            warnings: vec![],
        })
    }

    /// The losses on the steps from position `first_new` on, before the world model is trained on them. Empty without
    /// such steps.
    fn validation_losses(
        &mut self,
        tokenizer: &Tokenizer,
        first_new: usize,
    ) -> Vec<(&'static str, f64)> {
        let config = &self.config.world_model;
        let (batch_size, horizon) = (config.optimizer.batch_size, self.config.train.horizon);
        let min_real = config.first_observation() + 1;
        let mut segments = self.replay.segments_since(first_new, horizon, min_real);
        let every = segments.len().div_ceil(MAX_VALIDATION_SEGMENTS).max(1);
        segments = segments.into_iter().step_by(every).collect();
        let model = self.agent.world_model.valid().without_dropout();
        let codes = tokenizer.codes();
        let mut sums = [0.0; 3];
        for segments in segments.chunks(batch_size) {
            let batch = self.token_source(tokenizer).segments(segments, horizon);
            let losses = model.losses(&codes, &batch, 0);
            let losses = [&losses.observations, &losses.rewards, &losses.ends];
            for (sum, loss) in sums.iter_mut().zip(losses) {
                *sum += segments.len() as f64 * scalar(loss);
            }
        }
        let names = [
            "validation/loss_obs",
            "validation/loss_rewards",
            "validation/loss_ends",
        ];
        let means = sums.map(|sum| sum / segments.len() as f64);
        names
            .into_iter()
            .zip(means)
            .filter(|_| !segments.is_empty())
            .collect()
    }
}
