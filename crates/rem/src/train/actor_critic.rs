//! The controller's training phase (paper, Algorithm 7: `train_C`).

use burn::module::Module;

use super::objective::ControllerObjective;
use super::optimizer::{AdamW, NotFinite};
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use super::trainer::Trainer;
use super::{Event, Listener};
use crate::config::{self, ReturnScaling};
use crate::imagination::{Rollout, imagine};
use crate::model::actor_critic::{self, ActorCritic};
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
        let mut metrics = ControllerMetrics::default();
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
            let learner = Learner {
                controller: &mut self.agent.actor_critic,
                optimizer: &mut self.optimizers.actor_critic,
                objective: &mut self.objective,
            };
            let updated = learner.update(rollout, &config, &mut metrics);
            updated.map_err(|NotFinite(what)| Diverged {
                phase: Phase::ActorCritic.name(),
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(starts.tokens.float())),
                    ("actions".into(), Array::from_tensor(starts.actions.float())),
                    ("mask".into(), Array::from_tensor(starts.mask)),
                ]),
            })?;
            listener(Event::Step { done: step + 1 });
        }
        Ok(PhaseReport {
            values: metrics.take(),
            warnings: vec![],
        })
    }
}

/// The controller and what learns with it.
pub(crate) struct Learner<'a> {
    pub(crate) controller: &'a mut ActorCritic,
    pub(crate) optimizer: &'a mut AdamW,
    pub(crate) objective: &'a mut ControllerObjective,
}

impl Learner<'_> {
    /// Updates the controller with a rollout.
    pub(crate) fn update(
        self,
        rollout: Rollout,
        config: &config::ActorCritic,
        metrics: &mut ControllerMetrics,
    ) -> Result<(), NotFinite> {
        let (experience, stats) = self.objective.experience(rollout, self.controller, config);
        let return_scale = experience.return_scale;
        let losses = actor_critic::losses(experience, config);
        let total = losses.total();
        let (controller, norm) = self.optimizer.step(self.controller.clone(), &total)?;
        *self.controller = controller;
        self.objective.update(self.controller, config);
        metrics.means.add(&[
            ("loss", scalar(&total)),
            ("loss_policy", scalar(&losses.policy)),
            ("loss_value", scalar(&losses.value)),
            ("entropy", scalar(&losses.mean_entropy)),
            ("imagined_return", stats.mean_return),
            ("imagined_termination_rate", stats.termination_rate),
            ("imagined_value", stats.mean_value),
            ("grad_norm", norm),
        ]);
        if let Some(disagreement) = stats.mean_disagreement {
            let disagreement = [("imagined_disagreement", disagreement)];
            metrics.disagreements.add(&disagreement);
        }
        if config.return_scaling != (ReturnScaling::Off {}) {
            metrics.scales.add(&[("return_scale", return_scale)]);
        }
        Ok(())
    }
}

/// The metrics of the updates so far.
#[derive(Default)]
pub(crate) struct ControllerMetrics {
    means: Means,
    disagreements: Means,
    scales: Means,
}

impl ControllerMetrics {
    pub(crate) fn take(self) -> Vec<(&'static str, f64)> {
        let all = [self.means, self.disagreements, self.scales];
        all.into_iter().flat_map(Means::take).collect()
    }
}
