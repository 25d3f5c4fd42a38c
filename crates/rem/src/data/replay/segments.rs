//! Segments of episodes: padded on the right for the world model, on the left for the controller.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::{Replay, StepId};

/// `length` consecutive steps of an episode. Steps outside the episode are padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Number of the episode.
    pub episode: u32,
    /// The first step; negative if the segment begins with padding.
    pub start: i64,
    /// Number of steps, including padding.
    pub length: u32,
}

impl Segment {
    /// The `length` steps, `None` for padding. Steps that are pushed after this call are not included.
    pub fn steps(&self, replay: &Replay) -> impl ExactSizeIterator<Item = Option<StepId>> + use<> {
        let Segment {
            episode,
            start,
            length,
        } = *self;
        let episode_steps = replay.episode_steps(episode) as i64;
        (0..length).map(move |offset| {
            let index = start + i64::from(offset);
            (0..episode_steps).contains(&index).then_some(StepId {
                episode,
                index: index as u32,
            })
        })
    }
}

impl Replay {
    /// Samples segments for the world model: they begin at a real step and are padded on the right. Uniform, with
    /// replacement, over all starts that are followed by at least `min_real` steps of their episode, including the
    /// start; `None` if there is no such start. Open episodes are included.
    ///
    /// # Panics
    /// If `min_real` is outside `1..=length`.
    pub fn sample_forward(
        &self,
        count: usize,
        length: usize,
        min_real: usize,
        rng: &mut impl Rng,
    ) -> Option<Vec<Segment>> {
        self.sample_segments(count, length, min_real, rng, i64::from)
    }

    /// Samples segments for the controller: they finish at a real step and are padded on the left. Uniform, with
    /// replacement, over all last steps with at least `min_real` steps of their episode up to and including them;
    /// `None` if there is no such step. Open episodes are included.
    pub(crate) fn sample_backward(
        &self,
        count: usize,
        length: usize,
        min_real: usize,
        rng: &mut impl Rng,
    ) -> Option<Vec<Segment>> {
        // The n-th valid last step is `min_real - 1 + n`.
        let first_start = min_real as i64 - length as i64;
        self.sample_segments(count, length, min_real, rng, |nth| {
            first_start + i64::from(nth)
        })
    }

    /// Adjacent, non-overlapping segments of the steps from position `first` of the replay on, each with at least
    /// `min_real` real steps; padded on the right.
    pub(crate) fn segments_since(
        &self,
        first: usize,
        length: usize,
        min_real: usize,
    ) -> Vec<Segment> {
        let new_steps = |episode: u32| {
            self.episodes.first_step_since(episode, first)..self.episode_steps(episode)
        };
        (0..self.episodes() as u32)
            .flat_map(|episode| {
                let Range { start, end } = new_steps(episode);
                (start..end)
                    .step_by(length)
                    .take_while(move |at| at + min_real <= end)
                    .map(move |at| Segment {
                        episode,
                        start: at as i64,
                        length: length as u32,
                    })
            })
            .collect()
    }

