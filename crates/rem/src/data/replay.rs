//! The replay buffer: every step that the agent collected, in host memory, as bytes.
//!
//! Steps are stored in flat arrays in the order in which they were pushed. Several environments push in turns, each to its
//! own stream, so an episode consists of one or more ranges of the arrays (`episodes`). Inside this module a step is
//! addressed by its position in these arrays, outside by its [`StepId`].
//!
//! # Memory
//! Frames are stored in blocks of `FRAMES_PER_BLOCK` that are never reallocated and waste less than one block. The
//! other arrays may have up to twice the capacity they need. Together, 100,000 frames of 64x64x3 with 64 tokens each
//! take at most 1.26 GB, token cache included.

pub mod archive;
mod chunks;
mod episodes;
mod error;
mod frames;
mod header;
mod priorities;
mod segments;
mod token_cache;

pub use chunks::ChunkInfo;
pub(crate) use chunks::{outcome_from_byte, outcome_to_byte};
pub use error::ReplayError;
pub(crate) use header::STEP_BYTES_BESIDES_FRAME;
pub(crate) use priorities::SegmentLosses;
pub use segments::Segment;

use episodes::Episodes;
use frames::Frames;
use rand::{Rng, RngExt};
use token_cache::TokenCache;

use crate::env::Outcome;

/// Identifies a step. Stays valid when the replay grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId {
    /// Number of the episode, from 0.
    pub episode: u32,
    /// Number of the step within the episode, from 0.
    pub index: u32,
}

/// All episodes. A step is a frame, the action taken in it, and the reward and outcome of that action.
pub struct Replay {
    frames: Frames,
    actions: Vec<u8>,
    rewards: Vec<f32>,
    outcomes: Vec<Outcome>,
    episodes: Episodes,
    token_cache: TokenCache,
}

impl Replay {
    /// An empty replay of frames of `frame_bytes = size * size * 3` bytes and `tokens_per_obs` tokens.
    pub fn new(frame_bytes: usize, tokens_per_obs: usize) -> Self {
        Self {
            frames: Frames::new(frame_bytes),
            actions: Vec::new(),
            rewards: Vec::new(),
            outcomes: Vec::new(),
            episodes: Episodes::default(),
            token_cache: TokenCache::new(tokens_per_obs),
        }
    }

    /// Appends a step to the open episode, or to a new one. [`Outcome::Terminated`] and [`Outcome::Truncated`] close
    /// the episode.
    ///
    /// # Panics
    /// If the frame has another size than `frame_bytes`, or the reward is not finite.
    pub fn push(&mut self, frame: &[u8], action: u8, reward: f32, outcome: Outcome) {
        self.push_to(0, frame, action, reward, outcome);
    }

    /// Like [`Replay::push`], for one of several streams, each with an open episode of its own.
    pub(crate) fn push_to(
        &mut self,
        stream: u32,
        frame: &[u8],
        action: u8,
        reward: f32,
        outcome: Outcome,
    ) {
        assert!(reward.is_finite(), "reward {reward} is not finite");
        let position = u32::try_from(self.steps()).expect("a replay holds fewer than 2^32 steps");
        self.episodes.push(stream, position, outcome);
        self.frames.push(frame);
        self.actions.push(action);
        self.rewards.push(reward);
        self.outcomes.push(outcome);
    }

    /// Number of steps in all episodes.
    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    /// Number of episodes, including the open one.
    pub fn episodes(&self) -> usize {
        self.episodes.count()
    }

    /// Whether the next step continues an episode.
    #[cfg(test)]
    pub(crate) fn has_open_episode(&self) -> bool {
        self.open_episode(0).is_some()
    }

    /// The episode of the last step.
    ///
    /// # Panics
    /// If the replay is empty.
    pub(crate) fn last_episode(&self) -> u32 {
        self.id(self.steps() as u32 - 1).episode
    }

    /// The episode that the next step of a stream continues.
    pub(crate) fn open_episode(&self, stream: u32) -> Option<u32> {
        self.episodes.open(stream)
    }

    /// Makes the next step of a stream start a new episode. The last step of an open one remains
    /// [`Outcome::Running`]: like a truncated one, it is not terminal.
    pub(crate) fn abandon_episode(&mut self, stream: u32) {
        self.episodes.abandon(stream);
    }

    /// Number of steps of an episode.
    ///
    /// # Panics
    /// If there is no such episode.
    pub fn episode_steps(&self, episode: u32) -> usize {
        self.episodes.steps(episode)
    }

    /// The RGB frame of a step: `size * size * 3` bytes, row by row.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn frame(&self, id: StepId) -> &[u8] {
        self.frames.get(self.position(id))
    }

    /// The action taken in a step.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn action(&self, id: StepId) -> u8 {
        self.actions[self.position(id)]
    }

    /// The reward of a step's action.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn reward(&self, id: StepId) -> f32 {
        self.rewards[self.position(id)]
    }

    /// The outcome of a step's action.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn outcome(&self, id: StepId) -> Outcome {
        self.outcomes[self.position(id)]
    }

    /// The termination signal of a step: false for a truncated episode, which did not reach a terminal state.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn terminated(&self, id: StepId) -> bool {
        self.outcome(id) == Outcome::Terminated
    }

    /// Samples `n` steps uniformly, with replacement. The replay must not be empty.
    pub(crate) fn sample_frames(&self, n: usize, rng: &mut impl Rng) -> Vec<StepId> {
        // `u32`, so that the samples do not depend on the word size of the machine.
        let steps = self.steps() as u32;
        assert!(
            steps > 0 || n == 0,
            "cannot sample frames from an empty replay"
        );
        (0..n)
            .map(|_| self.id(rng.random_range(0..steps)))
            .collect()
    }

    /// The cached tokens of a step, if they are of this generation of tokenizer weights.
    pub(crate) fn cached_tokens(&self, generation: u64, id: StepId) -> Option<&[u16]> {
        self.token_cache.get(generation, self.position(id))
    }

    /// Caches the tokens of a step. `generation` increases whenever the tokenizer's weights change; the first tokens of
    /// a new generation clear the cache.
    pub(crate) fn cache_tokens(&mut self, generation: u64, id: StepId, tokens: &[u16]) {
        let position = self.position(id);
        self.token_cache.put(generation, position, tokens);
    }

    /// The distinct steps among `ids` without cached tokens of this generation, in order of first occurrence.
    pub fn uncached(&self, generation: u64, ids: impl Iterator<Item = StepId>) -> Vec<StepId> {
        let mut seen = std::collections::HashSet::new();
        ids.filter(|&id| self.cached_tokens(generation, id).is_none() && seen.insert(id))
            .collect()
    }

    /// The position of a step in the arrays.
    fn position(&self, id: StepId) -> usize {
        assert!(
            (id.index as usize) < self.episode_steps(id.episode),
            "{id:?} is beyond the end of its episode"
        );
        self.episodes.position(id)
    }

    fn id(&self, position: u32) -> StepId {
        self.episodes.id(position)
    }
}

#[cfg(test)]
mod tests;
