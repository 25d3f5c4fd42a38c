//! Collection of experience with the policy (paper, Algorithm 4: `collect_experience`).

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Zeta};
use rayon::prelude::*;

use crate::config::{ActionRepeat, Collect, Config, RandomRepeat};
use crate::data::batch;
use crate::data::replay::{Replay, StepId};
use crate::env::{Env, EnvError, Outcome};
use crate::host;
use crate::imagination::burn_in;
use crate::model::actor_critic::ControllerState;
use crate::model::agent::Player;
use rem_kernels::sample;

/// The episodes that ended during a collection phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    /// Their returns.
    pub(crate) returns: Vec<f32>,
    /// Their lengths.
    pub(crate) lengths: Vec<usize>,
}

impl Player {
    /// Encodes RGB frames of `size * size * 3` bytes: `[frames, K]`.
    pub fn tokenize<'a>(
        &self,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
        size: usize,
        device: &Device,
    ) -> Tensor<2, Int> {
        self.tokenizer.encode(batch::frames(frames, size, device))
    }

    /// Updates the state with observations, `[batch, K]`, and samples an action for each of them. `uniforms` holds a
    /// number in [0, 1) for each observation. Pass the actions that are taken to [`Player::act`].
    pub(crate) fn sample_actions(
        &self,
        tokens: Tensor<2, Int>,
        state: ControllerState,
        temperature: f64,
        uniforms: &[f32],
    ) -> (ControllerState, Vec<usize>) {
        let input = self.actor_critic.encoder_input(&self.tokenizer, tokens);
        let state = self.actor_critic.observe(input, state);
        let logits = self
            .actor_critic
            .heads(&state)
            .logits
            .div_scalar(temperature);
        let uniforms = Tensor::from_floats(uniforms, &logits.device());
        let actions = host::ints(sample(logits, uniforms))
            .into_iter()
            .map(|a| a as usize)
            .collect();
        (state, actions)
    }

    /// Updates the state with the actions taken.
    pub fn act(&self, actions: &[usize], state: ControllerState) -> ControllerState {
        let data: Vec<i64> = actions.iter().map(|a| *a as i64).collect();
        let device = state.hidden.device();
        let actions = Tensor::from_data(TensorData::new(data, [actions.len()]), &device);
        self.actor_critic.act(actions, state)
    }
}

/// An environment that experience is collected in.
pub(crate) struct CollectEnv {
    pub(crate) env: Box<dyn Env>,
    /// The current observation; empty before the first episode.
    pub(crate) frame: Vec<u8>,
}

impl CollectEnv {
    pub(crate) fn new(env: Box<dyn Env>) -> Self {
        let frame = Vec::new();
        Self { env, frame }
    }

    fn reset(&mut self) -> Result<(), EnvError> {
        self.frame = self.env.reset()?.into_image();
        Ok(())
    }

    /// Takes an action. Returns the frame before it, and the reward and the outcome of the action.
    fn step(&mut self, action: usize) -> Result<(Vec<u8>, f32, Outcome), EnvError> {
        let step = self.env.step(&action.into())?;
        let before = std::mem::replace(&mut self.frame, step.observation.into_image());
        Ok((before, step.reward, step.outcome))
    }
}

/// The random actions of an environment. Each lasts for some steps.
#[derive(Clone, Copy, Default)]
struct Explorer {
    /// `None` while the policy acts.
    action: Option<usize>,
    /// Steps for which that lasts.
    remaining: usize,
}

impl Explorer {
    /// The random action to take instead of the policy's.
    fn next(&mut self, settings: &Collect, actions: usize, rng: &mut impl Rng) -> Option<usize> {
        if self.remaining == 0 {
            let random = rng.random_bool(settings.epsilon);
            self.action = random.then(|| rng.random_range(0..actions));
            self.remaining = match settings.random_action_repeat {
                ActionRepeat::Steps(steps) => steps,
                ActionRepeat::Random(RandomRepeat::Zeta) if random => {
                    let zeta = Zeta::new(2.0_f64).expect("an exponent above 1");
                    zeta.sample(rng) as usize
                }
                ActionRepeat::Random(RandomRepeat::Zeta) => 1,
            };
        }
        self.remaining -= 1;
        self.action
    }
}

/// A step that is not in the replay yet.
struct NewStep {
    frame: Vec<u8>,
    action: u8,
    reward: f32,
    outcome: Outcome,
}

