//! Configuration: presets, `key=value` overrides, and the sizes that follow from them.
//!
//! A [`Config`] does not change during a run. `configs/atari100k.toml` holds every key. The other presets and the
//! overrides of the command line only change values, so a typo is always an unknown key.
//!
//! ```
//! use rem::config::Config;
//!
//! let config = Config::load("quick", &["seed=7".into(), "env.game=paddle".into()])?;
//! assert_eq!((config.seed, config.tokens_per_obs()), (7, 16));
//! # Ok::<(), rem::Error>(())
//! ```

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

mod actor_critic;
mod changes;
mod docs;
mod env;
mod error;
mod lines;
mod mistyped;
mod optimizer;
mod overlay;
mod renamed;
mod tokenizer;
mod validate;
mod values;
mod world_model;
mod wrappers;

pub use actor_critic::{
    ActorCritic, ControllerInputs, ReturnScaling, RolloutLength, SlowCritic, Values,
};
pub use env::{Atari, EnvConfig, EnvMode, FRAME_SIZES, TrainTest};
pub use error::ConfigError;
pub use optimizer::OptimizerConfig;
pub use tokenizer::{CodebookInit, Encoder, Perceptual, Quantizer, Reconstruction, Tokenizer};
pub use values::{NearestPreset, PresetValues};
pub use world_model::{
    Activation, Architecture, Decay, Embeddings, Generation, LossStart, PopMode, RewardHeadInput,
    RewardLossStart, Rewards, WorldModel,
};
pub use wrappers::{Python, PythonObservation, ResizeFilter, RewardTransform, Wrappers};

/// The format of config files; files of format 1 had other key names and no `format`.
pub const FORMAT: u32 = 2;

type Result<T, E = ConfigError> = std::result::Result<T, E>;

/// The presets in the binary, by name; the first is the base of all others.
pub const PRESETS: &[(&str, &str)] = &[
    ("atari100k", include_str!("../../../configs/atari100k.toml")),
    (
        "atari-laptop",
        include_str!("../../../configs/atari-laptop.toml"),
    ),
    ("quick", include_str!("../../../configs/quick.toml")),
    ("debug", include_str!("../../../configs/debug.toml")),
    (
        "paper-text",
        include_str!("../../../configs/paper-text.toml"),
    ),
    ("iris", include_str!("../../../configs/iris.toml")),
    ("simulus", include_str!("../../../configs/simulus.toml")),
    (
        "ablation-none",
        include_str!("../../../configs/ablation-none.toml"),
    ),
    (
        "ablation-no-pop",
        include_str!("../../../configs/ablation-no-pop.toml"),
    ),
    (
        "ablation-iris",
        include_str!("../../../configs/ablation-iris.toml"),
    ),
    (
        "ablation-separate-embeddings",
        include_str!("../../../configs/ablation-separate-embeddings.toml"),
    ),
    (
        "ablation-8x8",
        include_str!("../../../configs/ablation-8x8.toml"),
    ),
    (
        "ablation-4x4",
        include_str!("../../../configs/ablation-4x4.toml"),
    ),
    (
        "ablation-iris-controller",
        include_str!("../../../configs/ablation-iris-controller.toml"),
    ),
    (
        "ablation-no-action-inputs",
        include_str!("../../../configs/ablation-no-action-inputs.toml"),
    ),
];

/// Every setting of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Version of the config format.
    pub format: u32,
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// Compute device: `flex` (CPU), or `cuda`, `vulkan`, `wgpu`, `metal`, `rocm` with an optional `:index`.
    pub device: String,
    /// CPU threads; 0 means one per core.
    pub threads: usize,
    /// Number type of matrix products.
    pub precision: Precision,
    /// The environment.
    pub env: EnvConfig,
    /// Collection of experience.
    pub collect: Collect,
    /// The training schedule.
    pub train: Train,
    /// Evaluation.
    pub evaluate: Evaluate,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The world model.
    pub world_model: WorldModel,
    /// The controller.
    pub actor_critic: ActorCritic,
}

/// Number type of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Everything in f32.
    F32,
    /// Factors rounded to bfloat16; sums, weights and everything else in f32.
    Mixed,
}

impl Precision {
    /// The name in config files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Mixed => "mixed",
        }
    }
}

impl From<Precision> for rem_kernels::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32,
            Precision::Mixed => Self::Mixed,
        }
    }
}

/// Steps for which a random action is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(extend("x-types" = "integer or `zeta`"))]
#[serde(untagged, expecting = "expected a number of steps or \"zeta\"")]
pub enum ActionRepeat {
    /// The same number each time.
    Steps(usize),
    /// A random number each time.
    Random(RandomRepeat),
}

/// Distribution of the steps for which a random action is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RandomRepeat {
    /// n steps with a probability proportional to 1/n² (εz-greedy exploration).
    Zeta,
}

/// Collection of experience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// Epochs that collect experience, from the first on; 0 only with `rem train --offline`.
    pub epochs: u32,
    /// Environment steps per epoch.
    pub steps_per_epoch: usize,
    /// Probability of a uniformly random action.
    pub epsilon: f64,
    /// Steps for which a random action is repeated; `zeta`: n steps with a probability proportional to 1/n² (εz-greedy
    /// exploration).
    pub random_action_repeat: ActionRepeat,
    /// Softmax temperature of the collecting policy.
    pub temperature: f64,
    /// Whether each epoch starts with a new episode, which truncates the one before (Algorithm 4).
    pub reset_per_epoch: bool,
    /// Environments that are played side by side; they share the steps of an epoch.
    #[serde(default = "one")]
    pub envs: usize,
}

