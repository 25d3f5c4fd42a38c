//! A play session: executes commands and extends the timeline.

mod responses;

use std::path::Path;

use burn::tensor::{Int, Tensor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::config::{Architecture, EnvMode};
use rem::data::replay::archive::Archive;
use rem::env::{Env, EnvFactory, Outcome};
use rem::imagination::burn_in;
use rem::model::actor_critic::ControllerState;

use super::command::{Command, StartFrom, World};
use super::timeline::{Node, State, Timeline, WorldState};
use crate::error::ApiError;
use crate::inference::{InferenceAgent, Predictions, Sampler, dream, softmax};
use crate::run::replay;

/// The state of a play session.
pub(crate) struct Session<'a> {
    agent: &'a InferenceAgent,
    archive: Archive,
    timeline: Timeline<'a>,
    /// Created when the real game is first started.
    envs: Option<EnvFactory>,
    env: Option<Box<dyn Env>>,
    /// The node that the environment is at.
    env_node: Option<u64>,
    rng: ChaCha8Rng,
}

/// The result of a step in either world, before the controller observes it.
struct Transition<'a> {
    action: u8,
    reward: f32,
    outcome: Outcome,
    frame: Vec<u8>,
    tokens: Vec<u16>,
    predictions: Option<Predictions>,
    world: WorldState<'a>,
}

impl<'a> Session<'a> {
    /// A session with this agent. Dreams may start from the replay of `run`.
    pub fn new(agent: &'a InferenceAgent, run: &Path) -> Self {
        Self {
            agent,
            archive: replay(run),
            timeline: Timeline::default(),
            envs: None,
            env: None,
            env_node: None,
            rng: ChaCha8Rng::seed_from_u64(0),
        }
    }

    /// Executes a command and returns the message for the page.
    pub fn handle(&mut self, command: Command) -> Result<Vec<u8>, ApiError> {
        match command {
            Command::Start { from, world } => self.start(from, world)?,
            Command::Step {
                action,
                temperature,
            } => self.step(action, temperature)?,
            Command::Goto { node } => {
                if !self.timeline.goto(node) {
                    return Err(ApiError::NotFound(format!("node {node}")));
                }
            }
            Command::Dream => self.dream_from_current()?,
            Command::Token { position } => return self.token_alternatives(position),
            Command::Save {
                format,
                from,
                frame_ms,
            } => return self.save(format, from, frame_ms),
        }
        self.current_state()
    }

    fn start(&mut self, from: StartFrom, world: World) -> Result<(), ApiError> {
        self.timeline = Timeline::default();
        match from {
            StartFrom::Reset { seed } => {
                self.rng = ChaCha8Rng::seed_from_u64(seed);
                self.reset_env(seed)?;
                if world == World::Dream {
                    // The context of a dream is as long as in training.
                    for _ in 1..self.agent.world_model.context() {
                        self.step(Some(0), 1.0)?;
                    }
                }
            }
            StartFrom::Episode { number, step } => {
                if world == World::Real {
                    let reason = "only a dream can start from a replay episode";
                    return Err(ApiError::BadRequest(reason.into()));
                }
                self.rng = ChaCha8Rng::seed_from_u64(0);
                return self.start_in_episode(number, step);
            }
        }
        match world {
            World::Real => Ok(()),
            World::Dream => self.dream_from_current(),
        }
    }

    fn reset_env(&mut self, seed: u64) -> Result<(), ApiError> {
        // The previous one first: its worker process is used again.
        self.env = None;
        let envs = match self.envs.take() {
            Some(envs) => envs,
            None => EnvFactory::named(&self.agent.config.env)?,
        };
        let mut env = self.envs.insert(envs).make(EnvMode::Test, seed)?;
        let frame = env.reset()?.into_image();
        let world = WorldState::Real(env.snapshot()?);
        let tokens = self.agent.tokenize(std::slice::from_ref(&frame));
        let before = self.agent.player.actor_critic.initial_state(1);
        let controller = self.observe(&tokens, before);
        let id = self.timeline.push(Node {
            state: Some(State { world, controller }),
            ..observation(None, 0, frame, tokens)
        });
        self.env = Some(env);
        self.env_node = Some(id);
        Ok(())
    }

