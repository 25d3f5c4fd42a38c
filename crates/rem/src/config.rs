//! The configuration: presets laid over each other, `key=value` overrides, and the sizes that follow.
//!
//! A [`Config`] is immutable once loaded. `configs/atari100k.toml` holds every key; the other presets
//! and the overrides of the command line only change values, so a typo is always an unknown key.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::env::Use;
use crate::error::{Error, Result};

mod ablations;
mod overlay;
mod validate;

pub use ablations::{Architecture, ControllerInputs, Embeddings, Generation, PopMode};

/// The presets in the binary, by name; the first is the base of all others.
pub const PRESETS: &[(&str, &str)] = &[
    ("atari100k", include_str!("../../../configs/atari100k.toml")),
    (
        "atari-laptop",
        include_str!("../../../configs/atari-laptop.toml"),
    ),
    ("quick", include_str!("../../../configs/quick.toml")),
    ("paddle", include_str!("../../../configs/paddle.toml")),
    ("crossing", include_str!("../../../configs/crossing.toml")),
    ("debug", include_str!("../../../configs/debug.toml")),
    ("iris", include_str!("../../../configs/iris.toml")),
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub seed: u64,
    pub device: String,
    pub threads: usize,
    pub precision: Precision,
    pub env: EnvSettings,
    pub collect: Collect,
    pub train: Train,
    pub evaluate: Evaluate,
    pub tokenizer: Tokenizer,
    pub world_model: WorldModel,
    pub actor_critic: ActorCritic,
}

/// A value for training episodes and one for test episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainTest<T> {
    pub train: T,
    pub test: T,
}

impl<T: Copy> TrainTest<T> {
    pub fn of(self, for_what: Use) -> T {
        match for_what {
            Use::Train => self.train,
            Use::Test => self.test,
        }
    }
}

/// What products of matrices are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    F32,
    /// Factors rounded to bfloat16; sums, weights and everything else in f32.
    Mixed,
}

