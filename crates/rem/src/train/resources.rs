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
    /// Lower bounds: what no run of this config can do without. Unlike the estimate, they are known without an agent, whose
    /// sizes may be out of reach.
    pub fn least(config: &Config) -> Self {
        let memory = needs(config).map(|(_, bytes)| bytes).iter().sum();
        let disk = replay_bytes(config) + 3.0 * FLOAT * least_weights(config);
        Self { memory, disk }
    }

    /// The keys behind the largest part of [`Resources::least`].
    pub fn largest_key(config: &Config) -> &'static str {
        let needs = needs(config);
        let largest = needs.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        largest.map_or("", |(keys, _)| *keys)
    }

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
        let replay = replay_bytes(config);
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

/// Bytes of the replay, in memory and on disk.
fn replay_bytes(config: &Config) -> f64 {
    let step = config.frame_bytes() as f64 + replay::STEP_BYTES_BESIDES_FRAME as f64;
    config.environment_steps() as f64 * step
}

/// The largest matrices: attention or retention with its feed-forward layers, the codebook, the LSTM, a convolution.
fn least_weights(config: &Config) -> f64 {
    let (tokenizer, model) = (&config.tokenizer, &config.world_model);
    let embedding = tokenizer.embedding as f64;
    let layer = 4.0 * embedding * embedding + 2.0 * embedding * model.feed_forward as f64;
    model.layers as f64 * layer
        + tokenizer.vocabulary as f64 * embedding
        + 4.0 * (config.actor_critic.lstm_dim as f64).powi(2)
        + 9.0 * (tokenizer.channels as f64).powi(2)
}

/// Bytes of memory that a run needs at least, with the keys that they come from.
fn needs(config: &Config) -> [(&'static str, f64); 6] {
    let (tokenizer, model) = (&config.tokenizer, &config.world_model);
    let controller = &config.actor_critic.optimizer;
    let frame = config.frame_bytes() as f64 * FLOAT;
    let observation = config.tokens_per_obs() as f64 * tokenizer.embedding as f64 * FLOAT;
    let segments = model.optimizer.batch_size as f64 * config.train.horizon as f64;
    let evaluate = &config.evaluate;
    let episodes = evaluate.episodes.max(evaluate.final_episodes);
    [
        (
            "collect.steps_per_epoch or collect.epochs",
            replay_bytes(config),
        ),
        // With gradient and the two moments of AdamW.
        (
            "world_model.layers, world_model.feed_forward, tokenizer.embedding, tokenizer.channels or actor_critic.lstm_dim",
            4.0 * FLOAT * least_weights(config),
        ),
        (
            "tokenizer.optimizer.batch_size",
            tokenizer.optimizer.batch_size as f64 * frame,
        ),
        (
            "world_model.optimizer.batch_size or train.horizon",
            segments * observation,
        ),
        (
            "actor_critic.optimizer.batch_size",
            controller.batch_size as f64 * observation,
        ),
        // A return and a length each.
        (
            "evaluate.episodes and evaluate.final_episodes",
            12.0 * episodes as f64,
        ),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PRESETS;

    /// The lower bound refuses no run that the estimate allows.
    #[test]
    fn what_a_run_needs_at_least_is_below_the_estimate() {
        for (preset, _) in PRESETS {
            let config = Config::load(preset, &["env.game=catch".into()]).unwrap();
            let least = Resources::least(&config);
            let estimate = Resources::estimate(&config, 3, false).unwrap();
            assert!(
                0.0 < least.memory && least.memory < estimate.memory,
                "{preset}"
            );
            assert!(0.0 < least.disk && least.disk < estimate.disk, "{preset}");
        }
    }

    #[test]
    fn absurd_values_need_more_than_any_machine_has() {
        for (key, value) in [
            ("collect.steps_per_epoch", "9000000000000000000"),
            ("world_model.layers", "1000000000000"),
            ("actor_critic.lstm_dim", "1000000000"),
            ("tokenizer.optimizer.batch_size", "1000000000000"),
            ("world_model.optimizer.batch_size", "1000000000000"),
            ("evaluate.final_episodes", "9000000000000000000"),
        ] {
            let config = Config::load("quick", &[format!("{key}={value}")]).unwrap();
            assert!(Resources::least(&config).memory > 1e13, "{key}");
            let keys = Resources::largest_key(&config);
            let named = key
                .split('.')
                .next()
                .is_some_and(|section| keys.contains(section));
            assert!(named, "{key}: {keys}");
        }
    }
}