    /// Reads the context of the dream and the burn-in of the controller from the replay.
    fn start_in_episode(&mut self, number: usize, step: usize) -> Result<(), ApiError> {
        self.agent.check_frame_size(&self.archive)?;
        let context = self.agent.world_model.context();
        let burn_in = self.agent.config.actor_critic.burn_in;
        let before = burn_in.max(context - 1).min(step);
        let segment = self
            .archive
            .read(number, step - before..step.saturating_add(1))?;
        let segment = segment.filter(|segment| segment.frames.len() == before + 1);
        let segment = segment
            .ok_or_else(|| ApiError::NotFound(format!("step {step} of replay episode {number}")))?;
        let k = self.agent.config.tokens_per_obs();
        let tokens = self.agent.tokenize(&segment.frames);
        let controller = self.burned_in(&tokens[..before * k], &segment.actions[..before]);
        let first = (before + 1).saturating_sub(context);
        let mut parent = None;
        for t in first..=before {
            let frame = segment.frames[t].clone();
            let mut node = observation(parent, t - first, frame, tokens[t * k..][..k].to_vec());
            node.action = (t > first).then(|| segment.actions[t - 1]);
            parent = Some(self.timeline.push(node));
        }
        let controller = self.observe(&tokens[before * k..], controller);
        self.start_dream(controller)
    }

    /// The controller's state after burn-in with these observations and actions.
    fn burned_in(&self, tokens: &[u16], actions: &[u8]) -> ControllerState {
        let (agent, steps) = (self.agent, actions.len());
        let controller = &agent.player.actor_critic;
        if steps == 0 {
            return controller.initial_state(1);
        }
        let tokens: Tensor<3, Int> = agent.ints(tokens).reshape([1, steps, tokens.len() / steps]);
        burn_in(
            controller,
            &agent.player.tokenizer,
            tokens,
            agent.ints(actions).reshape([1, steps]),
            Tensor::ones([1, steps], &agent.device),
            true,
        )
    }

    fn observe(&self, tokens: &[u16], before: ControllerState) -> ControllerState {
        let player = &self.agent.player;
        let tokens: Tensor<2, Int> = self.agent.ints(tokens).reshape([1, tokens.len()]);
        let view = player.actor_critic.encoder_input(&player.tokenizer, tokens);
        player.actor_critic.observe(view, before)
    }

    /// The current node and its state. A real episode cannot continue after its end; a dream can.
    fn resumable(&self) -> Result<(u64, &Node<'a>, &State<'a>), ApiError> {
        let bad_request = |reason: &str| ApiError::BadRequest(reason.into());
        let current = self.timeline.current();
        let (id, node) = current.ok_or_else(|| bad_request("the session has not started"))?;
        if node.is_over() && !node.imagined {
            return Err(bad_request("the episode is over; go back or start again"));
        }
        let state = node.state.as_ref();
        let reason = "cannot continue from here: this step has no saved state";
        Ok((id, node, state.ok_or_else(|| bad_request(reason))?))
    }

    /// Continues in a dream whose memory holds only the last observations.
    fn dream_from_current(&mut self) -> Result<(), ApiError> {
        let (_, _, state) = self.resumable()?;
        let controller = state.controller.clone();
        self.start_dream(controller)
    }

    /// Adds a sibling of the current node: the same observation, with the state of a new dream.
    fn start_dream(&mut self, controller: ControllerState) -> Result<(), ApiError> {
        let agent = self.agent;
        let current = self.timeline.current();
        let (id, node) = current.expect("the session has started");
        let path = self.timeline.path_to(id, agent.world_model.context());
        let tokens: Vec<u16> = path.iter().flat_map(|n| n.tokens.iter().copied()).collect();
        let actions: Vec<u8> = path[1..].iter().filter_map(|n| n.action).collect();
        let memory = path.len();
        let sibling = Node {
            action: node.action,
            reward: node.reward,
            total_reward: node.total_reward,
            imagined: node.imagined,
            predictions: node.predictions.clone(),
            state: Some(State {
                world: WorldState::Dream {
                    dream: Box::new(dream::start(agent, &tokens, &actions)),
                    memory,
                },
                controller,
            }),
            ..observation(
                node.parent,
                node.step,
                node.frame.clone(),
                node.tokens.clone(),
            )
        };
        self.timeline.push(sibling);
        Ok(())
    }

