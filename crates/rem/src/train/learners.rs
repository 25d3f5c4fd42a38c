//! The parts of a [`Trainer`] that learn, divided so that they can learn at the same time: tokenizer and world model from
//! the replay, the controller in imagination. They have no data in common but what an epoch does not change.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;

use super::objective::ControllerObjective;
use super::optimizer::AdamW;
use super::phase::Phase;
use super::trainer::Trainer;
use crate::config::Config;
use crate::data::batch::{HostStarts, TokenSource};
use crate::data::replay::{Replay, SegmentLosses};
use crate::model::actor_critic::ActorCritic;
use crate::model::tokenizer::Tokenizer;
use crate::model::tokenizer::lpips::Lpips;
use crate::model::world_model::WorldModel;
use crate::run::metrics::Metrics;
use crate::seeds::{Purpose, Seeds};

/// An epoch, as all of its training phases see it.
#[derive(Clone, Copy)]
pub(super) struct Epoch<'a> {
    pub(super) number: u32,
    pub(super) config: &'a Config,
    pub(super) seeds: Seeds,
    pub(super) device: &'a Device,
}

impl Epoch<'_> {
    pub(super) fn rng(&self, purpose: Purpose) -> ChaCha8Rng {
        self.seeds.rng(self.number, purpose)
    }

    pub(super) fn learns(&self, phase: Phase) -> bool {
        phase.settings(self.config).learns_in(self.number)
    }

    fn learning_rate(&self, phase: Phase) -> f64 {
        let settings = phase.settings(self.config);
        settings.learning_rate_in(self.number, self.config.train.epochs)
    }
}

/// What learns from the replay: tokenizer and world model.
pub(super) struct WorldLearner<'a> {
    pub(super) epoch: Epoch<'a>,
    pub(super) tokenizer: &'a mut Tokenizer,
    pub(super) tokenizer_optimizer: &'a mut AdamW,
    pub(super) lpips: Option<&'a Lpips>,
    pub(super) world_model: &'a mut WorldModel,
    pub(super) world_model_optimizer: &'a mut AdamW,
    pub(super) segment_losses: &'a mut SegmentLosses,
    pub(super) replay: &'a mut Replay,
    /// The position of the first replay step of this epoch.
    pub(super) first_new: usize,
}

/// What learns in imagination: the controller.
pub(super) struct ControllerLearner<'a> {
    pub(super) epoch: Epoch<'a>,
    pub(super) controller: &'a mut ActorCritic,
    pub(super) optimizer: &'a mut AdamW,
    pub(super) objective: &'a mut ControllerObjective,
}

impl Trainer {
    /// Divides the trainer for an epoch, and sets its learning rates. `first_new` is the position of the first replay step
    /// of the epoch.
    pub(super) fn learners(
        &mut self,
        number: u32,
        first_new: usize,
    ) -> (WorldLearner<'_>, ControllerLearner<'_>, &mut Metrics) {
        let epoch = Epoch {
            number,
            config: &self.config,
            seeds: self.seeds,
            device: &self.device,
        };
        for phase in Phase::ALL {
            let rate = epoch.learning_rate(phase);
            self.optimizers.of(phase).set_learning_rate(rate);
        }
        let world = WorldLearner {
            epoch,
            tokenizer: &mut self.agent.tokenizer,
            tokenizer_optimizer: &mut self.optimizers.tokenizer,
            lpips: self.lpips.as_ref(),
            world_model: &mut self.agent.world_model,
            world_model_optimizer: &mut self.optimizers.world_model,
            segment_losses: &mut self.segment_losses,
            replay: &mut self.replay,
            first_new,
        };
        let controller = ControllerLearner {
            epoch,
            controller: &mut self.agent.actor_critic,
            optimizer: &mut self.optimizers.actor_critic,
            objective: &mut self.objective,
        };
        (world, controller, &mut self.metrics)
    }
}

/// Version of the token cache. Changes with every optimizer step of the tokenizer and with every epoch: checkpoints do not
/// include the cache, so a resumed run could round near ties between two codes differently.
pub(super) fn token_generation(epoch: u32, tokenizer_optimizer: &AdamW) -> u64 {
    (u64::from(epoch) << 40) | tokenizer_optimizer.steps()
}

impl WorldLearner<'_> {
    /// Draws what rollouts of a batch start from, encoded by this tokenizer, which must be a copy of the learner's. `None`
    /// if no episode is long enough.
    pub(super) fn dream_starts<'a>(
        &'a mut self,
        tokenizer: &'a Tokenizer,
    ) -> impl FnMut(&mut ChaCha8Rng) -> Option<HostStarts> {
        let config = self.epoch.config;
        let (length, batch) = (
            config.actor_critic.burn_in + 1,
            config.actor_critic.optimizer.batch_size,
        );
        let context = self.world_model.context();
        let mut source = self.token_source(tokenizer);
        move |rng| {
            let segments = (source.replay).sample_backward(batch, length, context, rng)?;
            Some(source.dream_starts(&segments, length))
        }
    }

    /// Token batches of the replay, encoded by a copy of the learner's tokenizer.
    pub(super) fn token_source<'a>(&'a mut self, tokenizer: &'a Tokenizer) -> TokenSource<'a> {
        TokenSource {
            tokenizer,
            generation: token_generation(self.epoch.number, self.tokenizer_optimizer),
            tokens_per_obs: self.epoch.config.tokens_per_obs(),
            device: self.epoch.device,
            replay: self.replay,
        }
    }

    /// Copies of tokenizer and world model without autodiff, for dreams.
    pub(super) fn for_dreams(&self) -> (Tokenizer, WorldModel) {
        (self.tokenizer.valid(), self.world_model.valid())
    }
}
