//! What a run will take of the machine, estimated from its config before anything is trained.

use crate::agent::Agent;
use crate::checkpoint;
use crate::config::{Architecture, Config, ControllerInputs};
use crate::device;
use crate::error::Result;
use crate::replay;
use crate::seeds::Seeds;

/// Upper estimates in bytes. Not integers: a config may ask for more than those hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    pub memory: f64,
    pub disk: f64,
}

const MIB: f64 = 1024.0 * 1024.0;
const FLOAT: f64 = 4.0;
/// The program, its threads, and what the allocator keeps of phases that are over. With it, the estimates are 0.4 GiB for
/// `quick`, which took 0.37, and 7.8 GiB for `atari100k`, of which an epoch took 5.4 and a full replay takes 1.2.
const PROGRAM: f64 = 256.0 * MIB;
/// Metrics, pictures and films.
const RECORDS: f64 = 64.0 * MIB;

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
        let weights = weights as f64 * FLOAT;
        let steps = config.environment_steps() as f64;
        let replay =
            steps * (config.frame_bytes() as f64 + replay::STEP_BYTES_BESIDES_FRAME as f64);
        let tokens = steps * config.tokens_per_obs() as f64 * FLOAT;
        let phases = [
            tokenizer(config, perceptual),
            world_model(config),
            actor_critic(config),
        ];
        let largest = phases.into_iter().fold(0.0, f64::max);
        Ok(Self {
            memory: PROGRAM + 4.0 * weights + replay + tokens + largest,
            disk: RECORDS + (checkpoint::KEPT as f64 + 1.0) * 3.0 * weights + replay,
        })
    }
}

// What a step keeps for its backward pass. The factors are fitted to peaks measured by `rem bench --only PHASE` at both
// of its scales, rounded up.

fn tokenizer(config: &Config, perceptual: bool) -> f64 {
    let pixels = config.tokenizer.optimise.batch as f64 * config.env.frame_size.pow(2) as f64;
    let lpips = if perceptual { 1024.0 } else { 0.0 };
    pixels * (20.0 * config.tokenizer.channels as f64 + lpips) * FLOAT
}

fn world_model(config: &Config) -> f64 {
    let model = &config.world_model;
    let k = config.tokens_per_obs();
    let block = match model.architecture {
        Architecture::Pop => 2 * k + 1,
        Architecture::Retnet | Architecture::Transformer => k + 1,
    };
    let rows = model.optimise.batch as f64 * config.train.horizon as f64 * block as f64;
    let layer = 7 * config.tokenizer.embedding + 2 * model.feed_forward;
    let heads = 2 * config.tokenizer.vocabulary;
    rows * (model.layers as f64 * layer as f64 + heads as f64) * FLOAT
}

fn actor_critic(config: &Config) -> f64 {
    let controller = &config.actor_critic;
    let frames =
        controller.optimise.batch as f64 * (controller.burn_in + config.dream_steps()) as f64;
    let codes = (config.tokens_per_obs() * config.tokenizer.embedding * 8) as f64;
    let seen = match controller.inputs {
        ControllerInputs::CodesAndActions | ControllerInputs::Codes => codes,
        // The first convolution's 32 channels, before and after its pooling, and what goes back through them.
        ControllerInputs::Pixels => codes + (config.env.frame_size.pow(2) * 3 * 32) as f64,
    };
    let model = &config.world_model;
    let remembered = match model.architecture {
        Architecture::Pop | Architecture::Retnet => 0.0,
        Architecture::Transformer => {
            let tokens = config.memory_steps() * (config.tokens_per_obs() + 1);
            controller.optimise.batch as f64
                * tokens as f64
                * (2 * config.tokenizer.embedding * model.layers) as f64
        }
    };
    (frames * seen + remembered) * FLOAT
}
