//! How well dreams predict recorded play, step by step.

use burn::module::Module;
use burn::tensor::{Int, Tensor};
use rand::Rng;
use serde::Serialize;

use super::estimate::share;
use super::{HeldOut, Progress, Subject, thinned};
use crate::host;
use crate::imagination::Dream;

/// Most dreams.
const MOST_DREAMS: usize = 2048;
/// Dreams per call of the world model.
const BATCH_SIZE: usize = 128;

/// Accuracy of dreams with recorded actions, a number of steps ahead. Dreams sample, as in training, so a world model of a
/// game with chance cannot be right every time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepAccuracy {
    /// Share of the tokens that are right.
    pub tokens: Option<f64>,
    /// Share of the tokens that are right, of those that changed in the game since the frame before.
    pub changed_tokens: Option<f64>,
    /// Rewards other than zero, with the right sign.
    pub rewards: Detection,
    /// Terminations.
    pub terminations: Detection,
}

/// How well events are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Detection {
    /// Events in the game.
    pub real: usize,
    /// Events in dreams.
    pub dreamed: usize,
    /// Events in both.
    pub both: usize,
}

impl Detection {
    fn add(&mut self, real: bool, dreamed: bool, equal: bool) {
        self.real += usize::from(real);
        self.dreamed += usize::from(dreamed);
        self.both += usize::from(real && dreamed && equal);
    }

    /// Share of the dreamed events that are real; `None` without any.
    pub fn precision(self) -> Option<f64> {
        share(self.both, self.dreamed)
    }

    /// Share of the real events that are dreamed; `None` without any.
    pub fn recall(self) -> Option<f64> {
        share(self.both, self.real)
    }
}

/// Counts of the steps at one distance.
#[derive(Clone, Default)]
struct Counts {
    tokens: [usize; 2],
    changed: [usize; 2],
    rewards: Detection,
    terminations: Detection,
}

impl Counts {
    /// Compares dreamed with real tokens; `before` are the real ones of the step before.
    fn add_tokens(&mut self, dreamed: &[i64], real: &[i64], before: &[i64]) {
        for ((dreamed, real), before) in dreamed.iter().zip(real).zip(before) {
            let right = usize::from(dreamed == real);
            self.tokens[0] += right;
            self.tokens[1] += 1;
            if real != before {
                self.changed[0] += right;
                self.changed[1] += 1;
            }
        }
    }

    /// Rewards below `zero_below` in absolute value count as zero.
    fn add_outcome(&mut self, real: (f32, bool), dreamed: (f32, bool), zero_below: f32) {
        let is_reward = |reward: f32| reward.abs() >= zero_below;
        let same_sign = real.0 * dreamed.0 > 0.0;
        self.rewards
            .add(is_reward(real.0), is_reward(dreamed.0), same_sign);
        self.terminations.add(real.1, dreamed.1, true);
    }

    fn accuracy(&self) -> StepAccuracy {
        StepAccuracy {
            tokens: share(self.tokens[0], self.tokens[1]),
            changed_tokens: share(self.changed[0], self.changed[1]),
            rewards: self.rewards,
            terminations: self.terminations,
        }
    }
}

