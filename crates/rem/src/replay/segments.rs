//! Windows over episodes: padded on the right for the world model, on the left for the controller.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::{Replay, StepId};

/// A window of `length` places over one episode; places outside the episode are padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub episode: u32,
    /// The step at the first place; negative when the window begins with padding.
    pub start: i64,
    pub length: u32,
}

impl Segment {
    /// Exactly `length` items, `None` for padding. Steps pushed later do not show up in an iterator
    /// made before.
    pub fn steps(&self, replay: &Replay) -> impl ExactSizeIterator<Item = Option<StepId>> + use<> {
        let Segment {
            episode,
            start,
            length,
        } = *self;
        let episode_steps = replay.episode_steps(episode) as i64;
        (0..length).map(move |place| {
            let index = start + i64::from(place);
            (0..episode_steps).contains(&index).then_some(StepId {
                episode,
                index: index as u32,
            })
        })
    }
}

impl Replay {
    /// For the world model: windows that begin at a real step and are padded on the right. Uniform,
    /// with replacement, over all starts of all episodes with at least `min_real` steps from there
    /// on; `None` if there is no such start. The open episode takes part like any other.
    pub fn sample_forward(
        &self,
        count: usize,
        length: usize,
        min_real: usize,
        rng: &mut impl Rng,
    ) -> Option<Vec<Segment>> {
        self.sample_segments(count, length, min_real, rng, i64::from)
    }

    /// For the controller: windows that finish at a real step and are padded on the left. Uniform,
    /// with replacement, over all last steps with at least `min_real` steps up to and including
    /// them; `None` if there is no such step. The open episode takes part like any other.
    pub fn sample_backward(
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

    /// Windows side by side over the steps from place `first` on (places count through all episodes): each begins at such
    /// a step and has at least `min_real` of its episode; padded on the right.
    pub fn windows_since(&self, first: usize, length: usize, min_real: usize) -> Vec<Segment> {
        let fresh = |episode: u32| {
            let start = self.episode_starts[episode as usize] as usize;
            first.saturating_sub(start)..self.episode_steps(episode)
        };
        (0..self.episodes() as u32)
            .flat_map(|episode| {
                let Range { start, end } = fresh(episode);
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

    /// Both directions have `n - min_real + 1` valid windows in an episode of `n` steps;
    /// `start_of` says where the n-th of them starts.
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
        let length = u32::try_from(length).expect("a window is shorter than 2^32");
        // windows_up_to[e]: valid windows of the episodes 0..=e.
        let mut windows = 0u32;
        let windows_up_to: Vec<u32> = (0..self.episodes() as u32)
            .map(|episode| {
                windows += (self.episode_steps(episode) + 1).saturating_sub(min_real) as u32;
                windows
            })
            .collect();
        if windows == 0 {
            return None;
        }
        let draw = |_| {
            let window = rng.random_range(0..windows);
            let episode = windows_up_to.partition_point(|&up_to| up_to <= window);
            let before = if episode == 0 {
                0
            } else {
                windows_up_to[episode - 1]
            };
            Segment {
                episode: episode as u32,
                start: start_of(window - before),
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

    /// How often each window was drawn, and that no window outside `valid` was.
    fn counts(drawn: &[Segment], valid: &[(u32, i64)]) -> Vec<usize> {
        let mut counts: HashMap<_, usize> = valid.iter().map(|&window| (window, 0)).collect();
        for segment in drawn {
            *counts
                .get_mut(&(segment.episode, segment.start))
                .expect("an invalid window was drawn") += 1;
        }
        counts.into_values().collect()
    }

    #[test]
    fn padding_stands_on_the_side_of_its_direction() {
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
    fn a_window_does_not_reach_into_the_neighbouring_episodes() {
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
    fn forward_windows_are_uniform_over_all_valid_starts() {
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
            let places = indices(segment, &replay);
            let real = places.iter().flatten().count();
            assert!(places.len() == 10 && real >= 3);
            assert!(
                places[..real].iter().all(Option::is_some),
                "padding before a real step: {places:?}"
            );
        }
    }

    #[test]
    fn backward_windows_are_uniform_over_all_valid_ends() {
        let replay = replay_of(&LENGTHS);
        let drawn = replay.sample_backward(200_000, 10, 2, &mut rng(4)).unwrap();
        let ends = |episode: usize| (0..LENGTHS[episode]).filter(|e| e + 1 >= 2);
        let valid: Vec<_> = (0..6)
            .flat_map(|e| ends(e).map(move |end| (e as u32, end as i64 - 9)))
            .collect();
        assert_eq!(valid.len(), 29 + 1 + 199 + 3 + 2);
        assert_uniform(&counts(&drawn, &valid));
        for segment in &drawn[..5000] {
            let places = indices(segment, &replay);
            let real = places.iter().flatten().count();
            assert!(places.len() == 10 && real >= 2);
            assert!(
                places[10 - real..].iter().all(Option::is_some),
                "padding after a real step: {places:?}"
            );
        }
    }

    #[test]
    fn every_step_can_be_an_end_when_one_real_step_is_enough() {
        let replay = replay_of(&LENGTHS);
        let drawn = replay.sample_backward(200_000, 20, 1, &mut rng(5)).unwrap();
        let valid: Vec<_> = (0..6)
            .flat_map(|e| (0..LENGTHS[e]).map(move |end| (e as u32, end as i64 - 19)))
            .collect();
        assert_uniform(&counts(&drawn, &valid));
    }

    #[test]
    fn no_valid_window_is_none() {
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
    fn windows_since_a_step_cover_what_came_after_it_once() {
        let replay = replay_of(&[5, 7, 2, 4]);
        let windows = |first, min_real| -> Vec<(u32, i64)> {
            let windows = replay.windows_since(first, 3, min_real);
            windows.iter().map(|w| (w.episode, w.start)).collect()
        };
        // From the third step of the second episode on.
        assert_eq!(windows(7, 1), [(1, 2), (1, 5), (2, 0), (3, 0), (3, 3)]);
        // What is too short is left out.
        assert_eq!(windows(7, 2), [(1, 2), (1, 5), (2, 0), (3, 0)]);
        assert_eq!(windows(7, 3), [(1, 2), (3, 0)]);
        assert_eq!(windows(17, 1), [(3, 3)]);
        assert_eq!(windows(18, 1), [], "nothing is new");
    }

    #[test]
    fn the_same_generator_draws_the_same_windows() {
        let replay = replay_of(&LENGTHS);
        let draw = |seed| replay.sample_forward(64, 10, 3, &mut rng(seed)).unwrap();
        assert_eq!(draw(9), draw(9));
        assert_ne!(draw(9), draw(10));
    }
}
