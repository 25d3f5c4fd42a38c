//! The training steps as things to be timed, at the sizes of the PyTorch yardstick.

pub mod dreams;

use burn::module::Module;
use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{Rng, RngExt};

use crate::actor_critic;
use crate::agent::Agent;
use crate::config::{self, Config, Sight};
use crate::error::Result;
use crate::imagination::{Dream, DreamStarts, imagine};
use crate::optimiser::AdamW;
use crate::optimiser::DecayGroup;
use crate::sampling::sample;
use crate::seeds::Seeds;
use crate::tokenizer::cell_width;
use crate::tokenizer::lpips::Lpips;
use crate::world_model::TokenBatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The paper's sizes.
    Paper,
    /// Sizes at which overhead shows.
    Tiny,
}

impl Scale {
    /// What it changes of the preset `atari100k`.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Paper => &[],
            Self::Tiny => &[
                "tokenizer.channels=8",
                "tokenizer.embedding=64",
                "tokenizer.vocabulary=64",
                "world_model.layers=2",
                "world_model.feed_forward=256",
                "actor_critic.lstm=128",
            ],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Tokenizer,
    TokenizerPerceptual,
    WorldModel,
    ImaginePop,
    ImagineNoPop,
    ActorCritic,
}

impl Phase {
    pub const ALL: [Self; 6] = [
        Self::Tokenizer,
        Self::TokenizerPerceptual,
        Self::WorldModel,
        Self::ImaginePop,
        Self::ImagineNoPop,
        Self::ActorCritic,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::TokenizerPerceptual => "tokenizer_perceptual",
            Self::WorldModel => "world_model",
            Self::ImaginePop => "imagine_pop",
            Self::ImagineNoPop => "imagine_no_pop",
            Self::ActorCritic => "actor_critic",
        }
    }
}

const ACTIONS: usize = 4;

/// One phase with its models and its batch.
pub struct Workload {
    phase: Phase,
    config: Config,
    agent: Agent,
    optimiser: Option<AdamW>,
    lpips: Option<Lpips>,
    frames: Tensor<4>,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
}