fn one() -> usize {
    1
}

/// The training schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Epochs of the run.
    pub epochs: u32,
    /// H: steps of a world-model training segment.
    pub horizon: usize,
    /// AdamW's beta 1, for all components.
    pub beta_1: f64,
    /// AdamW's beta 2.
    pub beta_2: f64,
    /// AdamW's epsilon.
    pub adam_epsilon: f64,
    /// Whether the controller learns at the same time as tokenizer and world model. It then learns with both as they were
    /// when the epoch started.
    #[serde(default)]
    pub overlap_phases: bool,
}

/// Evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluate {
    /// Epochs between evaluations; 0 means only the final one.
    pub every: u32,
    /// Episodes of an evaluation during training.
    pub episodes: usize,
    /// Episodes of the final evaluation.
    pub final_episodes: usize,
    /// Softmax temperature of the evaluated policy.
    pub temperature: f64,
}

/// The canonical name of an Atari game; other names are unchanged.
fn canonical_game(game: &str) -> String {
    rem_ale::Game::named(game).map_or_else(|_| game.into(), |game| game.name.into())
}

impl Config {
    /// Loads presets (`a` or `a,b,…`, later ones win), the game's own settings, and overrides (`key=value`, later
    /// ones win), and validates the result.
    pub fn load(preset: &str, overrides: &[String]) -> Result<Self> {
        let assign_all = |mut table: Table| -> Result<Table> {
            for assignment in overrides {
                overlay::assign(&mut table, assignment)?;
            }
            Ok(table)
        };
        let mut table = overlay::preset(preset)?;
        let assigned = assign_all(table.clone())?;
        let game = assigned.get("env").and_then(|env| env.get("game"));
        let game = canonical_game(game.and_then(Value::as_str).unwrap_or_default());
        overlay::merge(&mut table, overlay::of_game(&game));
        overlay::complete_variants(&mut table);
        Self::from_table(assign_all(table)?)
    }

    /// Reads a resolved config as [`Config::to_toml`] writes it, and applies overrides.
    pub fn from_toml(text: &str, overrides: &[String]) -> Result<Self> {
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
            ConfigError::new(
                format!("not valid TOML: {}", one_line(e.message())),
                "`rem config quick` prints a complete config",
            )
            .with_line(e.span().map(|span| lines::line_at(text, span.start)))
        })?;
        renamed::reject_old_format(&table)?;
        for assignment in overrides {
            overlay::assign(&mut table, assignment)?;
        }
        Self::from_table(table).map_err(|error| {
            let line = error.key().and_then(|key| lines::line_of(text, key));
            error.with_line(line)
        })
    }

    fn from_table(table: Table) -> Result<Self> {
        let mut config: Self = serde_path(Value::Table(table))?;
        validate::validate(&config)?;
        config.env.game = canonical_game(&config.env.game);
        Ok(config)
    }

    /// The config as TOML, with every key.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a config is always representable in TOML")
    }

    /// Tokens along one side of the latent grid.
    pub fn grid(&self) -> usize {
        self.env.frame_size >> self.tokenizer.downsamplings
    }

    /// K: tokens per observation.
    pub fn tokens_per_obs(&self) -> usize {
        self.grid() * self.grid()
    }

    /// Bytes of one RGB frame.
    pub fn frame_bytes(&self) -> usize {
        self.env.frame_size * self.env.frame_size * 3
    }

    /// Whether the controller learns at the same time as the other components in an epoch.
    pub fn overlaps_in(&self, epoch: u32) -> bool {
        let others = [&self.tokenizer.optimizer, &self.world_model.optimizer];
        self.train.overlap_phases
            && self.actor_critic.optimizer.learns_in(epoch)
            && others.iter().any(|optimizer| optimizer.learns_in(epoch))
    }

    /// Environment steps that the run collects.
    pub fn environment_steps(&self) -> u64 {
        let epochs = self.collect.epochs.min(self.train.epochs);
        u64::from(epochs).saturating_mul(self.collect.steps_per_epoch as u64)
    }

    /// Steps in a Transformer's context window: those of a training segment, which is also as long as a rollout with
    /// its context (see [`RolloutLength::Segment`]).
    pub fn context_window_steps(&self) -> usize {
        self.train.horizon
    }

    /// Observations in an imagined rollout: the last real one, then H - c imagined ones, or H (see [`RolloutLength`]).
    pub fn rollout_steps(&self) -> usize {
        match self.actor_critic.rollout_length {
            RolloutLength::Segment => self.train.horizon - self.world_model.context + 1,
            RolloutLength::Horizon => self.train.horizon + 1,
        }
    }

    /// Observations in a rollout and its context.
    pub fn trajectory_steps(&self) -> usize {
        self.world_model.context + self.rollout_steps() - 1
    }
}

/// Deserializes with the full key in the error.
fn serde_path(value: Value) -> Result<Config> {
    serde_path_to_error::deserialize(value.clone())
        .map_err(|e| mistyped::error(&e.path().to_string(), e.inner().message(), &value))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