impl Subject<'_> {
    /// The accuracy of dreams 1, 2, … steps ahead, up to the length of an imagined rollout.
    pub(super) fn step_accuracies(
        &self,
        play: &mut HeldOut,
        rng: &mut impl Rng,
        progress: Progress,
    ) -> Vec<StepAccuracy> {
        let (tokenizer, model) = (self.agent.tokenizer.valid(), self.agent.world_model.valid());
        let codes = tokenizer.codes();
        let context = model.context();
        let ahead = self.config.rollout_steps() - 1;
        let length = context + ahead;
        let segments = thinned(play.segments(length, context), MOST_DREAMS);
        let zero_below = self.zero_below(play);
        let mut counts = vec![Counts::default(); ahead];
        let (mut done, all) = (0, segments.len());
        for segments in segments.chunks(BATCH_SIZE) {
            let batch = self
                .tokens(&tokenizer, &mut play.replay)
                .segments(segments, length);
            let tokens = batch.tokens.clone();
            let past = (context > 1).then(|| batch.actions.clone().narrow(1, 0, context - 1));
            let observations = tokens.clone().narrow(1, 0, context);
            let mut dream = Dream::start(&model, &codes, observations, past);
            let real = Real::new(tokens, batch.rewards, batch.ends, batch.mask);
            for (h, counts) in counts.iter_mut().enumerate() {
                let now = context - 1 + h;
                let actions = batch.actions.clone().narrow(1, now, 1);
                let step = dream.step(actions.reshape([segments.len()]), rng);
                let dreamed = host::ints(dream.tokens());
                let dreamed = dreamed.chunks(real.k).enumerate();
                for (b, dreamed) in dreamed.filter(|(b, _)| real.exists(*b, now)) {
                    let (reward, end) = real.outcome(b, now);
                    let happened = (self.modeled_reward(reward), end);
                    let dreamed_outcome = (step.rewards[b], step.ends[b]);
                    counts.add_outcome(happened, dreamed_outcome, zero_below);
                    if real.exists(b, now + 1) {
                        let [before, after] = [now, now + 1].map(|t| real.tokens(b, t));
                        counts.add_tokens(dreamed, after, before);
                    }
                }
            }
            done += segments.len();
            progress(done, all);
        }
        counts.iter().map(Counts::accuracy).collect()
    }

    /// Half the smallest reward in the play: what is below counts as zero.
    fn zero_below(&self, play: &HeldOut) -> f32 {
        let rewards = play.rewards().map(|r| self.modeled_reward(r).abs());
        let smallest = rewards.filter(|r| *r > 0.0).fold(f32::INFINITY, f32::min);
        match smallest.is_finite() {
            true => 0.5 * smallest,
            false => 0.5,
        }
    }
}

/// Recorded segments on the host.
struct Real {
    steps: usize,
    k: usize,
    tokens: Vec<i64>,
    rewards: Vec<f32>,
    ends: Vec<i64>,
    mask: Vec<f32>,
}

impl Real {
    fn new(
        tokens: Tensor<3, Int>,
        rewards: Tensor<2>,
        ends: Tensor<2, Int>,
        mask: Tensor<2>,
    ) -> Self {
        let [_, steps, k] = tokens.dims();
        Self {
            steps,
            k,
            tokens: host::ints(tokens),
            rewards: host::floats(rewards),
            ends: host::ints(ends),
            mask: host::floats(mask),
        }
    }

    /// Whether the segment has a step `t`: its episode may be over, or not be recorded to the end.
    fn exists(&self, b: usize, t: usize) -> bool {
        t < self.steps && self.mask[b * self.steps + t] > 0.0
    }

    fn tokens(&self, b: usize, t: usize) -> &[i64] {
        &self.tokens[(b * self.steps + t) * self.k..][..self.k]
    }

    fn outcome(&self, b: usize, t: usize) -> (f32, bool) {
        let at = b * self.steps + t;
        (self.rewards[at], self.ends[at] == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_tokens_are_those_that_differ_from_the_frame_before() {
        let mut counts = Counts::default();
        // The second and the fourth token changed; of these the second is right.
        counts.add_tokens(&[1, 5, 3, 8], &[1, 5, 3, 6], &[1, 2, 3, 4]);
        counts.add_tokens(&[0, 2, 3, 4], &[1, 2, 3, 4], &[1, 2, 3, 4]);
        let accuracy = counts.accuracy();
        assert_eq!(accuracy.tokens, Some(6.0 / 8.0));
        assert_eq!(accuracy.changed_tokens, Some(0.5));
        assert_eq!(Counts::default().accuracy().changed_tokens, None);
    }

    #[test]
    fn rewards_need_the_right_sign() {
        let mut counts = Counts::default();
        for (real, dreamed) in [(1.0, 0.8), (1.0, -1.0), (0.0, 1.0), (-1.0, 0.2), (0.0, 0.4)] {
            counts.add_outcome((real, false), (dreamed, false), 0.5);
        }
        let rewards = counts.rewards;
        assert_eq!((rewards.real, rewards.dreamed, rewards.both), (3, 3, 1));
        assert_eq!(rewards.precision(), Some(1.0 / 3.0));
        assert_eq!(rewards.recall(), Some(1.0 / 3.0));
        let terminations = counts.terminations;
        assert_eq!(
            (terminations.precision(), terminations.recall()),
            (None, None)
        );
    }

    #[test]
    fn terminations_in_dreams_and_in_the_game_are_matched() {
        let mut counts = Counts::default();
        for (real, dreamed) in [(true, true), (true, false), (false, true), (false, false)] {
            counts.add_outcome((0.0, real), (0.0, dreamed), 0.5);
        }
        assert_eq!(counts.terminations.precision(), Some(0.5));
        assert_eq!(counts.terminations.recall(), Some(0.5));
    }
}
