//! The replay buffer: every step that the agent collected, in host memory, as bytes.
//!
//! Steps are stored in flat arrays in the order in which they were pushed; an episode is a range of them. Inside this
//! module a step is addressed by its position in these arrays, outside by its [`StepId`].
//!
//! # Memory
//! Frames are stored in blocks of `FRAMES_PER_BLOCK` that are never reallocated and waste less than one block. The
//! other arrays may have up to twice the capacity they need. Together, 100,000 frames of 64x64x3 with 64 tokens each
//! take at most 1.26 GB, token cache included.

pub mod archive;
mod chunks;
mod error;
mod frames;
mod priorities;
mod segments;
mod token_cache;

pub use chunks::ChunkInfo;
pub(crate) use chunks::{STEP_BYTES_BESIDES_FRAME, outcome_from_byte, outcome_to_byte};
pub use error::ReplayError;
pub(crate) use priorities::SegmentLosses;
pub use segments::Segment;

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
    /// Position of the first step of each episode, ascending.
    episode_starts: Vec<u32>,
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
            episode_starts: Vec::new(),
            token_cache: TokenCache::new(tokens_per_obs),
        }
    }

    /// Appends a step to the open episode, or to a new one. [`Outcome::Terminated`] and [`Outcome::Truncated`] close
    /// the episode.
    ///
    /// # Panics
    /// If the frame has another size than `frame_bytes`, or the reward is not finite.
    pub fn push(&mut self, frame: &[u8], action: u8, reward: f32, outcome: Outcome) {
        assert!(reward.is_finite(), "reward {reward} is not finite");
        let position = u32::try_from(self.steps()).expect("a replay holds fewer than 2^32 steps");
        if !self.has_open_episode() {
            self.episode_starts.push(position);
        }
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
        self.episode_starts.len()
    }

    /// Whether the next step continues the last episode.
    pub(crate) fn has_open_episode(&self) -> bool {
        self.outcomes.last() == Some(&Outcome::Running)
    }

    /// Number of steps of an episode.
    ///
    /// # Panics
    /// If there is no such episode.
    pub fn episode_steps(&self, episode: u32) -> usize {
        let episode = episode as usize;
        let end = self
            .episode_starts
            .get(episode + 1)
            .map_or(self.steps(), |&next| next as usize);
        end - self.episode_starts[episode] as usize
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
        self.episode_starts[id.episode as usize] as usize + id.index as usize
    }

    fn id(&self, position: u32) -> StepId {
        let episode = self
            .episode_starts
            .partition_point(|&start| start <= position)
            - 1;
        StepId {
            episode: episode as u32,
            index: position - self.episode_starts[episode],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::frames::FRAMES_PER_BLOCK;
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Bytes of host memory that a replay has allocated.
    fn allocated_bytes(replay: &Replay) -> usize {
        size_of::<Replay>()
            + replay.frames.allocated_bytes()
            + replay.actions.capacity()
            + replay.rewards.capacity() * size_of::<f32>()
            + replay.outcomes.capacity() * size_of::<Outcome>()
            + replay.episode_starts.capacity() * size_of::<u32>()
            + replay.token_cache.allocated_bytes()
    }

    /// Upper bound of [`allocated_bytes`] for `steps` steps in episodes of any length, all tokens cached.
    fn allocation_bound(steps: usize, frame_bytes: usize, tokens_per_obs: usize) -> usize {
        let blocks = steps.div_ceil(FRAMES_PER_BLOCK);
        let frames = blocks * FRAMES_PER_BLOCK * frame_bytes;
        // Action, reward, outcome, at most one episode start, and the cached tokens with their flag.
        let per_step =
            1 + size_of::<f32>() + size_of::<Outcome>() + size_of::<u32>() + 2 * tokens_per_obs + 1;
        // Vectors at most double. The constant covers `Replay` and the smallest capacities of a few vectors.
        frames + 2 * (steps * per_step + blocks * size_of::<Vec<u8>>()) + 1024
    }

    /// A replay of 3-byte frames with episodes of these lengths, the last one open. Actions count the steps of the
    /// episode, rewards those of the replay.
    pub(super) fn replay_of(lengths: &[usize]) -> Replay {
        let mut replay = Replay::new(3, 2);
        for (episode, &length) in lengths.iter().enumerate() {
            for index in 0..length {
                let outcome = match index + 1 == length && episode + 1 < lengths.len() {
                    false => Outcome::Running,
                    true if episode % 2 == 0 => Outcome::Terminated,
                    true => Outcome::Truncated,
                };
                let reward = replay.steps() as f32;
                replay.push(
                    &[episode as u8, index as u8, 7],
                    index as u8,
                    reward,
                    outcome,
                );
            }
        }
        replay
    }

    /// Chi-square test that `counts` come from a uniform distribution: at most 5 standard deviations above the mean.
    pub(super) fn assert_uniform(counts: &[usize]) {
        let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        let chi_square: f64 = counts
            .iter()
            .map(|&c| (c as f64 - expected).powi(2) / expected)
            .sum();
        let freedom = (counts.len() - 1) as f64;
        let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(
            chi_square < limit,
            "chi-square {chi_square} exceeds {limit}"
        );
    }

    pub(super) fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    #[test]
    fn steps_are_accessible_by_id() {
        let replay = replay_of(&[2, 1, 600, 5]);
        assert_eq!((replay.steps(), replay.episodes()), (608, 4));
        assert!(replay.has_open_episode());
        let id = StepId {
            episode: 2,
            index: 599,
        };
        assert_eq!(replay.frame(id), [2, (599 % 256) as u8, 7]);
        assert_eq!(
            (replay.action(id), replay.reward(id)),
            ((599 % 256) as u8, 602.0)
        );
        assert!(
            (0..replay.steps())
                .all(|position| replay.position(replay.id(position as u32)) == position)
        );
    }

    #[test]
    fn a_truncated_episode_is_closed_but_not_terminated() {
        let replay = replay_of(&[2, 1, 1]);
        assert!(replay.terminated(StepId {
            episode: 0,
            index: 1
        }));
        let truncated = StepId {
            episode: 1,
            index: 0,
        };
        assert!(replay.outcome(truncated) == Outcome::Truncated);
        assert!(!replay.terminated(truncated));
    }

    #[test]
    #[should_panic(expected = "beyond the end of its episode")]
    fn an_index_beyond_the_end_of_an_episode_panics() {
        replay_of(&[2, 5]).frame(StepId {
            episode: 0,
            index: 2,
        });
    }

    #[test]
    fn frames_are_sampled_uniformly_and_reproducibly() {
        let replay = replay_of(&[1, 3, 40, 200, 2]);
        let drawn = replay.sample_frames(100_000, &mut rng(1));
        let mut counts = vec![0; replay.steps()];
        for &id in &drawn {
            counts[replay.position(id)] += 1;
        }
        assert_uniform(&counts);
        assert_eq!(drawn, replay.sample_frames(100_000, &mut rng(1)));
        assert_ne!(drawn, replay.sample_frames(100_000, &mut rng(2)));
    }

    #[test]
    fn uncached_returns_each_missing_step_once_in_order() {
        let mut replay = replay_of(&[2, 3]);
        let ids: Vec<_> = [4, 0, 4, 2, 0, 1]
            .map(|position| replay.id(position))
            .into();
        replay.cache_tokens(1, replay.id(2), &[5, 6]);
        let missing = replay.uncached(1, ids.iter().copied());
        assert_eq!(missing, [4, 0, 1].map(|position| replay.id(position)));
        assert_eq!(replay.uncached(2, ids.into_iter()).len(), 4);
    }

    #[test]
    fn allocated_memory_stays_within_the_bound() {
        // A doubling vector wastes most at one past a power of two; episodes of one step have the most starts.
        for (steps, outcome) in [
            (1, Outcome::Running),
            (257, Outcome::Terminated),
            (4096, Outcome::Running),
            (65_537, Outcome::Terminated),
            (65_537, Outcome::Running),
        ] {
            let mut replay = Replay::new(48, 4);
            for _ in 0..steps {
                replay.push(&[1; 48], 0, 0.0, outcome);
                replay.cache_tokens(1, replay.id(replay.steps() as u32 - 1), &[9; 4]);
            }
            let filled = steps * (48 + 1 + 4 + 1 + 8 + 1);
            let allocated = allocated_bytes(&replay);
            let bound = allocation_bound(steps, 48, 4);
            assert!(
                (filled..=bound).contains(&allocated),
                "{steps} steps: {filled} <= {allocated} <= {bound}"
            );
        }
    }

    #[test]
    fn a_hundred_thousand_frames_fit_into_1_3_gigabytes() {
        assert!(allocation_bound(100_000, 64 * 64 * 3, 64) <= 1_300_000_000);
    }
}
