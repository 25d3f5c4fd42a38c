//! Steps of evaluation episodes, which the world model is not trained on.
//!
//! # Memory
//!
//! Segments of the first 16 episodes are kept, 128 in all: with segments of 10 steps of 64x64 pixels, 16 MB. They are evenly
//! spaced over the steps of these episodes: when there are too many, every other one is dropped, and of the steps that
//! follow, only those of the remaining spacing are kept.

use super::replay::Replay;
use crate::env::Outcome;

/// Maximum number of episodes: those of an evaluation during training with the preset `atari100k`.
const MAX_EPISODES: usize = 16;

/// Maximum number of segments of all episodes.
const MAX_SEGMENTS: usize = 128;

/// A step of an evaluation episode.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestStep {
    /// The RGB frame.
    pub(crate) frame: Vec<u8>,
    /// The action taken in it.
    pub(crate) action: u8,
    /// The reward of the action.
    pub(crate) reward: f32,
    /// The outcome of the action.
    pub(crate) outcome: Outcome,
}

/// Evenly spaced segments of evaluation episodes. The last segment of an episode may be shorter than the others.
#[derive(Clone, Debug)]
pub struct TestEpisodes {
    /// Steps of a segment.
    length: usize,
    /// Segment `n` of an episode is kept if this divides `n`.
    spacing: usize,
    segments: Vec<TestSegment>,
}

#[derive(Clone, Debug)]
struct TestSegment {
    episode: usize,
    number: usize,
    steps: Vec<TestStep>,
}

impl TestEpisodes {
    /// No episodes yet, for segments of `length` steps.
    ///
    /// # Panics
    ///
    /// If `length` is 0.
    pub(crate) fn new(length: usize) -> Self {
        assert!(length > 0, "a segment has at least one step");
        Self {
            length,
            spacing: 1,
            segments: Vec::new(),
        }
    }

    /// Adds step `index` of an episode. Each episode's steps come in order; episodes may alternate.
    pub(crate) fn push(&mut self, episode: usize, index: usize, step: TestStep) {
        let number = index / self.length;
        if episode >= MAX_EPISODES || !number.is_multiple_of(self.spacing) {
            return;
        }
        if index.is_multiple_of(self.length) {
            self.segments.push(TestSegment {
                episode,
                number,
                steps: Vec::with_capacity(self.length),
            });
            // Ends at the latest when each episode has one segment.
            while self.segments.len() > MAX_SEGMENTS {
                self.spacing *= 2;
                self.segments
                    .retain(|segment| segment.number.is_multiple_of(self.spacing));
            }
        }
        let mut segments = self.segments.iter_mut().rev();
        if let Some(segment) = segments.find(|s| (s.episode, s.number) == (episode, number)) {
            segment.steps.push(step);
        }
    }

    /// The segments as episodes of a replay, in order. A segment in the middle of its episode becomes a truncated episode,
    /// which does not terminate.
    pub(crate) fn into_replay(mut self, frame_bytes: usize, tokens_per_obs: usize) -> Replay {
        self.segments
            .sort_by_key(|segment| (segment.episode, segment.number));
        let mut replay = Replay::new(frame_bytes, tokens_per_obs);
        for segment in self.segments {
            let last = segment.steps.len() - 1;
            for (i, step) in segment.steps.into_iter().enumerate() {
                let outcome = match step.outcome {
                    Outcome::Running if i == last => Outcome::Truncated,
                    outcome => outcome,
                };
                replay.push(&step.frame, step.action, step.reward, outcome);
            }
        }
        replay
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::StepId;
    use super::*;

    /// Episodes of these lengths, played in parallel. Frames hold the episode and the step.
    fn played(lengths: &[usize], length: usize) -> TestEpisodes {
        let mut episodes = TestEpisodes::new(length);
        for index in 0..lengths.iter().copied().max().unwrap_or(0) {
            for (episode, steps) in lengths.iter().enumerate() {
                if index >= *steps {
                    continue;
                }
                let [high, low] = (index as u16).to_be_bytes();
                let step = TestStep {
                    frame: vec![episode as u8, high, low],
                    action: 1,
                    reward: index as f32,
                    outcome: match index + 1 == *steps {
                        true => Outcome::Terminated,
                        false => Outcome::Running,
                    },
                };
                episodes.push(episode, index, step);
            }
        }
        episodes
    }

    /// The episode, the first step and the number of steps of each segment.
    fn segments(replay: &Replay) -> Vec<(u8, u16, usize)> {
        let segment = |number| {
            let first = StepId {
                episode: number,
                index: 0,
            };
            let [episode, high, low] = replay.frame(first) else {
                panic!("frames of three bytes");
            };
            let steps = replay.episode_steps(number);
            (*episode, u16::from_be_bytes([*high, *low]), steps)
        };
        (0..replay.episodes() as u32).map(segment).collect()
    }

    #[test]
    fn short_episodes_are_kept_whole_and_in_order() {
        let replay = played(&[7, 3, 5], 3).into_replay(3, 1);
        let expected = [
            (0, 0, 3),
            (0, 3, 3),
            (0, 6, 1),
            (1, 0, 3),
            (2, 0, 3),
            (2, 3, 2),
        ];
        assert_eq!(segments(&replay), expected);
        assert!(!replay.has_open_episode());
        // Only the last step of each episode terminates.
        let terminated = |episode: u32| {
            let index = replay.episode_steps(episode) as u32 - 1;
            replay.terminated(StepId { episode, index })
        };
        let found: Vec<bool> = (0..6).map(terminated).collect();
        assert_eq!(found, [false, false, true, true, false, true]);
    }

    #[test]
    fn long_episodes_are_thinned_evenly() {
        // 150, 300 and 3 segments of four steps: every fourth one is kept.
        let replay = played(&[600, 1200, 12], 4).into_replay(3, 1);
        let kept = segments(&replay);
        let every_fourth = |episode, count: u16| (0..count).map(move |n| (episode, 16 * n, 4));
        let expected: Vec<_> = every_fourth(0, 38)
            .chain(every_fourth(1, 75))
            .chain(every_fourth(2, 1))
            .collect();
        assert_eq!(kept, expected);
        assert!(kept.len() <= MAX_SEGMENTS);
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_episodes() {
        let lengths: Vec<usize> = (0..100).map(|n| 1 + 37 * n % 500).collect();
        let replay = played(&lengths, 2).into_replay(3, 1);
        let kept = segments(&replay);
        assert!(kept.len() <= MAX_SEGMENTS && kept.len() > MAX_SEGMENTS / 4);
        assert!(kept.iter().all(|(episode, ..)| *episode < 16));
        let starts = kept.iter().filter(|(_, start, _)| *start == 0);
        assert_eq!(starts.count(), 16, "the start of each episode is kept");
    }

    #[test]
    fn no_episodes_are_an_empty_replay() {
        assert_eq!(TestEpisodes::new(5).into_replay(3, 1).steps(), 0);
    }
}
