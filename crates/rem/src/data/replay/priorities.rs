//! Prioritized sampling of segments for the world model: those whose last loss was high (Simulus).

use rand::{Rng, RngExt};

use super::{Replay, Segment, StepId};

/// The loss of segments that have not been sampled yet, above any loss of a trained world model.
const NEW_SEGMENT_LOSS: f32 = 10.0;

/// The last loss of each segment, by the position of its first step in the replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SegmentLosses {
    /// As long as the replay was when the last loss was recorded.
    losses: Vec<f32>,
}

impl SegmentLosses {
    /// The losses of a replay that has `steps` steps, from [`Self::as_slice`].
    pub(crate) fn restored(losses: Vec<f32>, steps: usize) -> Result<Self, String> {
        match losses.len() <= steps {
            true => Ok(Self { losses }),
            false => Err(format!("losses of {} segments of {steps}", losses.len())),
        }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        &self.losses
    }

    /// Records the losses of segments from [`Replay::sample_forward`] or [`Replay::sample_prioritized`].
    pub(crate) fn record(&mut self, replay: &Replay, segments: &[Segment], losses: &[f32]) {
        assert_eq!(segments.len(), losses.len());
        self.losses.resize(replay.steps(), NEW_SEGMENT_LOSS);
        for (segment, loss) in segments.iter().zip(losses) {
            let first = StepId {
                episode: segment.episode,
                index: segment.start as u32,
            };
            self.losses[replay.position(first)] = *loss;
        }
    }

    fn at(&self, position: usize) -> f32 {
        self.losses
            .get(position)
            .copied()
            .unwrap_or(NEW_SEGMENT_LOSS)
    }
}

impl Replay {
    /// As [`Self::sample_forward`], with probabilities that are the softmax of the segments' last losses.
    ///
    /// # Panics
    /// If `min_real` is outside `1..=length`.
    pub(crate) fn sample_prioritized(
        &self,
        count: usize,
        length: usize,
        min_real: usize,
        losses: &SegmentLosses,
        rng: &mut impl Rng,
    ) -> Option<Vec<Segment>> {
        assert!(
            (1..=length).contains(&min_real),
            "min_real {min_real} is outside 1..={length}"
        );
        let starts: Vec<StepId> = (0..self.episodes() as u32)
            .flat_map(|episode| {
                let valid = (self.episode_steps(episode) + 1).saturating_sub(min_real);
                (0..valid as u32).map(move |index| StepId { episode, index })
            })
            .collect();
        let last_losses: Vec<f32> = (starts.iter())
            .map(|start| losses.at(self.position(*start)))
            .collect();
        let highest = last_losses.iter().copied().reduce(f32::max)?;
        // cumulative[i]: sum of the weights of the starts 0..=i.
        let mut total = 0.0;
        let cumulative: Vec<f64> = (last_losses.iter())
            .map(|loss| {
                total += f64::from(loss - highest).exp();
                total
            })
            .collect();
        let draw = |_| {
            let point = rng.random::<f64>() * total;
            let drawn = cumulative.partition_point(|up_to| *up_to <= point);
            let first = starts[drawn.min(starts.len() - 1)];
            Segment {
                episode: first.episode,
                start: i64::from(first.index),
                length: length as u32,
            }
        };
        Some((0..count).map(draw).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_uniform, replay_of, rng};
    use super::*;

    fn segment(episode: u32, start: i64) -> Segment {
        Segment {
            episode,
            start,
            length: 4,
        }
    }

    /// How often each segment of `starts` was drawn.
    fn counts(drawn: &[Segment], starts: &[(u32, i64)]) -> Vec<usize> {
        let at = |(episode, start): &(u32, i64)| segment(*episode, *start);
        let counts: Vec<usize> = (starts.iter())
            .map(|start| drawn.iter().filter(|s| **s == at(start)).count())
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), drawn.len(), "other segments");
        counts
    }

    /// ```python
    /// import numpy as np
    /// weights = np.exp([0.5, 2.0, 1.0, -1.0])
    /// print(weights / weights.sum())
    /// ```
    #[test]
    fn probabilities_are_the_softmax_of_the_last_losses() {
        // Valid starts with two real steps: 0 of 2 steps, 0 and 1 of 3 steps, 0 of 2 steps.
        let replay = replay_of(&[2, 3, 2]);
        let starts = [(0, 0), (1, 0), (1, 1), (2, 0)];
        let segments = starts.map(|(episode, start)| segment(episode, start));
        let mut losses = SegmentLosses::default();
        losses.record(&replay, &segments, &[7.0; 4]);
        losses.record(&replay, &segments, &[0.5, 2.0, 1.0, -1.0]);
        let n = 200_000;
        let drawn = replay.sample_prioritized(n, 4, 2, &losses, &mut rng(1));
        let counts = counts(&drawn.unwrap(), &starts);
        let expected = [0.13598892, 0.60946004, 0.22420782, 0.03034323];
        for (count, expected) in counts.into_iter().zip(expected) {
            let share = count as f64 / n as f64;
            assert!(
                (share - expected).abs() < 0.005,
                "{share} is not {expected}"
            );
        }
    }

    #[test]
    fn new_segments_are_drawn_before_known_ones() {
        let mut replay = replay_of(&[3, 3]);
        let mut losses = SegmentLosses::default();
        let all: Vec<Segment> = (0..2)
            .flat_map(|e| (0..3).map(move |s| segment(e, s)))
            .collect();
        let draw = |replay: &Replay, losses: &SegmentLosses| {
            let drawn = replay.sample_prioritized(10_000, 4, 1, losses, &mut rng(2));
            drawn.unwrap()
        };
        // All are new.
        let starts: Vec<_> = all.iter().map(|s| (s.episode, s.start)).collect();
        assert_uniform(&counts(&draw(&replay, &losses), &starts));
        losses.record(&replay, &all, &[1.0; 6]);
        assert_uniform(&counts(&draw(&replay, &losses), &starts));
        // The last episode is open: a step of it is a new segment.
        replay.push(&[0, 0, 0], 0, 0.0, crate::env::Outcome::Running);
        let drawn = draw(&replay, &losses);
        let new = drawn.iter().filter(|s| **s == segment(1, 3)).count();
        // exp(10) / (exp(10) + 6 exp(1)) = 0.99926
        assert!((9_960..10_000).contains(&new), "{new}");
    }

    #[test]
    fn equal_seeds_and_restored_losses_draw_equal_segments() {
        let replay = replay_of(&[30, 20]);
        let mut losses = SegmentLosses::default();
        let known: Vec<Segment> = (0..20).map(|s| segment(0, s)).collect();
        let values: Vec<f32> = (0..20).map(|s| s as f32 / 7.0).collect();
        losses.record(&replay, &known, &values);
        let restored = SegmentLosses::restored(losses.as_slice().to_vec(), 50).unwrap();
        assert_eq!(restored, losses);
        assert!(SegmentLosses::restored(losses.as_slice().to_vec(), 49).is_err());
        let draw = |losses, seed| replay.sample_prioritized(64, 4, 3, losses, &mut rng(seed));
        assert_eq!(draw(&losses, 3), draw(&restored, 3));
        assert_ne!(draw(&losses, 3), draw(&losses, 4));
        let none = replay_of(&[2]).sample_prioritized(4, 4, 3, &losses, &mut rng(1));
        assert_eq!(none, None);
    }
}
