//! Which component limits an agent: the tokenizer, the world model or the controller.
//!
//! All measurements are made on held-out play: new episodes of the agent, which it was not trained on ([`HeldOut`]).
//!
//! - [`Subject::tokenizer`] measures what is lost between frames and tokens.
//! - [`Subject::world_model`] compares dreams with the game, step by step and in their returns.
//! - [`Subject::controller`] trains the controller anew, with rollouts in the game instead of in dreams: a world model
//!   without errors.
//!
//! Each result has a verdict, a sentence for a user interface.

mod controller;
mod estimate;
mod held_out;
mod prediction;
mod returns;
mod simulation;
mod tokenizer;
mod world_model;

use burn::tensor::Device;

use crate::config::{Config, RewardTransform, Rewards};
use crate::data::batch::TokenSource;
use crate::data::replay::Replay;
use crate::env::EnvFactory;
use crate::model::agent::Agent;
use crate::model::tokenizer::Tokenizer;
use crate::seeds::Seeds;

pub use controller::{ControllerResult, GameTraining};
pub use estimate::Estimate;
pub use held_out::HeldOut;
pub use prediction::{Detection, StepAccuracy};
pub use returns::ReturnComparison;
pub use tokenizer::TokenizerResult;
pub use world_model::{Losses, WorldModelResult};

/// An agent and its game.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The settings of its run.
    pub config: &'a Config,
    /// The environments of its run.
    pub envs: &'a EnvFactory,
    /// The device without autodiff.
    pub device: &'a Device,
}

/// Receives the number of finished steps, and of all.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

impl Subject<'_> {
    fn seeds(&self) -> Seeds {
        Seeds::new(self.config.seed)
    }

    /// The reward that a controller learns from in the game: as the environment's wrappers and the world model transform it.
    fn learned_reward(&self, reward: f32) -> f32 {
        let transform: RewardTransform = self.config.env.wrappers.rewards;
        self.modeled_reward(transform.apply(reward))
    }

    /// A reward of the replay as the world model models it.
    fn modeled_reward(&self, reward: f32) -> f32 {
        match self.config.world_model.rewards {
            Rewards::Sign if reward == 0.0 => 0.0,
            Rewards::Sign => reward.signum(),
            Rewards::Continuous | Rewards::HlGauss => reward,
        }
    }

    /// Token batches of held-out play.
    fn tokens<'b>(&'b self, tokenizer: &'b Tokenizer, replay: &'b mut Replay) -> TokenSource<'b> {
        TokenSource {
            replay,
            tokenizer,
            // The tokenizer does not change.
            generation: 1,
            tokens_per_obs: self.config.tokens_per_obs(),
            device: self.device,
        }
    }
}

/// At most `most` of the elements, evenly spaced.
fn thinned<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let every = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests;