    /// Samples segments in either direction. An episode of `n` steps has `n - min_real + 1` valid segments; `start_of`
    /// maps the index of a valid segment to its start.
    fn sample_segments(
        &self,
        count: usize,
        length: usize,
        min_real: usize,
        rng: &mut impl Rng,
        start_of: impl Fn(u32) -> i64,
    ) -> Option<Vec<Segment>> {
        assert!(
            (1..=length).contains(&min_real),
            "min_real {min_real} is outside 1..={length}"
        );
        let length = u32::try_from(length).expect("a segment has fewer than 2^32 steps");
        // segments_up_to[e]: number of valid segments of the episodes 0..=e.
        let mut total = 0u32;
        let segments_up_to: Vec<u32> = (0..self.episodes() as u32)
            .map(|episode| {
                total += (self.episode_steps(episode) + 1).saturating_sub(min_real) as u32;
                total
            })
            .collect();
        if total == 0 {
            return None;
        }
        let draw = |_| {
            let segment = rng.random_range(0..total);
            let episode = segments_up_to.partition_point(|&up_to| up_to <= segment);
            let before = if episode == 0 {
                0
            } else {
                segments_up_to[episode - 1]
            };
            Segment {
                episode: episode as u32,
                start: start_of(segment - before),
                length,
            }
        };
        Some((0..count).map(draw).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_uniform, replay_of, rng};
    use super::*;
    use std::collections::HashMap;

    const LENGTHS: [usize; 6] = [1, 30, 2, 200, 4, 3];

    fn indices(segment: &Segment, replay: &Replay) -> Vec<Option<u32>> {
        segment
            .steps(replay)
            .map(|step| step.map(|id| id.index))
            .collect()
    }

    /// How often each valid segment was sampled. Panics if another one was.
    fn counts(drawn: &[Segment], valid: &[(u32, i64)]) -> Vec<usize> {
        let mut counts: HashMap<_, usize> = valid.iter().map(|&segment| (segment, 0)).collect();
        for segment in drawn {
            *counts
                .get_mut(&(segment.episode, segment.start))
                .expect("an invalid segment was sampled") += 1;
        }
        counts.into_values().collect()
    }

    #[test]
    fn steps_outside_the_episode_are_padding() {
        let replay = replay_of(&[3]);
        let forward = Segment {
            episode: 0,
            start: 1,
            length: 4,
        };
        assert_eq!(indices(&forward, &replay), [Some(1), Some(2), None, None]);
        let backward = Segment {
            episode: 0,
            start: -2,
            length: 4,
        };
        assert_eq!(indices(&backward, &replay), [None, None, Some(0), Some(1)]);
        let both = Segment {
            episode: 0,
            start: -1,
            length: 5,
        };
        assert_eq!(
            indices(&both, &replay),
            [None, Some(0), Some(1), Some(2), None]
        );
    }

    #[test]
    fn a_segment_does_not_reach_into_adjacent_episodes() {
        let replay = replay_of(&[5, 2, 5]);
        let segment = Segment {
            episode: 1,
            start: -2,
            length: 6,
        };
        let expected = [None, None, Some((1, 0)), Some((1, 1)), None, None];
        let steps = segment
            .steps(&replay)
            .map(|step| step.map(|id| (id.episode, id.index)));
        assert!(steps.eq(expected));
    }

    #[test]
    fn forward_segments_are_uniform_over_all_valid_starts() {
        let replay = replay_of(&LENGTHS);
        let drawn = replay.sample_forward(200_000, 10, 3, &mut rng(3)).unwrap();
        let starts =
            |episode: usize| (0..LENGTHS[episode]).filter(move |s| s + 3 <= LENGTHS[episode]);
        let valid: Vec<_> = (0..6)
            .flat_map(|e| starts(e).map(move |s| (e as u32, s as i64)))
            .collect();
        assert_eq!(valid.len(), 28 + 198 + 2 + 1);
        assert_uniform(&counts(&drawn, &valid));
        for segment in &drawn[..5000] {
            let steps = indices(segment, &replay);
            let real = steps.iter().flatten().count();
            assert!(steps.len() == 10 && real >= 3);
            assert!(
                steps[..real].iter().all(Option::is_some),
                "padding before a real step: {steps:?}"
            );
        }
    }

    #[test]
    fn backward_segments_are_uniform_over_all_valid_ends() {
        let replay = replay_of(&LENGTHS);
        let drawn = replay.sample_backward(200_000, 10, 2, &mut rng(4)).unwrap();
        let ends = |episode: usize| (0..LENGTHS[episode]).filter(|e| e + 1 >= 2);
        let valid: Vec<_> = (0..6)
            .flat_map(|e| ends(e).map(move |end| (e as u32, end as i64 - 9)))
            .collect();
        assert_eq!(valid.len(), 29 + 1 + 199 + 3 + 2);
        assert_uniform(&counts(&drawn, &valid));
        for segment in &drawn[..5000] {
            let steps = indices(segment, &replay);
            let real = steps.iter().flatten().count();
            assert!(steps.len() == 10 && real >= 2);
            assert!(
                steps[10 - real..].iter().all(Option::is_some),
                "padding after a real step: {steps:?}"
            );
        }
    }

    #[test]
    fn every_step_can_be_the_last_if_min_real_is_one() {
        let replay = replay_of(&LENGTHS);
        let drawn = replay.sample_backward(200_000, 20, 1, &mut rng(5)).unwrap();
        let valid: Vec<_> = (0..6)
            .flat_map(|e| (0..LENGTHS[e]).map(move |end| (e as u32, end as i64 - 19)))
            .collect();
        assert_uniform(&counts(&drawn, &valid));
    }

    #[test]
    fn sampling_without_a_valid_segment_is_none() {
        let replay = replay_of(&[2, 3, 1]);
        assert!(replay.sample_forward(1, 8, 4, &mut rng(0)).is_none());
        assert!(replay.sample_backward(1, 8, 4, &mut rng(0)).is_none());
        assert!(replay.sample_forward(1, 8, 3, &mut rng(0)).is_some());
        assert!(
            Replay::new(3, 2)
                .sample_forward(1, 8, 1, &mut rng(0))
                .is_none()
        );
    }

    #[test]
    fn segments_since_a_step_cover_every_later_step_once() {
        let replay = replay_of(&[5, 7, 2, 4]);
        let segments = |first, min_real| -> Vec<(u32, i64)> {
            let segments = replay.segments_since(first, 3, min_real);
            segments.iter().map(|w| (w.episode, w.start)).collect()
        };
        // Position 7 is the third step of the second episode.
        assert_eq!(segments(7, 1), [(1, 2), (1, 5), (2, 0), (3, 0), (3, 3)]);
        // Segments with too few real steps are left out.
        assert_eq!(segments(7, 2), [(1, 2), (1, 5), (2, 0), (3, 0)]);
        assert_eq!(segments(7, 3), [(1, 2), (3, 0)]);
        assert_eq!(segments(17, 1), [(3, 3)]);
        assert_eq!(segments(18, 1), [], "no new steps");
    }

    #[test]
    fn equal_seeds_sample_equal_segments() {
        let replay = replay_of(&LENGTHS);
        let draw = |seed| replay.sample_forward(64, 10, 3, &mut rng(seed)).unwrap();
        assert_eq!(draw(9), draw(9));
        assert_ne!(draw(9), draw(10));
    }
}