impl Precision {
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvSettings {
    pub game: String,
    pub frame_size: usize,
    pub end_on_life_loss: TrainTest<bool>,
    pub max_steps: TrainTest<u32>,
    pub atari: Atari,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Atari {
    pub frame_skip: u32,
    pub max_noops: TrainTest<u32>,
    pub sticky_actions: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    pub epochs: u32,
    pub steps_per_epoch: usize,
    pub epsilon: f64,
    pub hold: usize,
    pub temperature: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    pub epochs: u32,
    pub horizon: usize,
    pub beta_1: f64,
    pub beta_2: f64,
    pub adam_epsilon: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluate {
    pub every: u32,
    pub episodes: usize,
    pub final_episodes: usize,
    pub temperature: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    pub vocabulary: usize,
    pub embedding: usize,
    pub channels: usize,
    pub downsamplings: usize,
    pub sight: Sight,
    pub quantiser_convs: bool,
    pub reconstruction: Reconstruction,
    pub reconstruction_weight: f64,
    pub perceptual: Perceptual,
    pub codebook_start: CodebookStart,
    pub revive_after: u32,
    pub optimise: Optimise,
}

/// How much of a frame the encoder looks at for one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sight {
    /// Nearly all of it: every convolution is 3x3.
    Wide,
    /// The code's own cell and not a pixel beside it, through a linear map that whitens its pixels and does not learn.
    Narrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reconstruction {
    Mse,
    L1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Perceptual {
    Auto,
    Off,
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodebookStart {
    Uniform,
    Data,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldModel {
    pub architecture: Architecture,
    pub pop_mode: PopMode,
    pub embeddings: Embeddings,
    pub layers: usize,
    pub heads: usize,
    pub feed_forward: usize,
    pub dropout: f64,
    pub context: usize,
    pub learn_from: usize,
    pub decay: DecayRates,
    /// Tokens over which the first and the last head forget, where the decays are spaced between the two.
    pub decay_over: [f64; 2],
    /// The rotations of a head turn from one radian a token, the first, down to a part of this, the last.
    pub rotation_base: f64,
    pub activation: Activation,
    pub rewards: Rewards,
    pub outcome_loss: OutcomeLoss,
    /// Share of an epoch's updates, its last ones, whose weights are averaged into those that it ends with.
    pub average: f64,
    pub optimise: Optimise,
}

/// From which step of a segment on the world model learns rewards and ends; "context" is what lies before the first
/// observation that is learned ([`WorldModel::first_observation`]). A dream's first step reads them at the last step of
/// the context, which the published program never trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeLoss {
    /// The step after the context, where observations are learned too.
    AfterContext,
    /// The last step of the context, where dreams begin.
    FromContext,
}

impl WorldModel {
    pub fn generation(&self) -> Generation {
        match (self.architecture, self.pop_mode) {
            (Architecture::Pop, PopMode::OneCall) => Generation::OneCall,
            (Architecture::Pop, PopMode::TwoCalls | PopMode::Auto) => Generation::TwoCalls,
            (Architecture::Retnet | Architecture::Transformer, _) => Generation::TokenByToken,
        }
    }

    /// The first observation of a segment that is learned.
    pub fn first_observation(&self) -> usize {
        match self.learn_from {
            0 => self.context,
            first => first,
        }
    }

    /// The first step of a segment whose reward and end are learned; it must be a real one.
    pub fn first_outcome(&self) -> usize {
        match self.outcome_loss {
            OutcomeLoss::AfterContext => self.first_observation(),
            OutcomeLoss::FromContext => self.first_observation() - 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecayRates {
    LogSpaced,
    PowersOfTwo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    Silu,
    Gelu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rewards {
    Sign,
    Continuous,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorCritic {
    pub inputs: ControllerInputs,
    pub lstm: usize,
    pub burn_in: usize,
    pub burn_in_inputs: BurnInInputs,
    pub discount: f64,
    pub lambda: f64,
    pub entropy: f64,
    pub after_end: AfterEnd,
    /// The value of having ended, in the controller's returns and nowhere else; discounted as any other value.
    pub end_value: f64,
    pub optimise: Optimise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BurnInInputs {
    ObservationsAndActions,
    Observations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterEnd {
    Keep,
    Ignore,
}

/// How one component is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimise {
    /// Epochs before this component starts to learn.
    pub start_after: u32,
    /// The last epoch in which it learns; 0 = to the end.
    pub stop_after: u32,
    pub steps_per_epoch: usize,
    pub batch: usize,
    pub learning_rate: f64,
    /// Share of the learning rate that is left in the component's last epoch; it falls evenly. 1 = it stays.
    pub rate_falls_to: f64,
    pub weight_decay: f64,
    /// Largest global norm of the gradients.
    pub clip: f64,
}

impl Optimise {
    /// Whether the component learns in `epoch` (the first is 1).
    pub fn learns_in(&self, epoch: u32) -> bool {
        let stopped = self.stop_after > 0 && epoch > self.stop_after;
        epoch > self.start_after && !stopped && self.steps_per_epoch > 0
    }

    /// The learning rate in `epoch` of a run of `epochs`.
    pub fn rate_in(&self, epoch: u32, epochs: u32) -> f64 {
        let first = self.start_after + 1;
        let last = match self.stop_after {
            0 => epochs,
            stop => stop.min(epochs),
        };
        if last <= first {
            return self.learning_rate;
        }
        let passed = f64::from(epoch.saturating_sub(first)) / f64::from(last - first);
        self.learning_rate * (1.0 - passed.min(1.0) * (1.0 - self.rate_falls_to))
    }
}

/// However an Atari game is spelled, it goes by one name.
fn one_name(game: &str) -> String {
    rem_ale::Game::named(game).map_or_else(|_| game.into(), |game| game.name.into())
}

impl Config {
    /// Presets laid over each other (`a` or `a,b,…`), what the game needs, and overrides (`key=value`, later
    /// ones win), validated.
    pub fn load(preset: &str, overrides: &[String]) -> Result<Self> {
        let assign_all = |mut table: Table| -> Result<Table> {
            for assignment in overrides {
                overlay::assign(&mut table, assignment)?;
            }
            Ok(table)
        };
        let (mut table, mut games) = overlay::preset(preset)?;
        let assigned = assign_all(table.clone())?;
        let game = assigned.get("env").and_then(|env| env.get("game"));
        let game = one_name(game.and_then(Value::as_str).unwrap_or_default());
        overlay::lay_over(&mut table, overlay::of_game(&mut games, &game));
        Self::from_table(assign_all(table)?)
    }

    /// A resolved config as [`Config::to_toml`] wrote it, with overrides.
    pub fn from_toml(text: &str, overrides: &[String]) -> Result<Self> {
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
            Error::config(
                format!("config is not valid TOML: {}", one_line(e.message())),
                "`rem config quick` prints a complete one",
            )
        })?;
        for assignment in overrides {
            overlay::assign(&mut table, assignment)?;
        }
        Self::from_table(table)
    }

    fn from_table(table: Table) -> Result<Self> {
        let mut config: Self = serde_path(Value::Table(table))?;
        validate::validate(&config)?;
        config.env.game = one_name(&config.env.game);
        Ok(config)
    }

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

    /// Steps that a run gathers.
    pub fn environment_steps(&self) -> u64 {
        let epochs = self.collect.epochs.min(self.train.epochs);
        u64::from(epochs) * self.collect.steps_per_epoch as u64
    }

    /// Steps that a Transformer remembers: those of a segment, of which a dream with its context is one.
    pub fn memory_steps(&self) -> usize {
        self.train.horizon
    }

    /// Observations in a dream, H - c + 1: a real one and those that the horizon leaves to dream.
    pub fn dream_steps(&self) -> usize {
        self.train.horizon - self.world_model.context + 1
    }
}

/// Deserialises with the full key in the error: `tokenizer.vocabulary: invalid type …`.
fn serde_path(value: Value) -> Result<Config> {
    serde_path_to_error::deserialize(value).map_err(|e| {
        let key = e.path().to_string();
        let message = one_line(e.inner().message());
        Error::config(
            format!("config key `{key}`: {message}"),
            "`rem config atari100k` shows every key with its values",
        )
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
