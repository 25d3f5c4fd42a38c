//! Imagination alone in every way to dream: the paper's table pop-vs-no-pop-computational-costs, with IRIS, to be
//! counted and timed.

use std::time::Instant;

use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{Rng, RngExt};

use super::Scale;
use crate::calls::Calls;
use crate::config::{Config, Precision};
use crate::error::{Error, Result};
use crate::imagination::Dream;
use crate::world_model::{WorldModel, WorldModelSizes};

const ACTIONS: usize = 4;

/// A way to dream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    PopTwoCalls,
    PopOneCall,
    NoPop,
    /// A Transformer of REM's sizes.
    Iris,
    /// A Transformer of IRIS's own sizes.
    IrisOwn,
}

impl Way {
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

    /// Sequential calls for `horizon` frames of `tokens`, by the paper.
    pub fn calls(self, tokens: u64, horizon: u64) -> u64 {
        match self {
            Self::PopTwoCalls => 2 * horizon,
            Self::PopOneCall => horizon,
            Self::NoPop | Self::Iris | Self::IrisOwn => tokens * horizon,
        }
    }

    /// That formula.
    pub fn formula(self) -> &'static str {
        match self {
            Self::PopTwoCalls => "2H",
            Self::PopOneCall => "H",
            Self::NoPop | Self::Iris | Self::IrisOwn => "KH",
        }
    }

    /// Whether there is this way for so many tokens a frame: IRIS itself has 16.
    pub fn is_for(self, tokens: usize) -> bool {
        match self {
            Self::PopTwoCalls | Self::PopOneCall | Self::NoPop | Self::Iris => true,
            Self::IrisOwn => tokens == 16,
        }
    }

    fn config(self, set: &[String]) -> Result<Config> {
        let (preset, own) = match self {
            Self::PopTwoCalls => ("atari100k", "world_model.pop_mode=two_calls"),
            Self::PopOneCall => ("atari100k", "world_model.pop_mode=one_call"),
            Self::NoPop => ("atari100k", "world_model.architecture=retnet"),
            Self::Iris => ("atari100k,ablation-iris", "world_model.context=2"),
            Self::IrisOwn => ("iris", "world_model.context=2"),
        };
        Config::load(preset, &[&[own.to_string()], set].concat())
    }
}

/// How large dreams are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub scale: Scale,
    pub precision: Precision,
    pub batch: usize,
    /// K: tokens of a frame.
    pub tokens: usize,
    /// H: frames that are dreamt.
    pub horizon: usize,
}

/// A world model and where its dreams begin.
pub struct Dreams {
    sizes: Sizes,
    world_model: WorldModel,
    codes: Tensor<2>,
    /// Two observations, `[batch, 2, K]`, and the action between them.
    seen: Tensor<3, Int>,
    past: Tensor<2, Int>,
}

/// What `horizon` frames of all dreams took.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub seconds: f64,
    pub calls: Calls,
}

impl Dreams {
    pub fn new(way: Way, sizes: Sizes, rng: &mut impl Rng) -> Result<Self> {
        let downsamplings = match sizes.tokens {
            16 => 4,
            64 => 3,
            256 => 2,
            other => {
                return Err(Error::config(
                    format!("no tokenizer of 64x64 pixels has {other} tokens here"),
                    "there are 16, 64 and 256",
                ));
            }
        };
        let mut set: Vec<String> = (sizes.scale.settings().iter())
            .map(|s| s.to_string())
            .collect();
        set.extend([
            format!("tokenizer.downsamplings={downsamplings}"),
            // Room for what is seen before and for what is dreamt.
            format!("train.horizon={}", sizes.horizon + 2),
            format!("precision={}", sizes.precision.name()),
            "env.game=catch".into(),
            "env.frame_size=64".into(),
        ]);
        let config = way.config(&set)?;
        let device = Device::flex();
        let width = config.tokenizer.embedding;
        let vocabulary = config.tokenizer.vocabulary;
        let mut below = |limit: usize, count: usize| -> Tensor<1, Int> {
            let values: Vec<i64> = (0..count)
                .map(|_| rng.random_range(0..limit as i64))
                .collect();
            Tensor::from_data(&values[..], &device)
        };
        Ok(Self {
            seen: below(vocabulary, sizes.batch * 2 * sizes.tokens).reshape([
                sizes.batch,
                2,
                sizes.tokens,
            ]),
            past: below(ACTIONS, sizes.batch).reshape([sizes.batch, 1]),
            codes: Tensor::random([vocabulary, width], Distribution::Normal(0.0, 1.0), &device),
            world_model: WorldModel::new(
                &config.world_model,
                WorldModelSizes::of(&config, ACTIONS),
                config.precision.into(),
                &device,
            ),
            sizes,
        })
    }

    /// Dreams `horizon` frames with random actions; what was seen before is read first and does not count.
    pub fn run(&self, rng: &mut impl Rng) -> Spent {
        let (seen, past) = (self.seen.clone(), self.past.clone());
        let mut dream = Dream::start(&self.world_model, &self.codes, seen, Some(past));
        let before = self.world_model.network().calls();
        let start = Instant::now();
        for _ in 0..self.sizes.horizon {
            let actions: Vec<i64> = (0..self.sizes.batch)
                .map(|_| rng.random_range(0..ACTIONS as i64))
                .collect();
            dream.step(Tensor::from_data(&actions[..], &Device::flex()), rng);
        }
        Spent {
            seconds: start.elapsed().as_secs_f64(),
            calls: self.world_model.network().calls() - before,
        }
    }
}
