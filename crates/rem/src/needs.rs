//! What a run will take of the machine, estimated from its config before anything is trained.

use crate::agent::Agent;
use crate::checkpoint;
use crate::config::{Architecture, Config, ControllerInputs};
use crate::device;
use crate::error::Result;
use crate::replay;
use crate::seeds::Seeds;

/// Upper estimates in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub memory: u64,
    pub disk: u64,
}

const FLOAT: u64 = 4;
/// The program, its threads, and what the allocator keeps of phases that are over. With it, the estimates are 0.4 GiB for
/// `quick`, which took 0.37, and 7.8 GiB for `atari100k`, of which an epoch took 5.4 and a full replay takes 1.2.
const PROGRAM: u64 = 256 << 20;
/// Metrics, pictures and films.
const RECORDS: u64 = 64 << 20;

impl Needs {
    /// `perceptual`: with the loss that needs LPIPS weights. An agent is made on the CPU to count its weights.
    pub fn of(config: &Config, actions: usize, perceptual: bool) -> Result<Self> {
        let device = device::open("flex")?.autodiff();
        let agent = Agent::new(config, actions, &Seeds::new(0), &device);
        let weights: usize = (agent.arrays().iter())
            .flat_map(|(_, arrays)| arrays.values())
            .map(|array| array.data.len())
            .sum();
        // Each with its gradient and the two moments of AdamW; on disk without the gradient.
        let weights = weights as u64 * FLOAT;
        let steps = config.environment_steps();
        let replay = steps * (config.frame_bytes() as u64 + replay::STEP_BYTES_BESIDES_FRAME);
        let tokens = steps * config.tokens_per_obs() as u64 * FLOAT;
        let phases = [
            tokenizer(config, perceptual),
            world_model(config),
            actor_critic(config),
        ];
        let largest = phases.into_iter().max().unwrap_or(0);
        Ok(Self {
            memory: PROGRAM + 4 * weights + replay + tokens + largest,
            disk: RECORDS + (checkpoint::KEPT as u64 + 1) * 3 * weights + replay,
        })
    }
}

// What a step keeps for its backward pass. The factors are fitted to peaks measured by `rem bench --only PHASE` at both
// of its scales, rounded up.

fn tokenizer(config: &Config, perceptual: bool) -> u64 {
    let pixels = (config.tokenizer.optimise.batch * config.env.frame_size.pow(2)) as u64;
    let lpips = if perceptual { 1024 } else { 0 };
    pixels * (20 * config.tokenizer.channels as u64 + lpips) * FLOAT
}

fn world_model(config: &Config) -> u64 {
    let model = &config.world_model;
    let k = config.tokens_per_obs();
    let block = match model.architecture {
        Architecture::Pop => 2 * k + 1,
        Architecture::Retnet | Architecture::Transformer => k + 1,
    };
    let rows = model.optimise.batch * config.train.horizon * block;
    let layer = 7 * config.tokenizer.embedding + 2 * model.feed_forward;
    let heads = 2 * config.tokenizer.vocabulary;
    (rows * (model.layers * layer + heads)) as u64 * FLOAT
}

fn actor_critic(config: &Config) -> u64 {
    let controller = &config.actor_critic;
    let frames = controller.optimise.batch * (controller.burn_in + config.dream_steps());
    let codes = frames * config.tokens_per_obs() * config.tokenizer.embedding * 8;
    let seen = match controller.inputs {
        ControllerInputs::CodesAndActions | ControllerInputs::Codes => codes,
        // The first convolution's 32 channels, before and after its pooling, and what goes back through them.
        ControllerInputs::Pixels => codes + frames * config.env.frame_size.pow(2) * 3 * 32,
    };
    let model = &config.world_model;
    let remembered = match model.architecture {
        Architecture::Pop | Architecture::Retnet => 0,
        Architecture::Transformer => {
            let tokens = config.memory_steps() * (config.tokens_per_obs() + 1);
            controller.optimise.batch * tokens * 2 * config.tokenizer.embedding * model.layers
        }
    };
    (seen + remembered) as u64 * FLOAT
}
