//! Trains a new controller in the real game instead of in the world model: a world model without errors.
//!
//! ```sh
//! cargo run --release -p rem --example controller_in_game -- RUN [UPDATES] [KEY=VALUE…]
//! ```
//! Uses the tokenizer of `RUN` and the controller's settings of its config, with overrides. If this controller plays well
//! and that of `RUN` does not, the world model is to blame; if it plays badly too, the controller or the tokenizer is.
//! Prints the score over test episodes after each tenth of the updates.

use std::error::Error;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem::config::{Config, EnvMode};
use rem::env::{EnvError, EnvFactory, Outcome};
use rem::host;
use rem::imagination::Rollout;
use rem::model::actor_critic::{self, ActorCritic, ControllerSizes, ControllerState};
use rem::model::sampling::sample;
use rem::seeds::Seeds;
use rem::train::evaluate::evaluate;
use rem::train::load_agent;
use rem::train::objective::ControllerObjective;
use rem::train::optimizer::{AdamW, DecayGroup};
use rem::{Agent, Env, Player, run, threads};

/// Test episodes of an evaluation.
const EPISODES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args
        .next()
        .ok_or("usage: controller_in_game RUN [UPDATES] [KEY=VALUE…]")?;
    let updates: usize = args.next().map_or(Ok(2000), |n| n.parse())?;
    let changes: Vec<String> = args.collect();
    let saved = run::read_config(Path::new(&dir))?;
    let config = Config::from_toml(&saved.to_toml(), &changes)?;
    threads::set(config.threads)?;
    let (agent, _) = load_agent(Path::new(&dir), &saved, None, Device::flex())?;
    threads::on_worker(|| train(&config, agent, updates).map_err(|error| error.to_string()))?;
    Ok(())
}

fn train(config: &Config, mut agent: Agent, updates: usize) -> Result<(), Box<dyn Error>> {
    let settings = &config.actor_critic.optimizer;
    let device = Device::flex();
    let mut games = Games::new(config, settings.batch_size, &device)?;
    let sizes = ControllerSizes::of(config, games.envs[0].spaces().action.count());
    let autodiff = device.clone().autodiff();
    agent.actor_critic = ActorCritic::new(
        &config.actor_critic,
        sizes,
        config.precision.into(),
        &autodiff,
    );
    let mut objective = ControllerObjective::new(&config.actor_critic, &agent.actor_critic);
    let mut optimizer = AdamW::new(settings, &config.train, DecayGroup::All);
    let (mut entropy, mut value) = (0.0, 0.0);
    for update in 1..=updates {
        let done = update as f64 / updates as f64;
        let rate = settings.learning_rate * (1.0 + done * (settings.final_lr_fraction - 1.0));
        optimizer.set_learning_rate(rate);
        let rollout = games.rollout(&agent.valid(), config.rollout_steps())?;
        let (experience, _) =
            objective.experience(rollout, &agent.actor_critic, &config.actor_critic);
        let losses = actor_critic::losses(experience, &config.actor_critic);
        entropy += f64::from(losses.mean_entropy.clone().inner().into_scalar::<f32>());
        value += f64::from(losses.value.clone().inner().into_scalar::<f32>());
        let (controller, _) = optimizer
            .step(agent.actor_critic.clone(), &losses.total())
            .map_err(|error| error.0)?;
        agent.actor_critic = controller;
        objective.update(&agent.actor_critic, &config.actor_critic);
        if update % (updates / 10).max(1) == 0 {
            let seeds = Seeds::new(config.seed);
            let envs = EnvFactory::named(&config.env)?;
            let score = evaluate(
                &agent.valid(),
                config,
                &envs,
                EPISODES,
                &seeds,
                &device,
                |_| (),
            )?;
            let n = (updates / 10).max(1) as f64;
            println!(
                "update {update}: score {:.2}, entropy {:.3}, value loss {:.4}",
                score.mean(),
                entropy / n,
                value / n
            );
            (entropy, value) = (0.0, 0.0);
        }
    }
    Ok(())
}

/// Games that are played side by side. They continue from rollout to rollout.
struct Games<'a> {
    envs: Vec<Box<dyn Env>>,
    frames: Vec<Vec<u8>>,
    over: Vec<bool>,
    state: Option<ControllerState>,
    size: usize,
    device: &'a Device,
    rng: ChaCha8Rng,
}

impl<'a> Games<'a> {
    fn new(config: &Config, count: usize, device: &'a Device) -> Result<Self, Box<dyn Error>> {
        let factory = EnvFactory::named(&config.env)?;
        let (mut envs, mut frames) = (Vec::new(), Vec::new());
        for seed in 0..count as u64 {
            let mut env = factory.make(EnvMode::Train, seed)?;
            frames.push(env.reset()?.into_image());
            envs.push(env);
        }
        Ok(Self {
            frames,
            over: vec![false; count],
            envs,
            state: None,
            size: config.env.frame_size,
            device,
            rng: ChaCha8Rng::seed_from_u64(config.seed),
        })
    }

    fn tokens(&self, player: &Player) -> Tensor<2, Int> {
        let frames = self.frames.iter().map(|frame| &frame[..]);
        player.tokenize(frames, self.size, self.device)
    }

    /// A rollout of `steps` observations in the real games.
    fn rollout(&mut self, player: &Player, steps: usize) -> Result<Rollout, EnvError> {
        let controller = &player.actor_critic;
        let count = self.envs.len();
        // Games that are over start anew, with an empty memory.
        let initial = controller.initial_state(count);
        let mut state = self.state.take().unwrap_or(initial);
        let alive: Vec<f32> = self.over.iter().map(|over| f32::from(!over)).collect();
        let alive = Tensor::<1>::from_floats(&alive[..], self.device).reshape([count, 1]);
        state.hidden = state.hidden * alive.clone();
        state.cell = state.cell * alive;
        for i in 0..count {
            if std::mem::take(&mut self.over[i]) {
                self.frames[i] = self.envs[i].reset()?.into_image();
            }
        }
        let start = state.clone();
        let mut tokens = vec![self.tokens(player)];
        let mut inputs = vec![controller.encoder_input(&player.tokenizer, tokens[0].clone())];
        let mut actions = Vec::new();
        let (mut rewards, mut ends) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for t in 1..steps {
            state = controller.observe(inputs[t - 1].clone(), state);
            let action = sample(controller.heads(&state).logits, &mut self.rng);
            state = controller.act(action.clone(), state);
            let chosen = host::ints(action.clone());
            actions.push(action);
            for i in 0..count {
                let (mut reward, mut end) = (0.0, false);
                if !self.over[i] {
                    let step = self.envs[i].step(&(chosen[i] as usize).into())?;
                    self.over[i] = step.outcome != Outcome::Running;
                    (reward, end) = (step.reward, step.outcome == Outcome::Terminated);
                    self.frames[i] = step.observation.into_image();
                }
                rewards[i].push(reward);
                // A truncated game counts as over, so that what follows has no loss.
                ends[i].push(end || self.over[i]);
            }
            tokens.push(self.tokens(player));
            inputs.push(controller.encoder_input(&player.tokenizer, tokens[t].clone()));
        }
        self.state = Some(state);
        Ok(Rollout {
            start,
            encoder_inputs: Tensor::cat(inputs, 0),
            tokens: Tensor::stack(tokens, 1),
            actions: Tensor::stack(actions, 1),
            rewards,
            ends,
            disagreements: vec![Vec::new(); count],
        })
    }
}
