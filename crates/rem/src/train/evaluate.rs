//! Evaluation: the policy at its test temperature, on several episodes in parallel.

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::config::{Config, EnvMode, RewardTransform};
use crate::data::test_episodes::{TestEpisodes, TestStep};
use crate::env::{Env, EnvError, EnvFactory, Outcome};
use crate::model::actor_critic::ControllerState;
use crate::model::agent::Player;
use crate::seeds::{Purpose, Seeds};

/// Maximum number of recorded steps of an episode.
const MAX_RECORDED_STEPS: usize = 300;

/// Maximum number of episodes played in parallel.
const PARALLEL_EPISODES: usize = 8;

/// Frames, actions and rewards of an episode, or of its first 300 steps.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// RGB frames, one more than actions: the last one follows the last action.
    pub frames: Vec<Vec<u8>>,
    /// The action taken in each frame but the last.
    pub actions: Vec<usize>,
    /// The reward of each action.
    pub rewards: Vec<f32>,
    /// The outcome of each action.
    pub outcomes: Vec<Outcome>,
}

impl Recording {
    /// Adds a step and, if it is the last one to record, the frame after it.
    fn push(&mut self, step: &TestStep, frame_after: &[u8]) {
        if self.actions.len() == MAX_RECORDED_STEPS {
            return;
        }
        self.frames.push(step.frame.clone());
        self.actions.push(usize::from(step.action));
        self.rewards.push(step.reward);
        self.outcomes.push(step.outcome);
        if step.outcome != Outcome::Running || self.actions.len() == MAX_RECORDED_STEPS {
            self.frames.push(frame_after.to_vec());
        }
    }
}

/// The episodes of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Their returns, unclipped.
    pub returns: Vec<f32>,
    /// Their lengths in steps.
    pub lengths: Vec<usize>,
    /// A recording of the first one.
    pub recording: Recording,
    /// Segments of the first ones, for the world model's losses.
    pub test_episodes: TestEpisodes,
}

impl Evaluation {
    /// The mean return.
    pub fn mean(&self) -> f64 {
        mean(&self.returns)
    }
}

/// The mean in double precision, 0 for no values.
pub fn mean(returns: &[f32]) -> f64 {
    returns.iter().map(|r| f64::from(*r)).sum::<f64>() / returns.len().max(1) as f64
}

/// An episode that is being played.
struct RunningEpisode {
    index: usize,
    env: Box<dyn Env>,
    frame: Vec<u8>,
    rng: ChaCha8Rng,
    total: f32,
    length: usize,
    over: bool,
}

impl RunningEpisode {
    fn new(envs: &EnvFactory, seeds: &Seeds, index: usize) -> Result<Self, EnvError> {
        let seed = seeds.derive(0, Purpose::EvaluationEnvironment, index as u64);
        let mut env = envs.make(EnvMode::Test, seed)?;
        Ok(Self {
            index,
            frame: env.reset()?.into_image(),
            env,
            rng: ChaCha8Rng::seed_from_u64(seeds.derive(0, Purpose::Evaluation, index as u64)),
            total: 0.0,
            length: 0,
            over: false,
        })
    }

    /// Takes an action. Returns it with its reward and the frame before it.
    fn step(&mut self, action: usize) -> Result<TestStep, EnvError> {
        let step = self.env.step(&action.into())?;
        self.total += step.reward;
        self.length += 1;
        self.over = step.outcome != Outcome::Running;
        let frame = step.observation.into_image();
        Ok(TestStep {
            frame: std::mem::replace(&mut self.frame, frame),
            action: u8::try_from(action).expect("a game has at most 256 actions"),
            reward: step.reward,
            outcome: step.outcome,
        })
    }
}

