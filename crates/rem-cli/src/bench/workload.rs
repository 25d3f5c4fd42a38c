//! The workloads that `rem bench` times: training steps at the sizes of the PyTorch reference benchmark.

use burn::module::Module;
use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{Rng, RngExt};

use rem::Result;
use rem::config::{self, Config};
use rem::data::batch::DreamStarts;
use rem::imagination::{Dream, imagine};
use rem::model::actor_critic;
use rem::model::agent::Agent;
use rem::model::sampling::sample;
use rem::model::tokenizer::lpips::Lpips;
use rem::model::tokenizer::patch_width;
use rem::model::world_model::TokenBatch;
use rem::seeds::Seeds;
use rem::train::optimizer::{AdamW, DecayGroup};

/// Model size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The paper's size.
    Paper,
    /// Small enough to expose overhead.
    Tiny,
}

impl Scale {
    /// Overrides of the preset `atari100k`.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Paper => &[],
            Self::Tiny => &[
                "tokenizer.channels=8",
                "tokenizer.embedding=64",
                "tokenizer.vocabulary=64",
                "world_model.layers=2",
                "world_model.feed_forward=256",
                "actor_critic.lstm_dim=128",
            ],
        }
    }
}

/// A timed phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A tokenizer update without the perceptual loss.
    Tokenizer,
    /// A tokenizer update with the perceptual loss.
    TokenizerPerceptual,
    /// A world model update.
    WorldModel,
    /// A rollout with POP, without an update.
    ImaginePop,
    /// A rollout without POP, token by token.
    ImagineNoPop,
    /// An actor-critic update, including its rollout.
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

/// A phase with its models and its batch.
pub struct Workload {
    phase: Phase,
    config: Config,
    agent: Agent,
    optimizer: Option<AdamW>,
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
            "tokenizer.optimizer.batch_size=32",
            "world_model.optimizer.batch_size=16",
            "actor_critic.optimizer.batch_size=16",
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
        let inner = Device::flex();
        let agent = Agent::new(&config, ACTIONS, &Seeds::new(0), &device);
        let k = config.tokens_per_obs();
        let (batch, steps) = match phase {
            Phase::WorldModel => (16, config.train.horizon),
            _ => (16, config.actor_critic.burn_in + 1),
        };
        let mut random_ints = |limit: usize, count: usize| -> Vec<i64> {
            (0..count)
                .map(|_| rng.random_range(0..limit as i64))
                .collect()
        };
        let tokens = random_ints(config.tokenizer.vocabulary, batch * steps * k);
        let actions = random_ints(ACTIONS, batch * steps);
        let ints = |values: Vec<i64>| Tensor::<1, Int>::from_data(&values[..], &inner);
        let uniform = Distribution::Uniform(-1.0, 1.0);
        let optimizer = match phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => {
                Some((&config.tokenizer.optimizer, DecayGroup::All))
            }
            Phase::WorldModel => Some((&config.world_model.optimizer, DecayGroup::WeightMatrices)),
            Phase::ActorCritic => Some((&config.actor_critic.optimizer, DecayGroup::All)),
            Phase::ImaginePop | Phase::ImagineNoPop => None,
        };
        Ok(Self {
            phase,
            optimizer: optimizer
                .map(|(optimizer, group)| AdamW::new(optimizer, &config.train, group)),
            lpips: (phase == Phase::TokenizerPerceptual)
                .then(|| Lpips::new(precision.into(), &device)),
            frames: Tensor::random([32, 3, 64, 64], uniform, &inner),
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

    /// Frames per run, as the reference benchmark counts them.
    pub fn frames(&self) -> usize {
        match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => 32,
            Phase::WorldModel => 16 * self.config.train.horizon,
            _ => 16 * self.config.rollout_steps(),
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
        let model = &self.agent.tokenizer;
        let config = &self.config.tokenizer;
        let losses = model.losses(self.frames.clone(), config, self.lpips.as_ref());
        let total = losses.total();
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(model.clone(), &total);
        self.agent.tokenizer = stepped.expect("a finite loss").0;
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
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(self.agent.world_model.clone(), &total);
        self.agent.world_model = stepped.expect("a finite loss").0;
    }

    /// Imagines a rollout from a context, with actions of the policy and without gradients.
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
        for _ in 0..self.config.rollout_steps() {
            let view = controller.encoder_input(&tokenizer, dream.tokens());
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
        // The last observation is needed for its value only and is not counted as a frame.
        let steps = self.config.rollout_steps() + 1;
        let config = &self.config.actor_critic;
        let controller = &self.agent.actor_critic;
        let acting = controller.valid();
        let inputs = config.inputs.burn_in_actions();
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
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(controller.clone(), &total);
        self.agent.actor_critic = stepped.expect("a finite loss").0;
    }

    /// Floating-point operations per run in billions: matrix products and convolutions without the savings of caches
    /// and fused kernels. A multiplication and an addition are two operations.
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
                let burn_in = c.actor_critic.burn_in as f64 / c.rollout_steps() as f64;
                dream_products(c) + (3.0 + burn_in) * controller_products(c)
            }
        };
        2.0 * products * frames / 1e9
    }
}

/// Multiplications per imagined frame without POP: recurrent retention, each token processed once.
fn token_by_token_products(c: &Config) -> f64 {
    let k = c.tokens_per_obs() as f64;
    let width = c.tokenizer.embedding as f64;
    let within_a_block = c.world_model.layers as f64 * width * 2.0 * (k + 1.0);
    (layer_products(c) - within_a_block) * (k + 1.0) + k * head_products(c)
}

/// Multiplications per token in all layers: five projections, the feed-forward sublayer, and retention within a block.
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

/// Multiplications per predicted token in the observation head.
fn head_products(c: &Config) -> f64 {
    let width = c.tokenizer.embedding as f64;
    width * (width + c.tokenizer.vocabulary as f64)
}

/// Multiplications per imagined frame with POP: a block of K + 1 tokens in, K tokens predicted.
fn dream_products(c: &Config) -> f64 {
    let k = c.tokens_per_obs() as f64;
    layer_products(c) * (2.0 * k + 1.0) + k * head_products(c)
}

/// Multiplications per observation and action in the controller.
fn controller_products(c: &Config) -> f64 {
    let (width, lstm) = (c.tokenizer.embedding as f64, c.actor_critic.lstm_dim as f64);
    let k = c.tokens_per_obs() as f64;
    let convs = k * 9.0 * (width * width / 2.0 + width * width / 8.0);
    convs + k * width / 4.0 * lstm + 2.0 * 8.0 * lstm * lstm
}

/// Multiplications per frame in encoder and decoder.
fn tokenizer_products(c: &Config) -> f64 {
    let t = &c.tokenizer;
    let size = c.env.frame_size as f64;
    let k = c.tokens_per_obs() as f64;
    if t.encoder == (config::Encoder::WhitenedPatches {}) {
        let (pixels, width) = (3.0 * size * size / k, t.embedding as f64);
        let hidden = patch_width(t) as f64;
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

/// Multiplications per image in VGG-16. The loss needs two images forward and one backward.
fn vgg_products(c: &Config) -> f64 {
    let (mut from, mut size, mut products) = (3.0, c.env.frame_size as f64, 0.0);
    for (i, (count, width)) in rem::model::tokenizer::lpips::STAGES.iter().enumerate() {
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