/// Collects `config.collect.steps_per_epoch` steps into the replay, the same number in each environment. Continues open
/// episodes, after a burn-in of the LSTM on their last steps with the current weights; with
/// `config.collect.reset_per_epoch`, no episode stays open.
///
/// Environments step in parallel, and their steps enter the replay one environment after the other: the result does not
/// depend on their speed.
///
/// # Errors
/// If an environment fails. The replay is then unchanged.
pub(crate) fn collect(
    envs: &mut [CollectEnv],
    player: &Player,
    replay: &mut Replay,
    config: &Config,
    device: &Device,
    rng: &mut impl Rng,
    mut progress: impl FnMut(usize),
) -> Result<Collected, EnvError> {
    let settings = &config.collect;
    let count = envs.len();
    let actions = envs[0].env.spaces().action.count();
    let mut open: Vec<bool> = (0..count)
        .map(|stream| replay.open_episode(stream as u32).is_some())
        .collect();
    let mut state = (0..count as u32)
        .map(|stream| burned_in(player, replay, stream, config, device))
        .reduce(ControllerState::concat)
        .expect("at least one environment");
    let mut explorers = vec![Explorer::default(); count];
    let mut new_steps: Vec<Vec<NewStep>> = (0..count).map(|_| Vec::new()).collect();
    let rounds = settings.steps_per_epoch / count;
    for round in 0..rounds {
        // Before the first step of an episode, not after the last one: the next collection would reset again.
        if open.contains(&false) {
            state = with_new_episodes(state, &open, player, device);
            let starting = envs.par_iter_mut().zip(&open).filter(|(_, open)| !**open);
            starting.try_for_each(|(env, _)| env.reset())?;
        }
        let frames = envs.iter().map(|env| &env.frame[..]);
        let tokens = player.tokenize(frames, config.env.frame_size, device);
        let uniforms: Vec<f32> = (0..count).map(|_| rng.random()).collect();
        let (observed, sampled) =
            player.sample_actions(tokens, state, settings.temperature, &uniforms);
        let taken = explorers.iter_mut().zip(sampled);
        let taken: Vec<usize> = taken
            .map(|(explorer, own)| explorer.next(settings, actions, rng).unwrap_or(own))
            .collect();
        state = player.act(&taken, observed);
        let steps = envs.par_iter_mut().zip(&taken);
        let steps: Vec<_> = steps
            .map(|(env, action)| env.step(*action))
            .collect::<Result<_, _>>()?;
        for (i, (frame, reward, outcome)) in steps.into_iter().enumerate() {
            let outcome = match outcome {
                Outcome::Running if round + 1 == rounds && settings.reset_per_epoch => {
                    Outcome::Truncated
                }
                outcome => outcome,
            };
            open[i] = outcome == Outcome::Running;
            new_steps[i].push(NewStep {
                frame,
                action: taken[i] as u8,
                reward: config.env.wrappers.rewards.apply(reward),
                outcome,
            });
        }
        progress((round + 1) * count);
    }
    Ok(pushed(replay, new_steps))
}

/// Pushes the steps of each environment to its stream. Returns the episodes that ended.
fn pushed(replay: &mut Replay, new_steps: Vec<Vec<NewStep>>) -> Collected {
    let mut out = Collected::default();
    for (stream, steps) in (0..).zip(new_steps) {
        for step in steps {
            replay.push_to(stream, &step.frame, step.action, step.reward, step.outcome);
            if step.outcome != Outcome::Running {
                let episode = replay.last_episode();
                let length = replay.episode_steps(episode);
                let ids = (0..length as u32).map(|index| StepId { episode, index });
                out.returns.push(ids.map(|id| replay.reward(id)).sum());
                out.lengths.push(length);
            }
        }
    }
    out
}

/// The state with the rows of environments without an open episode replaced by initial ones.
fn with_new_episodes(
    state: ControllerState,
    open: &[bool],
    player: &Player,
    device: &Device,
) -> ControllerState {
    let row = |(i, open): (usize, &bool)| match open {
        true => {
            let row = Tensor::<1, Int>::from_data(TensorData::new(vec![i as i64], [1]), device);
            state.clone().select(row)
        }
        false => player.actor_critic.initial_state(1),
    };
    let rows = open.iter().enumerate().map(row);
    rows.reduce(ControllerState::concat)
        .expect("at least one environment")
}

/// The LSTM state after a burn-in on the last steps of a stream's open episode.
fn burned_in(
    player: &Player,
    replay: &Replay,
    stream: u32,
    config: &Config,
    device: &Device,
) -> ControllerState {
    let Some(episode) = replay.open_episode(stream) else {
        return player.actor_critic.initial_state(1);
    };
    let end = replay.episode_steps(episode);
    let start = end - end.min(config.actor_critic.burn_in);
    let ids: Vec<StepId> = (start..end)
        .map(|i| StepId {
            episode,
            index: i as u32,
        })
        .collect();
    let n = ids.len();
    if n == 0 {
        return player.actor_critic.initial_state(1);
    }
    let tokens = player.tokenize(
        ids.iter().map(|id| replay.frame(*id)),
        config.env.frame_size,
        device,
    );
    let [_, k] = tokens.dims();
    let actions: Vec<i64> = ids.iter().map(|id| i64::from(replay.action(*id))).collect();
    // With actions, regardless of `actor_critic.inputs.burn_in_actions`, which is for imagined rollouts.
    burn_in(
        &player.actor_critic,
        &player.tokenizer,
        tokens.reshape([1, n, k]),
        Tensor::from_data(TensorData::new(actions, [1, n]), device),
        Tensor::ones([1, n], device),
        true,
    )
}

#[cfg(test)]
mod tests;
