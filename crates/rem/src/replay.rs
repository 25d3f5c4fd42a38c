//! The replay: every step the agent has lived through, on the host, as bytes.
//!
//! One environment pushes, strictly in order, so a step has two names: its place in the order of
//! pushing (inside this room) and its [`StepId`] (outside). Steps lie in flat arrays in pushing
//! order; an episode is a range of them.
//!
//! # Memory
//! Frames lie in blocks of `FRAMES_PER_BLOCK` that are never moved or regrown, so they waste less
//! than one block; the small arrays may hold twice what they need while they grow.
//! [`Replay::resident_bound`] is that sum: 1.26 GB for 100,000 frames of 64x64x3 and 64 tokens a
//! frame, token cache included.

pub mod archive;
mod chunks;
mod error;
mod frames;
mod segments;
mod token_cache;

pub use chunks::ChunkInfo;
pub(crate) use chunks::{STEP_BYTES_BESIDES_FRAME, outcome_from_byte, outcome_to_byte};
pub use error::ReplayError;
pub use segments::Segment;

use frames::{FRAMES_PER_BLOCK, Frames};
use rand::{Rng, RngExt};
use token_cache::TokenCache;

use crate::env::Outcome;

/// Names one step; stays valid as the replay grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId {
    pub episode: u32,
    /// Place within the episode, from 0.
    pub index: u32,
}

/// Episodes of steps. A step is a frame, the action taken on it, and the reward and outcome of that
/// action.
pub struct Replay {
    frames: Frames,
    actions: Vec<u8>,
    rewards: Vec<f32>,
    outcomes: Vec<Outcome>,
    /// The first step of each episode, rising; an episode reaches to the next one's first step.
    episode_starts: Vec<u32>,
    token_cache: TokenCache,
}

impl Replay {
    /// `frame_bytes` is `size * size * 3`.
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

    /// Appends a step to the open episode, opening one if there is none. `Ended` and `Truncated`
    /// close it.
    pub fn push(&mut self, frame: &[u8], action: u8, reward: f32, outcome: Outcome) {
        assert!(reward.is_finite(), "reward {reward} is not finite");
        let place = u32::try_from(self.steps()).expect("a replay holds fewer than 2^32 steps");
        if !self.has_open_episode() {
            self.episode_starts.push(place);
        }
        self.frames.push(frame);
        self.actions.push(action);
        self.rewards.push(reward);
        self.outcomes.push(outcome);
    }

    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    /// Number of episodes, the open one included.
    pub fn episodes(&self) -> usize {
        self.episode_starts.len()
    }

    /// Whether the next step pushed continues the last episode.
    pub fn has_open_episode(&self) -> bool {
        self.outcomes.last() == Some(&Outcome::Continues)
    }

    /// Number of steps of an episode, so far if it is the open one.
    pub fn episode_steps(&self, episode: u32) -> usize {
        let episode = episode as usize;
        let end = self
            .episode_starts
            .get(episode + 1)
            .map_or(self.steps(), |&next| next as usize);
        end - self.episode_starts[episode] as usize
    }

    pub fn frame(&self, id: StepId) -> &[u8] {
        self.frames.get(self.place(id))
    }

    pub fn action(&self, id: StepId) -> u8 {
        self.actions[self.place(id)]
    }

    pub fn reward(&self, id: StepId) -> f32 {
        self.rewards[self.place(id)]
    }

    pub fn outcome(&self, id: StepId) -> Outcome {
        self.outcomes[self.place(id)]
    }

    /// The end flag to learn from: a truncated episode was cut by us and did not end.
    pub fn ended(&self, id: StepId) -> bool {
        self.outcome(id) == Outcome::Ended
    }

    /// Draws `n` steps uniformly over all steps, with replacement. The replay must not be empty.
    pub fn sample_frames(&self, n: usize, rng: &mut impl Rng) -> Vec<StepId> {
        // `u32`, so that the draws do not depend on the machine's word size.
        let steps = self.steps() as u32;
        assert!(
            steps > 0 || n == 0,
            "cannot sample frames from an empty replay"
        );
        (0..n)
            .map(|_| self.id(rng.random_range(0..steps)))
            .collect()
    }

    /// The tokens cached for a step by the tokenizer of this generation.
    pub fn cached_tokens(&self, generation: u64, id: StepId) -> Option<&[u16]> {
        self.token_cache.get(generation, self.place(id))
    }

    /// Keeps a step's tokens until a later generation comes. The caller raises `generation` with
    /// each change of the tokenizer's weights; the first tokens of a new generation drop all that
    /// was there.
    pub fn cache_tokens(&mut self, generation: u64, id: StepId, tokens: &[u16]) {
        let place = self.place(id);
        self.token_cache.put(generation, place, tokens);
    }

    /// Those of `ids` without cached tokens of this generation: without doubles, in first-seen
    /// order.
    pub fn uncached(&self, generation: u64, ids: impl Iterator<Item = StepId>) -> Vec<StepId> {
        let mut seen = std::collections::HashSet::new();
        ids.filter(|&id| self.cached_tokens(generation, id).is_none() && seen.insert(id))
            .collect()
    }

    /// Bytes of host memory held: what is allocated, not only what is filled.
    pub fn resident_bytes(&self) -> usize {
        size_of::<Self>()
            + self.frames.resident_bytes()
            + self.actions.capacity()
            + self.rewards.capacity() * size_of::<f32>()
            + self.outcomes.capacity() * size_of::<Outcome>()
            + self.episode_starts.capacity() * size_of::<u32>()
            + self.token_cache.resident_bytes()
    }