impl Workload {
    pub fn new(
        phase: Phase,
        scale: Scale,
        precision: config::Precision,
        rng: &mut impl Rng,
    ) -> Result<Self> {
        let batches = [
            "tokenizer.optimise.batch=32",
            "world_model.optimise.batch=16",
            "actor_critic.optimise.batch=16",
            "env.game=catch",
        ];
        let mut set: Vec<String> = (scale.settings().iter())
            .chain(&batches)
            .map(|s| s.to_string())
            .collect();
        set.push(format!("precision={}", precision.name()));
        if phase == Phase::ImagineNoPop {
            set.push("world_model.architecture=retnet".into());
        }
        let config = Config::load("atari100k", &set)?;
        let device = Device::flex().autodiff();
        let plain = Device::flex();
        let agent = Agent::new(&config, ACTIONS, &Seeds::new(0), &device);
        let k = config.tokens_per_obs();
        let (batch, steps) = match phase {
            Phase::WorldModel => (16, config.train.horizon),
            _ => (16, config.actor_critic.burn_in + 1),
        };
        let mut below = |limit: usize, count: usize| -> Vec<i64> {
            (0..count)
                .map(|_| rng.random_range(0..limit as i64))
                .collect()
        };
        let tokens = below(config.tokenizer.vocabulary, batch * steps * k);
        let actions = below(ACTIONS, batch * steps);
        let ints = |values: Vec<i64>| Tensor::<1, Int>::from_data(&values[..], &plain);
        let uniform = Distribution::Uniform(-1.0, 1.0);
        let optimiser = match phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => {
                Some((&config.tokenizer.optimise, DecayGroup::All))
            }
            Phase::WorldModel => Some((&config.world_model.optimise, DecayGroup::WeightMatrices)),
            Phase::ActorCritic => Some((&config.actor_critic.optimise, DecayGroup::All)),
            Phase::ImaginePop | Phase::ImagineNoPop => None,
        };
        Ok(Self {
            phase,
            optimiser: optimiser
                .map(|(optimise, group)| AdamW::new(optimise, &config.train, group)),
            lpips: (phase == Phase::TokenizerPerceptual)
                .then(|| Lpips::new(precision.into(), &device)),
            frames: Tensor::random([32, 3, 64, 64], uniform, &plain),
            tokens: ints(tokens).reshape([batch, steps, k]),
            actions: ints(actions).reshape([batch, steps]),
            agent,
            config,
        })
    }

    pub fn batch(&self) -> usize {
        match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => 32,
            _ => 16,
        }
    }

    /// Frames that a run stands for, as the yardstick counts them.
    pub fn frames(&self) -> usize {
        match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => 32,
            Phase::WorldModel => 16 * self.config.train.horizon,
            _ => 16 * self.config.dream_steps(),
        }
    }

    /// Runs the phase once.
    pub fn run(&mut self, rng: &mut impl Rng) {
        match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => self.tokenizer_step(),
            Phase::WorldModel => self.world_model_step(rng),
            Phase::ImaginePop | Phase::ImagineNoPop => self.imagine(rng),
            Phase::ActorCritic => self.actor_critic_step(rng),
        }
    }

    fn tokenizer_step(&mut self) {
        let kind = self.config.tokenizer.reconstruction;
        let model = &self.agent.tokenizer;
        let losses = model.losses(self.frames.clone(), kind, self.lpips.as_ref());
        let mut total = losses.reconstruction + losses.commitment;
        if let Some(perceptual) = losses.perceptual {
            total = total + perceptual;
        }
        let optimiser = self.optimiser.as_mut().expect("made for this phase");
        let stepped = optimiser.step(model.clone(), &total);
        self.agent.tokenizer = stepped.expect("finite").0;
    }

    fn world_model_step(&mut self, rng: &mut impl Rng) {
        let codes = self.agent.tokenizer.codes();
        let [size, steps, _] = self.tokens.dims();
        let device = Device::flex();
        let batch = TokenBatch {
            tokens: self.tokens.clone(),
            actions: self.actions.clone(),
            rewards: Tensor::zeros([size, steps], &device),
            ends: Tensor::zeros([size, steps], &device),
            mask: Tensor::ones([size, steps], &device),
        };
        let total = (self.agent.world_model.losses(&codes, &batch, rng.random())).total();
        let optimiser = self.optimiser.as_mut().expect("made for this phase");
        let stepped = optimiser.step(self.agent.world_model.clone(), &total);
        self.agent.world_model = stepped.expect("finite").0;
    }

    /// Imagination alone: a context, then the policy's own actions, without gradients.
    fn imagine(&self, rng: &mut impl Rng) {
        let (world_model, controller) = (
            self.agent.world_model.valid(),
            self.agent.actor_critic.valid(),
        );
        let tokenizer = self.agent.tokenizer.valid();
        let codes = tokenizer.codes();
        let context = self.config.world_model.context;
        let tokens = self.tokens.clone().narrow(1, 0, context);
        let actions = self.actions.clone().narrow(1, 0, context - 1);
        let [batch, ..] = tokens.dims();
        let mut dream = Dream::start(&world_model, &codes, tokens, Some(actions));
        let mut state = controller.initial_state(batch);
        for _ in 0..self.config.dream_steps() {
            let view = controller.view(&tokenizer, dream.tokens());
            state = controller.observe(view, state);
            let action = sample(controller.heads(&state).logits, rng);
            state = controller.act(action.clone(), state);
            dream.step(action, rng);
        }
    }

    fn actor_critic_step(&mut self, rng: &mut impl Rng) {
        let world_model = self.agent.world_model.valid();
        let tokenizer = self.agent.tokenizer.valid();
        let [batch, length, _] = self.tokens.dims();
        let starts = DreamStarts {
            tokens: self.tokens.clone(),
            actions: self.actions.clone().narrow(1, 0, length - 1),
            mask: Tensor::ones([batch, length - 1], &Device::flex()),
        };
        // The last observation of a dream is there for its value alone: one more than the frames counted.
        let steps = self.config.dream_steps() + 1;
        let config = &self.config.actor_critic;
        let controller = &self.agent.actor_critic;
        let acting = controller.valid();
        let inputs = config.burn_in_inputs;
        let rollout = imagine(
            &acting,
            &world_model,
            &tokenizer,
            starts,
            steps,
            inputs,
            rng,
        );
        let (experience, _) = rollout.experience(controller, config);
        let total = actor_critic::losses(experience, config).total();
        let optimiser = self.optimiser.as_mut().expect("made for this phase");
        let stepped = optimiser.step(controller.clone(), &total);
        self.agent.actor_critic = stepped.expect("finite").0;
    }

    /// Billions of operations (a product and a sum are two) that a run's matrix products and convolutions
    /// need at least, without what is saved by caches and folded kernels.
    pub fn gflop(&self) -> f64 {
        let c = &self.config;
        let frames = self.frames() as f64;
        let products = match self.phase {
            Phase::Tokenizer => 3.0 * tokenizer_products(c),
            Phase::TokenizerPerceptual => 3.0 * tokenizer_products(c) + 3.0 * vgg_products(c),
            Phase::WorldModel => {
                let first = c.world_model.first_observation();
                let predicted = 1.0 - first as f64 / c.train.horizon as f64;
                let k = c.tokens_per_obs() as f64;
                let layers = layer_products(c) * (k + 1.0 + predicted * k);
                3.0 * (layers + predicted * k * head_products(c))
            }
            Phase::ImaginePop => dream_products(c) + controller_products(c),
            Phase::ImagineNoPop => token_by_token_products(c) + controller_products(c),
            Phase::ActorCritic => {
                let burn_in = c.actor_critic.burn_in as f64 / c.dream_steps() as f64;
                dream_products(c) + (3.0 + burn_in) * controller_products(c)
            }
        };
        2.0 * products * frames / 1e9
    }
}

