//! The three components together, in training form and as inference copies.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::actor_critic::{ActorCritic, ControllerSizes};
use crate::config::Config;
use crate::seeds::{Purpose, Seeds};
use crate::tokenizer::Tokenizer;
use crate::weights::{self, Arrays};
use crate::world_model::{WorldModel, WorldModelSizes};

#[derive(Clone, Debug)]
pub struct Agent {
    pub tokenizer: Tokenizer,
    pub world_model: WorldModel,
    pub actor_critic: ActorCritic,
}

/// The names of the components in files and messages.
pub const COMPONENTS: [&str; 3] = ["tokenizer", "world_model", "actor_critic"];

impl Agent {
    /// A newborn agent with weights from the run's seed. `device` has autodiff.
    pub fn new(config: &Config, actions: usize, seeds: &Seeds, device: &Device) -> Self {
        seeds.seed_device(device, 0, Purpose::Init);
        let agent = Self {
            tokenizer: Tokenizer::new(&config.tokenizer, config.precision.into(), device),
            world_model: WorldModel::new(
                &config.world_model,
                WorldModelSizes::of(config, actions),
                config.precision.into(),
                device,
            ),
            actor_critic: ActorCritic::new(
                &config.actor_critic,
                ControllerSizes::of(config, actions),
                config.precision.into(),
                device,
            ),
        };
        // Parameters are drawn when first read: read them all now, in one order, while the seed holds.
        agent.arrays();
        agent
    }

    /// All weights on the host, a file per component.
    pub fn arrays(&self) -> [(&'static str, Arrays); 3] {
        [
            (COMPONENTS[0], weights::collect(&self.tokenizer)),
            (COMPONENTS[1], weights::collect(&self.world_model)),
            (COMPONENTS[2], weights::collect(&self.actor_critic)),
        ]
    }

    /// The same agent with other weights, in the order of [`COMPONENTS`]; the error names the component.
    pub fn with_arrays(self, arrays: [Arrays; 3]) -> Result<Self, (&'static str, String)> {
        let [tokenizer, world_model, actor_critic] = arrays;
        Ok(Self {
            tokenizer: weights::apply(self.tokenizer, tokenizer).map_err(|e| (COMPONENTS[0], e))?,
            world_model: weights::apply(self.world_model, world_model)
                .map_err(|e| (COMPONENTS[1], e))?,
            actor_critic: weights::apply(self.actor_critic, actor_critic)
                .map_err(|e| (COMPONENTS[2], e))?,
        })
    }

    /// An inference copy: no autodiff, no dropout.
    pub fn valid(&self) -> Player {
        let tokenizer = self.tokenizer.valid();
        Player {
            codes: tokenizer.codes(),
            tokenizer,
            actor_critic: self.actor_critic.valid(),
        }
    }
}

/// What it takes to play: the tokenizer's eyes and the controller, without gradients.
#[derive(Clone, Debug)]
pub struct Player {
    pub tokenizer: Tokenizer,
    /// `[vocabulary, embedding]`
    pub codes: Tensor<2>,
    pub actor_critic: ActorCritic,
}
