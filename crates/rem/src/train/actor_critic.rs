//! The controller's training phase (paper, Algorithm 7: `train_C`).

use burn::module::Module;
use rand_chacha::ChaCha8Rng;

use super::learners::ControllerLearner;
use super::objective::ControllerObjective;
use super::optimizer::{AdamW, NotFinite};
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use crate::config::{self, ReturnScaling};
use crate::data::batch::HostStarts;
use crate::imagination::{Rollout, imagine};
use crate::model::actor_critic::{self, ActorCritic};
use crate::model::tokenizer::Tokenizer;
use crate::model::weights::{Array, Arrays};
use crate::model::world_model::WorldModel;
use crate::seeds::Purpose;

impl ControllerLearner<'_> {
    /// Trains the controller for an epoch, on rollouts that tokenizer and world model imagine. `starts` returns what
    /// those of a batch start from, or `None` if no episode is long enough.
    pub(super) fn train(
        &mut self,
        tokenizer: &Tokenizer,
        world_model: &WorldModel,
        mut starts: impl FnMut(&mut ChaCha8Rng) -> Option<HostStarts>,
        mut on_step: impl FnMut(usize),
    ) -> Result<PhaseReport, Diverged> {
        let config = &self.epoch.config.actor_critic;
        let steps = self.epoch.config.rollout_steps();
        let mut rng = self.epoch.rng(Purpose::ActorCritic);
        let mut metrics = ControllerMetrics::default();
        for step in 0..config.optimizer.steps_per_epoch {
            let Some(starts) = starts(&mut rng) else {
                return Ok(PhaseReport::no_segments("controller"));
            };
            let starts = starts.to_device(self.epoch.device);
            let rollout = imagine(
                &self.controller.valid(),
                world_model,
                tokenizer,
                starts.clone(),
                steps,
                config.inputs.burn_in_actions(),
                &mut rng,
            );
            let learner = Learner {
                controller: self.controller,
                optimizer: self.optimizer,
                objective: self.objective,
            };
            let updated = learner.update(rollout, config, &mut metrics);
            updated.map_err(|NotFinite(what)| Diverged {
                phase: Phase::ActorCritic.name(),
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(starts.tokens.float())),
                    ("actions".into(), Array::from_tensor(starts.actions.float())),
                    ("mask".into(), Array::from_tensor(starts.mask)),
                ]),
            })?;
            on_step(step + 1);
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
