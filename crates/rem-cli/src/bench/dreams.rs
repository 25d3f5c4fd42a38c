//! Counts and times imagination alone in each mode of the paper's Table 6, and with IRIS.

use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{Rng, RngExt};

use rem::Result;
use rem::config::{Config, ConfigError, Precision};
use rem::imagination::Dream;
use rem::model::calls::Calls;
use rem::model::world_model::{WorldModel, WorldModelSizes};

use super::sizes::Scale;
use super::{products, timing};

const ACTIONS: usize = 4;

/// An imagination mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImaginationMode {
    /// POP, the paper's default: one call updates the state, a second one predicts.
    PopTwoCalls,
    /// POP, the paper's alternative: both in one call.
    PopOneCall,
    /// A RetNet, token by token.
    NoPop,
    /// A Transformer of REM's size, token by token.
    Iris,
    /// A Transformer of IRIS's own size, token by token.
    IrisOwn,
}

impl ImaginationMode {
    pub const ALL: [Self; 5] = [
        Self::PopTwoCalls,
        Self::PopOneCall,
        Self::NoPop,
        Self::Iris,
        Self::IrisOwn,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::PopTwoCalls => "POP (default)",
            Self::PopOneCall => "POP (alternative)",
            Self::NoPop => "No POP",
            Self::Iris => "IRIS",
            Self::IrisOwn => "IRIS (its own sizes)",
        }
    }

    /// Sequential calls for `horizon` frames of `tokens` tokens, according to the paper.
    pub fn calls(self, tokens: u64, horizon: u64) -> u64 {
        match self {
            Self::PopTwoCalls => 2 * horizon,
            Self::PopOneCall => horizon,
            Self::NoPop | Self::Iris | Self::IrisOwn => tokens * horizon,
        }
    }

    /// The formula of [`Self::calls`], with K tokens per frame and H frames.
    pub fn formula(self) -> &'static str {
        match self {
            Self::PopTwoCalls => "2H",
            Self::PopOneCall => "H",
            Self::NoPop | Self::Iris | Self::IrisOwn => "KH",
        }
    }

    /// Whether this mode supports `tokens` per frame. IRIS has 16.
    pub fn supports(self, tokens: usize) -> bool {
        match self {
            Self::PopTwoCalls | Self::PopOneCall | Self::NoPop | Self::Iris => true,
            Self::IrisOwn => tokens == 16,
        }
    }

    fn config(self, set: &[String]) -> Result<Config> {
        let (preset, own) = match self {
            Self::PopTwoCalls => ("atari100k", "world_model.architecture.mode=two_calls"),
            Self::PopOneCall => ("atari100k", "world_model.architecture.mode=one_call"),
            Self::NoPop => ("atari100k", "world_model.architecture=retnet"),
            Self::Iris => ("atari100k,ablation-iris", "world_model.context=2"),
            Self::IrisOwn => ("iris", "world_model.context=2"),
        };
        Ok(Config::load(preset, &[&[own.to_string()], set].concat())?)
    }
}

/// The size and place of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    pub scale: Scale,
    pub precision: Precision,
    pub device: &'a str,
    pub batch: usize,
    /// K: tokens per frame.
    pub tokens: usize,
    /// H: imagined frames.
    pub horizon: usize,
}

/// A world model with random weights, and a random context.
pub struct Dreams {
    batch: usize,
    horizon: usize,
    device: Device,
    /// Multiply-adds per frame.
    pub products: f64,
    world_model: WorldModel,
    codes: Tensor<2>,
    /// Two observations, `[batch, 2, K]`.
    context: Tensor<3, Int>,
    /// The action between them, `[batch, 1]`.
    context_actions: Tensor<2, Int>,
}

/// The cost of `horizon` frames of the whole batch.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub seconds: f64,
    pub calls: Calls,
}

impl Dreams {
    pub fn new(mode: ImaginationMode, sizes: Sizes, rng: &mut impl Rng) -> Result<Self> {
        let downsamplings = match sizes.tokens {
            16 => 4,
            64 => 3,
            256 => 2,
            other => {
                return Err(ConfigError::new(
                    format!("cannot measure {other} tokens per frame"),
                    "choose from 16, 64 and 256",
                )
                .into());
            }
        };
        let mut set: Vec<String> = (sizes.scale.settings().iter())
            .map(|s| s.to_string())
            .collect();
        set.extend([
            format!("tokenizer.downsamplings={downsamplings}"),
            // The context and the imagined frames.
            format!("train.horizon={}", sizes.horizon + 2),
            format!("precision={}", sizes.precision.name()),
            "env.game=catch".into(),
            "env.frame_size=64".into(),
            format!("device={}", sizes.device),
        ]);
        let config = mode.config(&set)?;
        let device = rem::device::of(&config)?;
        let width = config.tokenizer.embedding;
        let vocabulary = config.tokenizer.vocabulary;
        let mut random_ints = |limit: usize, count: usize| -> Tensor<1, Int> {
            let values: Vec<i64> = (0..count)
                .map(|_| rng.random_range(0..limit as i64))
                .collect();
            Tensor::from_data(&values[..], &device)
        };
        Ok(Self {
            context: random_ints(vocabulary, sizes.batch * 2 * sizes.tokens).reshape([
                sizes.batch,
                2,
                sizes.tokens,
            ]),
            context_actions: random_ints(ACTIONS, sizes.batch).reshape([sizes.batch, 1]),
            codes: Tensor::random([vocabulary, width], Distribution::Normal(0.0, 1.0), &device),
            world_model: WorldModel::new(
                &config.world_model,
                WorldModelSizes::of(&config, ACTIONS),
                config.precision.into(),
                &device,
            ),
            products: products::dream(&config, sizes.horizon),
            batch: sizes.batch,
            horizon: sizes.horizon,
            device,
        })
    }

    /// Imagines `horizon` frames with random actions. Processing the context does not count.
    pub fn run(&self, rng: &mut impl Rng) -> Cost {
        let (context, actions) = (self.context.clone(), self.context_actions.clone());
        let mut dream = Dream::start(&self.world_model, &self.codes, context, Some(actions));
        let before = self.world_model.network().calls();
        let seconds = timing::seconds(&self.device, || {
            for _ in 0..self.horizon {
                let actions: Vec<i64> = (0..self.batch)
                    .map(|_| rng.random_range(0..ACTIONS as i64))
                    .collect();
                dream.step(Tensor::from_data(&actions[..], &self.device), rng);
            }
        });
        Cost {
            seconds,
            calls: self.world_model.network().calls() - before,
        }
    }
}