    /// No replay of that many steps holds more than this, however its episodes fall and with every
    /// frame's tokens cached.
    pub fn resident_bound(steps: usize, frame_bytes: usize, tokens_per_obs: usize) -> usize {
        let blocks = steps.div_ceil(FRAMES_PER_BLOCK);
        let frames = blocks * FRAMES_PER_BLOCK * frame_bytes;
        // Action, reward, outcome, at worst an episode start, and the cached tokens with their
        // flag.
        let per_step =
            1 + size_of::<f32>() + size_of::<Outcome>() + size_of::<u32>() + 2 * tokens_per_obs + 1;
        // Vectors at most double; the constant covers `Self` and the smallest capacities of a few
        // vectors.
        frames + 2 * (steps * per_step + blocks * size_of::<Vec<u8>>()) + 1024
    }

    /// The place of a step in the order of pushing.
    fn place(&self, id: StepId) -> usize {
        assert!(
            (id.index as usize) < self.episode_steps(id.episode),
            "{id:?} lies beyond its episode"
        );
        self.episode_starts[id.episode as usize] as usize + id.index as usize
    }

    fn id(&self, place: u32) -> StepId {
        let episode = self.episode_starts.partition_point(|&start| start <= place) - 1;
        StepId {
            episode: episode as u32,
            index: place - self.episode_starts[episode],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// A replay of 3-byte frames whose episodes have these lengths; the last one stays open.
    /// Actions count within the episode, rewards over all steps.
    pub(super) fn replay_of(lengths: &[usize]) -> Replay {
        let mut replay = Replay::new(3, 2);
        for (episode, &length) in lengths.iter().enumerate() {
            for index in 0..length {
                let outcome = match index + 1 == length && episode + 1 < lengths.len() {
                    false => Outcome::Continues,
                    true if episode % 2 == 0 => Outcome::Ended,
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

    /// Fails if `counts` are unlikely draws from a uniform distribution: chi-square beyond its mean
    /// + 5 deviations.
    pub(super) fn assert_uniform(counts: &[usize]) {
        let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        let chi_square: f64 = counts
            .iter()
            .map(|&c| (c as f64 - expected).powi(2) / expected)
            .sum();
        let freedom = (counts.len() - 1) as f64;
        let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(chi_square < limit, "chi-square {chi_square} beyond {limit}");
    }

    pub(super) fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    #[test]
    fn steps_are_found_again_by_their_id() {
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
        assert!((0..replay.steps()).all(|place| replay.place(replay.id(place as u32)) == place));
    }

    #[test]
    fn a_truncation_closes_the_episode_but_is_not_an_end() {
        let replay = replay_of(&[2, 1, 1]);
        assert!(replay.ended(StepId {
            episode: 0,
            index: 1
        }));
        let truncated = StepId {
            episode: 1,
            index: 0,
        };
        assert!(replay.outcome(truncated) == Outcome::Truncated);
        assert!(!replay.ended(truncated));
    }

    #[test]
    #[should_panic(expected = "beyond its episode")]
    fn an_index_does_not_run_into_the_next_episode() {
        replay_of(&[2, 5]).frame(StepId {
            episode: 0,
            index: 2,
        });
    }

    #[test]
    fn frames_are_drawn_uniformly_and_repeatably() {
        let replay = replay_of(&[1, 3, 40, 200, 2]);
        let drawn = replay.sample_frames(100_000, &mut rng(1));
        let mut counts = vec![0; replay.steps()];
        for &id in &drawn {
            counts[replay.place(id)] += 1;
        }
        assert_uniform(&counts);
        assert_eq!(drawn, replay.sample_frames(100_000, &mut rng(1)));
        assert_ne!(drawn, replay.sample_frames(100_000, &mut rng(2)));
    }

    #[test]
    fn uncached_names_each_missing_step_once_in_order() {
        let mut replay = replay_of(&[2, 3]);
        let ids: Vec<_> = [4, 0, 4, 2, 0, 1].map(|place| replay.id(place)).into();
        replay.cache_tokens(1, replay.id(2), &[5, 6]);
        let missing = replay.uncached(1, ids.iter().copied());
        assert_eq!(missing, [4, 0, 1].map(|place| replay.id(place)));
        assert_eq!(replay.uncached(2, ids.into_iter()).len(), 4);
    }

    #[test]
    fn resident_bytes_stay_within_the_bound() {
        // One past a power of two is where a doubling vector wastes most; an episode a step has the
        // most starts.
        for (steps, outcome) in [
            (1, Outcome::Continues),
            (257, Outcome::Ended),
            (4096, Outcome::Continues),
            (65_537, Outcome::Ended),
            (65_537, Outcome::Continues),
        ] {
            let mut replay = Replay::new(48, 4);
            for _ in 0..steps {
                replay.push(&[1; 48], 0, 0.0, outcome);
                replay.cache_tokens(1, replay.id(replay.steps() as u32 - 1), &[9; 4]);
            }
            let filled = steps * (48 + 1 + 4 + 1 + 8 + 1);
            let resident = replay.resident_bytes();
            let bound = Replay::resident_bound(steps, 48, 4);
            assert!(
                (filled..=bound).contains(&resident),
                "{steps} steps: {filled} <= {resident} <= {bound}"
            );
        }
    }

    #[test]
    fn a_hundred_thousand_frames_fit_into_1_3_gigabytes() {
        assert!(Replay::resident_bound(100_000, 64 * 64 * 3, 64) <= 1_300_000_000);
    }
}