/// The same token by token: the recurrent form of retention, and each token read once.
fn token_by_token_products(c: &Config) -> f64 {
    let k = c.tokens_per_obs() as f64;
    let width = c.tokenizer.embedding as f64;
    let within_a_block = c.world_model.layers as f64 * width * 2.0 * (k + 1.0);
    (layer_products(c) - within_a_block) * (k + 1.0) + k * head_products(c)
}

/// Products of a token in all layers: five projections, the feed-forward half, and retention within a block.
fn layer_products(c: &Config) -> f64 {
    let (width, k) = (
        c.tokenizer.embedding as f64,
        c.tokens_per_obs() as f64 + 1.0,
    );
    let dim = width / c.world_model.heads as f64;
    let inner = c.world_model.feed_forward as f64;
    let retention = width * (2.0 * k + 2.0 * dim);
    c.world_model.layers as f64 * (5.0 * width * width + 2.0 * width * inner + retention)
}

fn head_products(c: &Config) -> f64 {
    let width = c.tokenizer.embedding as f64;
    width * (width + c.tokenizer.vocabulary as f64)
}

/// Products of an imagined frame: a block folded, and as many tokens predicted.
fn dream_products(c: &Config) -> f64 {
    let k = c.tokens_per_obs() as f64;
    layer_products(c) * (2.0 * k + 1.0) + k * head_products(c)
}

/// Products of an observation and an action in the controller.
fn controller_products(c: &Config) -> f64 {
    let (width, lstm) = (c.tokenizer.embedding as f64, c.actor_critic.lstm as f64);
    let k = c.tokens_per_obs() as f64;
    let convs = k * 9.0 * (width * width / 2.0 + width * width / 8.0);
    convs + k * width / 4.0 * lstm + 2.0 * 8.0 * lstm * lstm
}

/// Products of a frame through encoder and decoder.
fn tokenizer_products(c: &Config) -> f64 {
    let t = &c.tokenizer;
    let size = c.env.frame_size as f64;
    let k = c.tokens_per_obs() as f64;
    if t.sight == Sight::Narrow {
        let (pixels, width) = (3.0 * size * size / k, t.embedding as f64);
        let hidden = cell_width(t) as f64;
        return k * (pixels * width + width * hidden + hidden * pixels);
    }
    let (first, width) = (t.channels as f64, t.embedding as f64);
    let (mut encoder, mut decoder) = (27.0 * first * size * size, 27.0 * first * size * size);
    for level in 0..t.downsamplings {
        let from = first * f64::powi(2.0, level as i32);
        let (large, small) = (
            size / f64::powi(2.0, level as i32),
            size / f64::powi(2.0, level as i32 + 1),
        );
        encoder += 9.0 * small * small * (2.0 * from * from + 4.0 * from * from);
        decoder += 9.0 * large * large * (2.0 * from * from + from * from);
    }
    let last = first * f64::powi(2.0, t.downsamplings as i32);
    encoder + decoder + 2.0 * k * 9.0 * last * width + 2.0 * k * width * width
}

/// Products of one image through VGG-16; its loss needs two images forward and one backward.
fn vgg_products(c: &Config) -> f64 {
    let (mut from, mut size, mut products) = (3.0, c.env.frame_size as f64, 0.0);
    for (i, (count, width)) in crate::tokenizer::lpips::STAGES.iter().enumerate() {
        if i > 0 {
            size /= 2.0;
        }
        for _ in 0..*count {
            products += 9.0 * size * size * from * *width as f64;
            from = *width as f64;
        }
    }
    products
}
