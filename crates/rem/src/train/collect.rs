//! Collection of experience with the policy (paper, Algorithm 4: `collect_experience`).

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};

use crate::config::Config;
use crate::data::batch;
use crate::data::replay::{Replay, StepId};
use crate::env::{Env, Outcome};
use crate::host;
use crate::imagination::burn_in;
use crate::model::actor_critic::ControllerState;
use crate::model::agent::Player;
use rem_kernels::sample;

/// The episodes that ended during a collection phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    /// Their returns.
    pub(super) returns: Vec<f32>,
    /// Their lengths.
    pub(super) lengths: Vec<usize>,
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

/// Collects `config.collect.steps_per_epoch` steps into the replay. Continues an open episode, after a burn-in of the
/// LSTM on its last steps with the current weights; with `config.collect.reset_per_epoch`, no episode stays open.
pub(super) fn collect(
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
        state = burned_in(player, replay, config, device);
        frame = env.render();
    }
    let mut random_action = None;
    for i in 0..config.collect.steps_per_epoch {
        // Before the first step of an episode, not after the last one: the next collection would reset again.
        if !replay.has_open_episode() {
            state = player.actor_critic.initial_state(1);
            frame = env.reset();
        }
        let tokens = player.tokenize([&frame[..]].into_iter(), size, device);
        let (observed, actions) =
            player.sample_actions(tokens, state, config.collect.temperature, &[rng.random()]);
        if i % config.collect.random_action_repeat == 0 {
            let random = rng.random_bool(config.collect.epsilon);
            random_action = random.then(|| rng.random_range(0..env.actions().len()));
        }
        let action = random_action.unwrap_or(actions[0]);
        state = player.act(&[action], observed);
        let step = env.step(action);
        let last = i + 1 == config.collect.steps_per_epoch;
        let outcome = match step.outcome {
            Outcome::Running if last && config.collect.reset_per_epoch => Outcome::Truncated,
            outcome => outcome,
        };
        replay.push(&frame, action as u8, step.reward, outcome);
        frame = step.frame;
        if outcome != Outcome::Running {
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

/// The LSTM state after a burn-in on the last steps of the open episode.
fn burned_in(
    player: &Player,
    replay: &Replay,
    config: &Config,
    device: &Device,
) -> ControllerState {
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
mod tests {
    use super::*;
    use crate::config::EnvMode;
    use crate::env;
    use crate::model::agent::Agent;
    use crate::seeds::Seeds;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// The replay after a number of collections.
    fn collected(changes: &[&str], collections: usize) -> Replay {
        let changes: Vec<String> = changes.iter().map(|c| (*c).into()).collect();
        let config = Config::load("debug", &changes).unwrap();
        let mut env = env::make(&config.env, EnvMode::Train, 1).unwrap();
        let device = Device::flex();
        let agent = Agent::new(&config, env.actions().len(), &Seeds::new(1), &device);
        let bytes = 3 * config.env.frame_size.pow(2);
        let mut replay = Replay::new(bytes, config.tokens_per_obs());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let player = agent.valid();
        for _ in 0..collections {
            collect(
                &mut env,
                &player,
                &mut replay,
                &config,
                &device,
                &mut rng,
                |_| (),
            );
        }
        replay
    }

    fn actions_taken(changes: &[&str]) -> Vec<u8> {
        let replay = collected(changes, 1);
        (0..replay.episodes() as u32)
            .flat_map(|episode| {
                (0..replay.episode_steps(episode) as u32)
                    .map(move |index| StepId { episode, index })
            })
            .map(|id| replay.action(id))
            .collect()
    }

    #[test]
    fn an_epoch_starts_with_a_new_episode_if_asked() {
        let set = ["env.game=paddle", "collect.steps_per_epoch=7"];
        // Positions in the replay where an episode ends, and whether the last one is open.
        let ends = |reset: &str| {
            let replay = collected(&[&set[..], &[reset]].concat(), 3);
            let mut position = 0;
            let ends: Vec<usize> = (0..replay.episodes() as u32)
                .map(|episode| {
                    position += replay.episode_steps(episode);
                    position
                })
                .collect();
            (
                [7, 14, 21].map(|end| ends.contains(&end)),
                replay.has_open_episode(),
            )
        };
        assert_eq!(ends("collect.reset_per_epoch=true"), ([true; 3], false));
        let (at, open) = ends("collect.reset_per_epoch=false");
        assert!(!(at[0] && at[1]) && open);
    }

    #[test]
    fn random_actions_are_repeated() {
        let long = ["collect.epsilon=1.0", "collect.steps_per_epoch=60"];
        let repeated = actions_taken(&[&long[..], &["collect.random_action_repeat=20"]].concat());
        assert!(
            repeated
                .chunks(20)
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
