//! Gathering experience with the policy (paper, Alg. collect_experience).

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};

use crate::actor_critic::ControllerState;
use crate::agent::Player;
use crate::batch;
use crate::config::{BurnInInputs, Config};
use crate::env::{Env, Outcome};
use crate::imagination::{burn_in, host_ints};
use crate::replay::{Replay, StepId};
use rem_kernels::sample;

/// What one round of collection gave.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Returns of the episodes that finished in this round.
    pub returns: Vec<f32>,
    /// Their lengths.
    pub lengths: Vec<usize>,
}

impl Player {
    /// The tokens of frames, `[frames, K]`.
    pub fn see<'a>(
        &self,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
        size: usize,
        device: &Device,
    ) -> Tensor<2, Int> {
        self.tokenizer.encode(batch::frames(frames, size, device))
    }

    /// Takes observations in and draws an action for each, by a uniform number in [0, 1) for each:
    /// `[batch, K]`, `[batch]` -> state, `[batch]`. The state has not been told of the actions yet.
    pub fn decide(
        &self,
        tokens: Tensor<2, Int>,
        state: ControllerState,
        temperature: f64,
        draws: &[f32],
    ) -> (ControllerState, Vec<usize>) {
        let view = self.actor_critic.view(&self.tokenizer, tokens);
        let state = self.actor_critic.observe(view, state);
        let logits = self
            .actor_critic
            .heads(&state)
            .logits
            .div_scalar(temperature);
        let draws = Tensor::from_floats(draws, &logits.device());
        let actions = host_ints(sample(logits, draws))
            .into_iter()
            .map(|a| a as usize)
            .collect();
        (state, actions)
    }

    /// Tells the state which actions were taken.
    pub fn act(&self, actions: &[usize], state: ControllerState) -> ControllerState {
        let data: Vec<i64> = actions.iter().map(|a| *a as i64).collect();
        let device = state.hidden.device();
        let actions = Tensor::from_data(TensorData::new(data, [actions.len()]), &device);
        self.actor_critic.act(actions, state)
    }
}

/// Plays `config.collect.steps_per_epoch` steps into the replay. An episode that is still open goes on:
/// the LSTM is warmed with its last steps, as the present weights see them.
pub fn collect(
    env: &mut dyn Env,
    player: &Player,
    replay: &mut Replay,
    config: &Config,
    device: &Device,
    rng: &mut impl Rng,
    mut progress: impl FnMut(usize),
) -> Collected {
    let size = config.env.frame_size;
    let mut out = Collected::default();
    let mut state = player.actor_critic.initial_state(1);
    let mut frame = Vec::new();
    if replay.has_open_episode() {
        state = warmed(player, replay, config, device);
        frame = env.render();
    }
    let mut held = None;
    for i in 0..config.collect.steps_per_epoch {
        // Not before its first step: a reset at the end of a round would be doubled by the next round.
        if !replay.has_open_episode() {
            state = player.actor_critic.initial_state(1);
            frame = env.reset();
        }
        let tokens = player.see([&frame[..]].into_iter(), size, device);
        let (observed, actions) =
            player.decide(tokens, state, config.collect.temperature, &[rng.random()]);
        if i % config.collect.hold == 0 {
            let random = rng.random_bool(config.collect.epsilon);
            held = random.then(|| rng.random_range(0..env.actions().len()));
        }
        let action = held.unwrap_or(actions[0]);
        state = player.act(&[action], observed);
        let step = env.step(action);
        replay.push(&frame, action as u8, step.reward, step.outcome);
        frame = step.frame;
        if step.outcome != Outcome::Continues {
            let episode = replay.episodes() as u32 - 1;
            let length = replay.episode_steps(episode);
            let ids = (0..length as u32).map(|index| StepId { episode, index });
            out.returns.push(ids.map(|id| replay.reward(id)).sum());
            out.lengths.push(length);
        }
        progress(i + 1);
    }
    out
}

/// The LSTM's state at the end of the open episode.
fn warmed(player: &Player, replay: &Replay, config: &Config, device: &Device) -> ControllerState {
    let episode = replay.episodes() as u32 - 1;
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
    let tokens = player.see(
        ids.iter().map(|id| replay.frame(*id)),
        config.env.frame_size,
        device,
    );
    let [_, k] = tokens.dims();
    let actions: Vec<i64> = ids.iter().map(|id| i64::from(replay.action(*id))).collect();
    // Playing feeds the actions wherever they are taken in, so warming for it does, whatever dreams are
    // warmed with.
    burn_in(
        &player.actor_critic,
        &player.tokenizer,
        tokens.reshape([1, n, k]),
        Tensor::from_data(TensorData::new(actions, [1, n]), device),
        Tensor::ones([1, n], device),
        BurnInInputs::ObservationsAndActions,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::env;
    use crate::seeds::Seeds;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn actions_taken(changes: &[&str]) -> Vec<u8> {
        let changes: Vec<String> = changes.iter().map(|c| (*c).into()).collect();
        let config = Config::load("debug", &changes).unwrap();
        let mut env = env::make(&config.env, env::Use::Train, 1).unwrap();
        let device = Device::flex();
        let agent = Agent::new(&config, env.actions().len(), &Seeds::new(1), &device);
        let bytes = 3 * config.env.frame_size.pow(2);
        let mut replay = Replay::new(bytes, config.tokens_per_obs());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let player = agent.valid();
        collect(
            &mut env,
            &player,
            &mut replay,
            &config,
            &device,
            &mut rng,
            |_| (),
        );
        (0..replay.episodes() as u32)
            .flat_map(|episode| {
                (0..replay.episode_steps(episode) as u32)
                    .map(move |index| StepId { episode, index })
            })
            .map(|id| replay.action(id))
            .collect()
    }

    #[test]
    fn random_actions_are_held() {
        let long = ["collect.epsilon=1.0", "collect.steps_per_epoch=60"];
        let held = actions_taken(&[&long[..], &["collect.hold=20"]].concat());
        assert!(
            held.chunks(20)
                .all(|block| block.iter().all(|a| *a == block[0]))
        );
        let single = actions_taken(&long);
        assert!(
            single
                .chunks(20)
                .any(|block| block.iter().any(|a| *a != block[0]))
        );
    }
}
