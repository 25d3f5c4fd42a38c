//! Training steps with random inputs.

use std::time::Instant;

use burn::module::Module;
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::Config;
use crate::data::batch::DreamStarts;
use crate::device;
use crate::error::Result;
use crate::host;
use crate::imagination::imagine;
use crate::model::actor_critic;
use crate::model::agent::Agent;
use crate::model::tokenizer::lpips::Lpips;
use crate::model::world_model::TokenBatch;
use crate::seeds::Seeds;
use crate::train::objective::ControllerObjective;
use crate::train::phase::{Phase, scalar};
use crate::train::state::Optimizers;

/// Number of actions of the agent. It does not affect the times.
const ACTIONS: usize = 4;

/// What is measured.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A training step.
    Step(Phase),
    /// The encoding of frames.
    Encode,
}

/// An agent with random weights, and its optimizers.
pub(super) struct Steps<'a> {
    config: &'a Config,
    lpips: Option<&'a Lpips>,
    device: Device,
    agent: Agent,
    optimizers: Optimizers,
    objective: ControllerObjective,
    rng: ChaCha8Rng,
}

impl<'a> Steps<'a> {
    pub(super) fn new(config: &'a Config, lpips: Option<&'a Lpips>) -> Result<Self> {
        let device = device::of(config)?;
        let agent = Agent::new(config, ACTIONS, &Seeds::new(0), &device.clone().autodiff());
        Ok(Self {
            config,
            lpips,
            device,
            optimizers: Optimizers::new(config),
            objective: ControllerObjective::new(&config.actor_critic, &agent.actor_critic),
            agent,
            rng: ChaCha8Rng::seed_from_u64(0),
        })
    }

    /// The duration of one piece of work with random inputs.
    pub(super) fn seconds(&mut self, work: Work, batch: usize) -> f64 {
        match work {
            Work::Step(Phase::Tokenizer) => self.tokenizer(batch),
            Work::Step(Phase::WorldModel) => self.world_model(batch),
            Work::Step(Phase::ActorCritic) => self.actor_critic(batch),
            Work::Encode => self.encode(batch),
        }
    }

    fn tokenizer(&mut self, batch: usize) -> f64 {
        let frames = self.frames(batch);
        let start = Instant::now();
        let model = self.agent.tokenizer.clone();
        let losses = model.losses(frames, &self.config.tokenizer, self.lpips);
        let total = losses.total();
        if let Ok((model, _)) = self.optimizers.tokenizer.step(model, &total) {
            self.agent.tokenizer = model;
        }
        // Reading a value waits for asynchronous devices.
        scalar(&total);
        start.elapsed().as_secs_f64()
    }

    fn world_model(&mut self, batch: usize) -> f64 {
        let steps = self.config.train.horizon;
        let codes = self.agent.tokenizer.valid().codes();
        let tokens = TokenBatch {
            tokens: self.tokens(batch, steps),
            actions: self.ints(ACTIONS, batch * steps).reshape([batch, steps]),
            rewards: Tensor::zeros([batch, steps], &self.device),
            ends: Tensor::zeros([batch, steps], &self.device),
            mask: Tensor::ones([batch, steps], &self.device),
        };
        let start = Instant::now();
        let model = self.agent.world_model.clone();
        let total = model.losses(&codes, &tokens, self.rng.random()).total();
        if let Ok((model, _)) = self.optimizers.world_model.step(model, &total) {
            self.agent.world_model = model;
        }
        scalar(&total);
        start.elapsed().as_secs_f64()
    }

    fn actor_critic(&mut self, batch: usize) -> f64 {
        let config = &self.config.actor_critic;
        let (burn_in, steps) = (config.burn_in, self.config.rollout_steps());
        let starts = DreamStarts {
            tokens: self.tokens(batch, burn_in + 1),
            actions: self
                .ints(ACTIONS, batch * burn_in)
                .reshape([batch, burn_in]),
            mask: Tensor::ones([batch, burn_in], &self.device),
        };
        let start = Instant::now();
        let controller = self.agent.actor_critic.clone();
        let rollout = imagine(
            &controller.valid(),
            &self.agent.world_model.valid(),
            &self.agent.tokenizer.valid(),
            starts,
            steps,
            config.inputs.burn_in_actions(),
            &mut self.rng,
        );
        let (experience, _) = self.objective.experience(rollout, &controller, config);
        let total = actor_critic::losses(experience, config).total();
        if let Ok((controller, _)) = self.optimizers.actor_critic.step(controller, &total) {
            self.objective.update(&controller, config);
            self.agent.actor_critic = controller;
        }
        scalar(&total);
        start.elapsed().as_secs_f64()
    }

    fn encode(&mut self, batch: usize) -> f64 {
        let frames = self.frames(batch);
        let tokenizer = self.agent.tokenizer.valid();
        let start = Instant::now();
        host::ints(tokenizer.encode(frames));
        start.elapsed().as_secs_f64()
    }

    /// Random frames, `[batch, 3, size, size]`.
    fn frames(&self, batch: usize) -> Tensor<4> {
        let size = self.config.env.frame_size;
        let uniform = Distribution::Uniform(-1.0, 1.0);
        Tensor::random([batch, 3, size, size], uniform, &self.device)
    }

    /// Random tokens, `[batch, steps, K]`.
    fn tokens(&mut self, batch: usize, steps: usize) -> Tensor<3, Int> {
        let k = self.config.tokens_per_obs();
        self.ints(self.config.tokenizer.vocabulary, batch * steps * k)
            .reshape([batch, steps, k])
    }

    fn ints(&mut self, limit: usize, count: usize) -> Tensor<1, Int> {
        let values: Vec<i64> = (0..count)
            .map(|_| self.rng.random_range(0..limit as i64))
            .collect();
        Tensor::from_data(TensorData::new(values, [count]), &self.device)
    }
}
