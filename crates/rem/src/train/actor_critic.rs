//! The controller's training phase (paper, Algorithm 7: `train_C`).

use burn::module::Module;

use super::optimizer::NotFinite;
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use super::trainer::Trainer;
use super::{Event, Listener};
use crate::config::ReturnScaling;
use crate::imagination::imagine;
use crate::model::actor_critic;
use crate::model::weights::{Array, Arrays};
use crate::seeds::Purpose;

impl Trainer {
    /// Trains the controller for an epoch, on rollouts imagined from segments of the replay.
    pub(super) fn train_actor_critic(
        &mut self,
        epoch: u32,
        listener: Listener,
    ) -> Result<PhaseReport, Diverged> {
        let config = self.config.actor_critic.clone();
        let settings = &config.optimizer;
        let (length, steps) = (config.burn_in + 1, self.config.rollout_steps());
        let mut rng = self.seeds.rng(epoch, Purpose::ActorCritic);
        let tokenizer = self.agent.tokenizer.valid();
        let world_model = self.agent.world_model.valid();
        let (mut means, mut disagreements) = (Means::default(), Means::default());
        let (mut scales, ensemble) = (Means::default(), self.config.world_model.ensemble_heads > 0);
        for step in 0..settings.steps_per_epoch {
            let segments = self.replay.sample_backward(
                settings.batch_size,
                length,
                world_model.context(),
                &mut rng,
            );
            let Some(segments) = segments else {
                return Ok(PhaseReport::no_segments("controller"));
            };
            let starts = self
                .token_source(&tokenizer)
                .dream_starts(&segments, length);
            let rollout = imagine(
                &self.agent.actor_critic.valid(),
                &world_model,
                &tokenizer,
                starts.clone(),
                steps,
                config.inputs.burn_in_actions(),
                &mut rng,
            );
            let (experience, stats) =
                (self.objective).experience(rollout, &self.agent.actor_critic, &config);
            let return_scale = experience.return_scale;
            let losses = actor_critic::losses(experience, &config);
            let total = losses.total();
            let result = self
                .optimizers
                .actor_critic
                .step(self.agent.actor_critic.clone(), &total);
            let (controller, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: Phase::ActorCritic.name(),
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(starts.tokens.float())),
                    ("actions".into(), Array::from_tensor(starts.actions.float())),
                    ("mask".into(), Array::from_tensor(starts.mask)),
                ]),
            })?;
            self.agent.actor_critic = controller;
            self.objective.update(&self.agent.actor_critic, &config);
            means.add(&[
                ("loss", scalar(&total)),
                ("loss_policy", scalar(&losses.policy)),
                ("loss_value", scalar(&losses.value)),
                ("entropy", scalar(&losses.mean_entropy)),
                ("imagined_return", stats.mean_return),
                ("imagined_termination_rate", stats.termination_rate),
                ("imagined_value", stats.mean_value),
                ("grad_norm", norm),
            ]);
            if ensemble {
                disagreements.add(&[("imagined_disagreement", stats.mean_disagreement)]);
            }
            if config.return_scaling != (ReturnScaling::Off {}) {
                scales.add(&[("return_scale", return_scale)]);
            }
            listener(Event::Step { done: step + 1 });
        }
        Ok(PhaseReport {
            values: [means.take(), disagreements.take(), scales.take()].concat(),
            warnings: vec![],
        })
    }
}
