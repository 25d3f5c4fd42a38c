//! Estimates of a run's memory and disk usage, from its config.

use crate::config::{Architecture, Config, ControllerInputs};
use crate::data::replay;
use crate::device;
use crate::error::Result;
use crate::model::agent::Agent;
use crate::run::checkpoint;
use crate::seeds::Seeds;

/// Upper bounds in bytes, as floats because a config may exceed the range of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    /// Peak memory of the process.
    pub memory: f64,
    /// Size of the run directory.
    pub disk: f64,
}

const MIB: f64 = 1024.0 * 1024.0;
const FLOAT: f64 = 4.0;
/// The program, its threads, and memory that the allocator keeps between phases. With it, the estimates are 0.4 GiB for
/// `quick` (measured: 0.37) and 7.8 GiB for `atari100k` (measured: 5.4 in an epoch, plus 1.2 for a full replay).
const PROGRAM: f64 = 256.0 * MIB;
/// Logs, images and animations.
const RECORDS: f64 = 64.0 * MIB;

impl Resources {
    /// Estimates the resources of a run. `perceptual`: whether the LPIPS loss is on. Initializes an agent on the CPU to
    /// count its weights.
    ///
    /// # Errors
    ///
    /// If the CPU backend cannot be opened.
    pub fn estimate(config: &Config, actions: usize, perceptual: bool) -> Result<Self> {
        let device = device::open("flex")?.autodiff();
        let agent = Agent::new(config, actions, &Seeds::new(0), &device);
        let weights: usize = (agent.arrays().iter())
            .flat_map(|(_, arrays)| arrays.values())
            .map(|array| array.data.len())
            .sum();
        // In memory with gradient and the two moments of AdamW, on disk without the gradient.
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

// Tensors that a step keeps for its backward pass. The factors are fitted to peaks measured with `rem bench --only PHASE`
// at both of its scales, rounded up.

fn tokenizer(config: &Config, perceptual: bool) -> f64 {
    let pixels = config.tokenizer.optimizer.batch_size as f64 * config.env.frame_size.pow(2) as f64;
    let lpips = if perceptual { 1024.0 } else { 0.0 };
    pixels * (20.0 * config.tokenizer.channels as f64 + lpips) * FLOAT
}

fn world_model(config: &Config) -> f64 {
    let model = &config.world_model;
    let k = config.tokens_per_obs();
    let block = match model.architecture {
        Architecture::Pop { .. } | Architecture::PopAttention { .. } => 2 * k + 1,
        Architecture::Retnet { .. } | Architecture::Transformer {} => k + 1,
    };
    let rows = model.optimizer.batch_size as f64 * config.train.horizon as f64 * block as f64;
    let layer = 7 * config.tokenizer.embedding + 2 * model.feed_forward;
    let heads = 2 * config.tokenizer.vocabulary;
    rows * ((model.layers * layer + heads) as f64) * FLOAT
}

fn actor_critic(config: &Config) -> f64 {
    let controller = &config.actor_critic;
    let frames = controller.optimizer.batch_size as f64
        * (controller.burn_in + config.rollout_steps()) as f64;
    let codes = (config.tokens_per_obs() * config.tokenizer.embedding * 8) as f64;
    let observation = match controller.inputs {
        ControllerInputs::CodesAndActions { .. } | ControllerInputs::Codes {} => codes,
        // The first convolution's 32 channels, before and after pooling, and their gradients.
        ControllerInputs::Pixels {} => codes + (config.env.frame_size.pow(2) * 3 * 32) as f64,
    };
    let model = &config.world_model;
    let kv_cache = match model.architecture {
        Architecture::Pop { .. } | Architecture::Retnet { .. } => 0.0,
        Architecture::Transformer {} | Architecture::PopAttention { .. } => {
            let tokens = config.trajectory_steps() * (config.tokens_per_obs() + 1);
            controller.optimizer.batch_size as f64
                * tokens as f64
                * (2 * config.tokenizer.embedding * model.layers) as f64
        }
    };
    (frames * observation + kv_cache) * FLOAT
}
