//! The three components of an agent, for training and for inference.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::config::Config;
use crate::model::actor_critic::{ActorCritic, ControllerSizes};
use crate::model::tokenizer::Tokenizer;
use crate::model::weights::{self, Arrays};
use crate::model::world_model::{WorldModel, WorldModelSizes};
use crate::seeds::{Purpose, Seeds};

/// The three components with trainable weights.
#[derive(Clone, Debug)]
pub struct Agent {
    /// V.
    pub tokenizer: Tokenizer,
    /// M.
    pub world_model: WorldModel,
    /// C.
    pub actor_critic: ActorCritic,
}

/// Names of the components in files and messages.
const COMPONENTS: [&str; 3] = ["tokenizer", "world_model", "actor_critic"];

impl Agent {
    /// An agent with initial weights drawn from the run's seed. Training needs a `device` with autodiff.
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
        // Burn draws a parameter when it is first read. Read all of them now, in a fixed order, so that the seed
        // determines them.
        agent.arrays();
        agent
    }

    /// All weights on the host, by component.
    pub(crate) fn arrays(&self) -> [(&'static str, Arrays); 3] {
        [
            (COMPONENTS[0], weights::collect(&self.tokenizer)),
            (COMPONENTS[1], weights::collect(&self.world_model)),
            (COMPONENTS[2], weights::collect(&self.actor_critic)),
        ]
    }

    /// Replaces all weights, in the order of [`COMPONENTS`].
    ///
    /// # Errors
    ///
    /// Returns the component and the reason if names or shapes do not match.
    pub(crate) fn with_arrays(self, arrays: [Arrays; 3]) -> Result<Self, (&'static str, String)> {
        let [tokenizer, world_model, actor_critic] = arrays;
        Ok(Self {
            tokenizer: weights::apply(self.tokenizer, tokenizer).map_err(|e| (COMPONENTS[0], e))?,
            world_model: weights::apply(self.world_model, world_model)
                .map_err(|e| (COMPONENTS[1], e))?,
            actor_critic: weights::apply(self.actor_critic, actor_critic)
                .map_err(|e| (COMPONENTS[2], e))?,
        })
    }

    /// A copy for acting, without autodiff.
    pub fn valid(&self) -> Player {
        let tokenizer = self.tokenizer.valid();
        Player {
            codes: tokenizer.codes(),
            tokenizer,
            actor_critic: self.actor_critic.valid(),
        }
    }
}

/// The components that act in an environment, without autodiff: tokenizer and controller.
#[derive(Clone, Debug)]
pub struct Player {
    /// V.
    pub tokenizer: Tokenizer,
    /// The tokenizer's codes, `[vocabulary, embedding]`.
    pub codes: Tensor<2>,
    /// C.
    pub actor_critic: ActorCritic,
}
