//! Dreamed against real returns of the same policy from the same states.

use burn::module::Module;
use rand::Rng;
use serde::Serialize;

use super::estimate::correlation;
use super::held_out::GameState;
use super::simulation::Simulator;
use super::{Estimate, HeldOut, Progress, Subject, thinned};
use crate::env::EnvError;
use crate::imagination::{Rollout, imagine};

/// Most states.
const MOST_STATES: usize = 256;
/// Rollouts from each state, in dreams and in the game.
const REPEATS: usize = 8;
/// States per batch.
const BATCH_SIZE: usize = 64;

/// Returns over the length of an imagined rollout: means over states.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReturnComparison {
    /// Number of states.
    pub states: usize,
    /// Rollouts from each state, in dreams and in the game.
    pub repeats: usize,
    /// Imagined observations of a rollout.
    pub steps: usize,
    /// Mean return in dreams.
    pub dreamed: f64,
    /// Mean return in the game.
    pub real: f64,
    /// Mean of the dreamed minus the real return of a state.
    pub difference: Estimate,
    /// Correlation between dreamed and real returns over the states; `None` if one of the two does not vary.
    pub correlation: Option<f64>,
    /// Share of the dreams that terminate.
    pub dreamed_terminations: f64,
    /// Share of the rollouts in the game that terminate.
    pub real_terminations: f64,
}

/// Returns by state, each a mean over [`REPEATS`], and terminations.
#[derive(Default)]
struct Side {
    returns: Vec<f64>,
    terminated: usize,
    rollouts: usize,
}

impl Side {
    /// Adds the rollouts of a batch of states.
    fn add(&mut self, repeats: &[Rollout]) {
        let returns: Vec<Vec<f64>> = repeats.iter().map(Rollout::returns).collect();
        let mean = |state: usize| -> f64 {
            returns.iter().map(|r| r[state]).sum::<f64>() / repeats.len() as f64
        };
        self.returns.extend((0..returns[0].len()).map(mean));
        let ends = repeats.iter().flat_map(|rollout| &rollout.ends);
        self.terminated += ends.clone().filter(|ends| ends.contains(&true)).count();
        self.rollouts += ends.count();
    }

    fn terminations(&self) -> f64 {
        self.terminated as f64 / self.rollouts.max(1) as f64
    }
}

impl Subject<'_> {
    /// Compares the returns of dreams with those of rollouts in the game, from states of held-out play.
    pub(super) fn compare_returns(
        &self,
        play: &mut HeldOut,
        rng: &mut impl Rng,
        progress: Progress,
    ) -> Result<ReturnComparison, EnvError> {
        let (player, world_model) = (self.agent.valid(), self.agent.world_model.valid());
        let states: Vec<GameState> = play.states().into_iter().cloned().collect();
        let states = thinned(states, MOST_STATES);
        let steps = self.config.rollout_steps();
        let mut simulator = Simulator::new(self, BATCH_SIZE.min(states.len()))?;
        let (mut dreamed, mut real) = (Side::default(), Side::default());
        let (mut done, all) = (0, states.len());
        for states in states.chunks(BATCH_SIZE) {
            let starts = play.dream_starts(self, &player.tokenizer, states);
            let dreams: Vec<Rollout> = (0..REPEATS)
                .map(|_| {
                    imagine(
                        &player.actor_critic,
                        &world_model,
                        &player.tokenizer,
                        starts.clone(),
                        steps,
                        self.config.actor_critic.inputs.burn_in_actions(),
                        rng,
                    )
                })
                .collect();
            dreamed.add(&dreams);
            let games: Vec<Rollout> = (0..REPEATS)
                .map(|_| simulator.roll_out(self, &player, play, states, rng))
                .collect::<Result<_, _>>()?;
            real.add(&games);
            done += states.len();
            progress(done, all);
        }
        Ok(ReturnComparison::of(&dreamed, &real, steps - 1))
    }
}

impl ReturnComparison {
    fn of(dreamed: &Side, real: &Side, steps: usize) -> Self {
        let pairs = dreamed.returns.iter().zip(&real.returns);
        let differences: Vec<f64> = pairs.map(|(dreamed, real)| dreamed - real).collect();
        Self {
            states: real.returns.len(),
            repeats: REPEATS,
            steps,
            dreamed: Estimate::of(&dreamed.returns).mean,
            real: Estimate::of(&real.returns).mean,
            difference: Estimate::of(&differences),
            correlation: correlation(&dreamed.returns, &real.returns),
            dreamed_terminations: dreamed.terminations(),
            real_terminations: real.terminations(),
        }
    }

    /// Whether no rollout had a reward, so that there is nothing to compare.
    pub(super) fn is_empty(&self) -> bool {
        self.real == 0.0 && self.dreamed == 0.0 && self.difference.margin == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Int, Tensor};

    use crate::model::actor_critic::ControllerState;

    /// A batch of two states; only rewards and ends matter.
    fn rollout(rewards: [[f32; 2]; 2], ends: [[bool; 2]; 2]) -> Rollout {
        let device = Device::flex();
        let zeros = || Tensor::zeros([2, 1], &device);
        Rollout {
            start: ControllerState {
                hidden: zeros(),
                cell: zeros(),
            },
            encoder_inputs: Tensor::zeros([6, 1, 1, 1], &device),
            tokens: Tensor::<3, Int>::zeros([2, 3, 1], &device),
            actions: Tensor::<2, Int>::zeros([2, 2], &device),
            rewards: rewards.map(|r| r.to_vec()).to_vec(),
            ends: ends.map(|e| e.to_vec()).to_vec(),
            disagreements: vec![vec![]; 2],
        }
    }

    #[test]
    fn returns_are_compared_state_by_state() {
        let running = [[false; 2]; 2];
        let (mut dreamed, mut real) = (Side::default(), Side::default());
        // The reward after an end does not count: returns 1 and 3, then 3 and 1.
        let over = [[true, false], [false; 2]];
        dreamed.add(&[
            rollout([[1.0, 9.0], [1.0, 2.0]], over),
            rollout([[1.0, 2.0], [0.0, 1.0]], running),
        ]);
        real.add(&[
            rollout([[1.0, 0.0], [2.0, 0.0]], running),
            rollout([[1.0, 0.0], [4.0, 0.0]], running),
        ]);
        let found = ReturnComparison::of(&dreamed, &real, 2);
        assert_eq!(dreamed.returns, [2.0, 2.0]);
        assert_eq!(real.returns, [1.0, 3.0]);
        assert_eq!((found.dreamed, found.real), (2.0, 2.0));
        assert_eq!(found.difference, Estimate::of(&[1.0, -1.0]));
        assert_eq!(found.correlation, None);
        assert_eq!(found.dreamed_terminations, 0.25);
        assert_eq!(found.real_terminations, 0.0);
        assert!(!found.is_empty());
    }
}