/// Plays episodes `0..episodes`. Each has its own environment and random generator, seeded by the run and the
/// episode's number, so the same weights always get the same score.
///
/// # Errors
///
/// If an environment cannot be created, or fails.
pub fn evaluate(
    player: &Player,
    config: &Config,
    envs: &EnvFactory,
    episodes: usize,
    seeds: &Seeds,
    device: &Device,
    mut progress: impl FnMut(usize),
) -> Result<Evaluation, EnvError> {
    // Without the epoch's attempt: a retried epoch is evaluated on the same episodes.
    let seeds = Seeds::new(seeds.run);
    let mut out = Evaluation {
        returns: vec![0.0; episodes],
        lengths: vec![0; episodes],
        recording: Recording::default(),
        test_episodes: TestEpisodes::new(config.train.horizon),
    };
    let mut running: Vec<RunningEpisode> = Vec::new();
    let mut state: Option<ControllerState> = None;
    let (mut begun, mut done) = (0, 0);
    while done < episodes {
        let starting = (PARALLEL_EPISODES - running.len()).min(episodes - begun);
        if starting > 0 {
            // In parallel: starting a worker process or a level may take long.
            let new: Vec<RunningEpisode> = (begun..begun + starting)
                .into_par_iter()
                .map(|episode| RunningEpisode::new(envs, &seeds, episode))
                .collect::<Result<_, _>>()?;
            running.extend(new);
            begun += starting;
            let initial = player.actor_critic.initial_state(starting);
            state = Some(match state {
                Some(state) => state.concat(initial),
                None => initial,
            });
        }
        let playing = state.expect("at least one episode is running");
        let next = play_step(player, config, &mut running, playing, &mut out, device)?;
        state = remove_finished(&mut running, next, &mut out, device);
        done = begun - running.len();
        progress(done);
    }
    Ok(out)
}

/// One step of each running episode.
fn play_step(
    player: &Player,
    config: &Config,
    running: &mut [RunningEpisode],
    state: ControllerState,
    out: &mut Evaluation,
    device: &Device,
) -> Result<ControllerState, EnvError> {
    let frames = running.iter().map(|s| &s.frame[..]);
    let tokens = player.tokenize(frames, config.env.frame_size, device);
    let uniforms: Vec<f32> = running.iter_mut().map(|s| s.rng.random()).collect();
    let (state, actions) =
        player.sample_actions(tokens, state, config.evaluate.temperature, &uniforms);
    let steps = running.par_iter_mut().zip(&actions);
    let steps: Vec<_> = steps
        .map(|(episode, action)| episode.step(*action))
        .collect::<Result<_, _>>()?;
    let transform: RewardTransform = config.env.wrappers.rewards;
    for (episode, mut step) in running.iter().zip(steps) {
        if episode.index == 0 {
            out.recording.push(&step, &episode.frame);
        }
        // The world model predicts what the agent learns from; the score has the environment's rewards.
        step.reward = transform.apply(step.reward);
        out.test_episodes
            .push(episode.index, episode.length - 1, step);
    }
    Ok(player.act(&actions, state))
}

/// Removes the episodes that are over. Returns the controller state of the others, if there are any.
fn remove_finished(
    running: &mut Vec<RunningEpisode>,
    state: ControllerState,
    out: &mut Evaluation,
    device: &Device,
) -> Option<ControllerState> {
    let playing = |(i, episode): (usize, &RunningEpisode)| (!episode.over).then_some(i as i64);
    let left: Vec<i64> = running.iter().enumerate().filter_map(playing).collect();
    if left.len() == running.len() {
        return Some(state);
    }
    running.retain(|episode| {
        if episode.over {
            out.returns[episode.index] = episode.total;
            out.lengths[episode.index] = episode.length;
        }
        !episode.over
    });
    let count = left.len();
    (count > 0).then(|| state.select(Tensor::from_data(TensorData::new(left, [count]), device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_recorded_frame_follows_the_last_recorded_action() {
        let step = |number: usize, outcome| TestStep {
            frame: vec![number as u8],
            action: 1,
            reward: 0.5,
            outcome,
        };
        let record = |steps: usize, outcome| {
            let mut recording = Recording::default();
            for number in 0..steps {
                let outcome = match number + 1 == steps {
                    true => outcome,
                    false => Outcome::Running,
                };
                recording.push(&step(number, outcome), &[(number + 1) as u8]);
            }
            recording
        };
        let short = record(3, Outcome::Terminated);
        assert_eq!(short.frames, [[0], [1], [2], [3]]);
        assert_eq!(short.outcomes[2], Outcome::Terminated);
        let long = record(MAX_RECORDED_STEPS + 9, Outcome::Terminated);
        let (frames, actions) = (long.frames.len(), long.actions.len());
        assert_eq!(
            (frames, actions),
            (MAX_RECORDED_STEPS + 1, MAX_RECORDED_STEPS)
        );
        assert_eq!(long.frames[frames - 1], [(MAX_RECORDED_STEPS % 256) as u8]);
        assert_eq!(long.outcomes[actions - 1], Outcome::Running);
    }
}