    fn step(&mut self, action: Option<usize>, temperature: f32) -> Result<(), ApiError> {
        if self.memory_is_full() {
            self.dream_from_current()?;
        }
        let (id, node, state) = self.resumable()?;
        let (step, total_reward) = (node.step + 1, node.total_reward);
        let imagined = matches!(state.world, WorldState::Dream { .. });
        let controller = state.controller.clone();
        let num_actions = self.agent.action_names.len();
        let action = match action {
            Some(action) if action < num_actions => action,
            Some(action) => {
                return Err(ApiError::BadRequest(format!(
                    "action {action} is out of range: this game has {num_actions} actions"
                )));
            }
            None => self.sample_action(&controller),
        };
        let transition = match imagined {
            true => self.step_dream(action as u8, temperature)?,
            false => self.step_env(id, action as u8)?,
        };
        let controller = self.agent.player.act(&[action], controller);
        let controller = self.observe(&transition.tokens, controller);
        let pushed = self.timeline.push(Node {
            action: Some(transition.action),
            reward: transition.reward,
            total_reward: total_reward + transition.reward,
            outcome: transition.outcome,
            imagined,
            predictions: transition.predictions,
            state: Some(State {
                world: transition.world,
                controller,
            }),
            ..observation(Some(id), step, transition.frame, transition.tokens)
        });
        if !imagined {
            self.env_node = Some(pushed);
        }
        Ok(())
    }

    /// Whether a Transformer has used all positions of its segment, so that its memory must be reset.
    fn memory_is_full(&self) -> bool {
        let config = &self.agent.config;
        let limited = matches!(
            config.world_model.architecture,
            Architecture::Transformer {} | Architecture::PopAttention { .. }
        );
        let current = self.timeline.current();
        let state = current.and_then(|(_, node)| node.state.as_ref());
        match state.map(|state| &state.world) {
            Some(WorldState::Dream { memory, .. }) => {
                limited && *memory >= config.context_window_steps()
            }
            _ => false,
        }
    }

    /// Samples the policy at the temperature of evaluations.
    fn sample_action(&mut self, controller: &ControllerState) -> usize {
        let logits = self.agent.player.actor_critic.heads(controller).logits;
        let temperature = self.agent.config.evaluate.temperature;
        let probabilities = softmax(logits.div_scalar(temperature));
        let mut rest: f32 = self.rng.random();
        let sampled = probabilities.iter().position(|probability| {
            rest -= probability;
            rest < 0.0
        });
        sampled.unwrap_or(probabilities.len() - 1)
    }

    fn step_env(&mut self, from: u64, action: u8) -> Result<Transition<'a>, ApiError> {
        let env = self.env.as_mut().expect("a real node has an environment");
        if self.env_node != Some(from) {
            let node = self.timeline.get(from);
            let state = node.and_then(|node| node.state.as_ref());
            let Some(WorldState::Real(snapshot)) = state.map(|state| &state.world) else {
                unreachable!("the caller has checked the world");
            };
            let Some(snapshot) = snapshot else {
                let reason = "this environment cannot go back: its state cannot be saved";
                return Err(ApiError::BadRequest(reason.into()));
            };
            env.restore(snapshot)?;
        }
        let step = env.step(&usize::from(action).into())?;
        let frame = step.observation.into_image();
        Ok(Transition {
            action,
            reward: step.reward,
            outcome: step.outcome,
            tokens: self.agent.tokenize(std::slice::from_ref(&frame)),
            frame,
            predictions: None,
            world: WorldState::Real(env.snapshot()?),
        })
    }

    fn step_dream(&mut self, action: u8, temperature: f32) -> Result<Transition<'a>, ApiError> {
        let (_, _, state) = self.resumable()?;
        let WorldState::Dream { dream, memory } = &state.world else {
            unreachable!("the caller has checked the world");
        };
        let (mut dream, memory) = (dream.clone(), memory + 1);
        let agent = self.agent;
        let mut sampler = Sampler::new(temperature, &mut self.rng);
        let step = sampler.run(|draw| dream.step_by(agent.ints(&[action]), draw));
        let predictions = sampler.predictions;
        let tokens = rem::data::batch::host_tokens(dream.tokens());
        Ok(Transition {
            action,
            reward: step.rewards[0],
            outcome: match step.ends[0] {
                true => Outcome::Terminated,
                false => Outcome::Running,
            },
            frame: agent.decode(&tokens).remove(0),
            tokens,
            predictions: Some(predictions),
            world: WorldState::Dream { dream, memory },
        })
    }
}

/// A node with a real observation, without action, reward and state.
fn observation<'a>(parent: Option<u64>, step: usize, frame: Vec<u8>, tokens: Vec<u16>) -> Node<'a> {
    Node {
        parent,
        step,
        action: None,
        reward: 0.0,
        total_reward: 0.0,
        outcome: Outcome::Running,
        imagined: false,
        frame,
        tokens,
        predictions: None,
        state: None,
    }
}

#[cfg(test)]
mod tests;
