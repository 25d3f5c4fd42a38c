//! Confidence intervals by the stratified bootstrap.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::improvement::{Comparisons, probability_of_improvement};
use crate::matrix::Matrix;
use crate::metrics::Metric;
use crate::profile::{Profile, profile};
use crate::quantile::quantile;
use crate::resample::Resample;

/// Number of replicates per random number generator.
const BLOCK: usize = 256;

/// The stratified percentile bootstrap: each replicate draws runs within each game, with replacement. Games are not
/// resampled: intervals describe the variance between runs, not between games.
///
/// The same seed gives the same intervals for any number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Number of replicates.
    pub replicates: usize,
    /// Seed of the replicates.
    pub seed: u64,
    /// Confidence level of intervals: 0.95 for 95%.
    pub level: f64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            replicates: 50_000,
            seed: 0,
            level: 0.95,
        }
    }
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A statistic with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The statistic of all runs.
    pub value: f64,
    /// `None` if every game has only one run: the variance is unknown.
    pub interval: Option<Interval>,
}

impl Bootstrap {
    /// The aggregate metrics with their intervals, in the order of [`Metric::ALL`].
    pub fn metrics(&self, matrix: &Matrix) -> [Estimate; 4] {
        let intervals = matrix.has_repeats().then(|| {
            let draw = |resample: &mut Resample, rng: &mut ChaCha8Rng, replicate: &mut [f64]| {
                resample.draw(rng);
                for (metric, value) in Metric::ALL.into_iter().zip(replicate) {
                    *value = metric.of_resample(resample);
                }
            };
            self.intervals(Metric::ALL.len(), || Resample::all(matrix), draw)
        });
        std::array::from_fn(|index| Estimate {
            value: Metric::ALL[index].of(matrix),
            interval: intervals.as_ref().map(|intervals| intervals[index]),
        })
    }

    /// The performance profile with pointwise intervals, one estimate per threshold.
    pub fn profile(&self, matrix: &Matrix, thresholds: &[f64]) -> Vec<Estimate> {
        let intervals = matrix.has_repeats().then(|| {
            let places = Profile::new(matrix, thresholds);
            let draw = |resample: &mut Resample, rng: &mut ChaCha8Rng, replicate: &mut [f64]| {
                resample.draw(rng);
                places.of_resample(resample, replicate);
            };
            self.intervals(thresholds.len(), || Resample::all(matrix), draw)
        });
        let values = profile(matrix, thresholds).into_iter().enumerate();
        let estimate = |(index, value)| Estimate {
            value,
            interval: intervals.as_ref().map(|intervals| intervals[index]),
        };
        values.map(estimate).collect()
    }

    /// The probability that `x` improves on `y`, with its interval. Both are resampled.
    ///
    /// # Panics
    ///
    /// If the two do not have the same games.
    pub fn probability_of_improvement(&self, x: &Matrix, y: &Matrix) -> Estimate {
        let repeats = x.has_repeats() && y.has_repeats();
        let interval = repeats.then(|| {
            let comparisons = Comparisons::new(x, y);
            let draw = |opponents: &mut Vec<usize>, rng: &mut ChaCha8Rng, replicate: &mut [f64]| {
                replicate[0] = comparisons.average(opponents, |_, runs| rng.random_range(0..runs));
            };
            self.intervals(1, Vec::new, draw)[0]
        });
        Estimate {
            value: probability_of_improvement(x, y),
            interval,
        }
    }

    /// The mean of raw scores of one game, one per run, with its interval. The game need not be of the benchmark.
    ///
    /// # Panics
    ///
    /// Without scores.
    pub fn mean(&self, scores: &[f64]) -> Estimate {
        assert!(!scores.is_empty(), "a mean needs scores");
        let draw = |_: &mut (), rng: &mut ChaCha8Rng, replicate: &mut [f64]| {
            replicate[0] = drawn_mean(scores, rng);
        };
        Estimate {
            value: mean(scores),
            interval: (scores.len() > 1).then(|| self.intervals(1, || (), draw)[0]),
        }
    }

    /// The difference of the means of `x` and `y`, raw scores of one game, with its interval. Both are resampled.
    ///
    /// # Panics
    ///
    /// If one of the two has no scores.
    pub fn difference(&self, x: &[f64], y: &[f64]) -> Estimate {
        assert!(!x.is_empty() && !y.is_empty(), "a mean needs scores");
        let draw = |_: &mut (), rng: &mut ChaCha8Rng, replicate: &mut [f64]| {
            replicate[0] = drawn_mean(x, rng) - drawn_mean(y, rng);
        };
        let repeats = x.len() > 1 && y.len() > 1;
        Estimate {
            value: mean(x) - mean(y),
            interval: repeats.then(|| self.intervals(1, || (), draw)[0]),
        }
    }

    /// The intervals of `statistics` statistics. `draw` computes them for one replicate.
    fn intervals<Scratch>(
        &self,
        statistics: usize,
        scratch: impl Fn() -> Scratch + Sync,
        draw: impl Fn(&mut Scratch, &mut ChaCha8Rng, &mut [f64]) + Sync,
    ) -> Vec<Interval> {
        assert!(self.replicates > 0, "a bootstrap needs replicates");
        assert!(
            (0.0..1.0).contains(&self.level),
            "the confidence level must be in [0, 1)"
        );
        if statistics == 0 {
            return Vec::new();
        }
        // [replicates, statistics]
        let mut values = vec![0.0; self.replicates * statistics];
        let blocks = values.par_chunks_mut(BLOCK * statistics).enumerate();
        blocks.for_each(|(block, replicates)| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(block as u64);
            let mut scratch = scratch();
            for replicate in replicates.chunks_exact_mut(statistics) {
                draw(&mut scratch, &mut rng, replicate);
            }
        });
        let interval = |statistic| {
            let replicates = values.iter().skip(statistic).step_by(statistics);
            self.interval(&mut replicates.copied().collect::<Vec<_>>())
        };
        (0..statistics).into_par_iter().map(interval).collect()
    }

    fn interval(&self, replicates: &mut [f64]) -> Interval {
        let outside = (1.0 - self.level) / 2.0;
        Interval {
            low: quantile(replicates, outside),
            high: quantile(replicates, 1.0 - outside),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of as many values, drawn with replacement.
fn drawn_mean(values: &[f64], rng: &mut ChaCha8Rng) -> f64 {
    let draw = |_| values[rng.random_range(0..values.len())];
    (0..values.len()).map(draw).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    const SMALL: Bootstrap = Bootstrap {
        replicates: 2_000,
        seed: 7,
        level: 0.95,
    };

    fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(work)
    }

    #[test]
    fn intervals_do_not_depend_on_threads() {
        let x = matrix::of([&[0.1, 0.9, 0.4], &[2.0, 1.0], &[0.3]]);
        let y = matrix::of([&[0.2, 0.8], &[1.5, 1.7, 0.1], &[0.2]]);
        let all = || {
            (
                SMALL.metrics(&x),
                SMALL.profile(&x, &[0.25, 0.5, 1.5]),
                SMALL.probability_of_improvement(&x, &y),
            )
        };
        assert_eq!(on_threads(1, all), on_threads(2, all));
    }

    #[test]
    fn intervals_depend_on_the_seed() {
        let matrix = matrix::of([&[0.1, 0.9, 0.4, 0.35, 0.77], &[2.0, 1.0, 1.3, 1.9, 0.2]]);
        let other = Bootstrap { seed: 8, ..SMALL };
        assert_ne!(SMALL.metrics(&matrix), other.metrics(&matrix));
    }

    #[test]
    fn more_replicates_only_widen_the_extremes() {
        // The replicates of a block do not depend on how many blocks follow.
        let matrix = matrix::of([&[0.1, 0.9, 0.4, 0.35, 0.77]]);
        let extremes = |replicates| {
            let bootstrap = Bootstrap {
                replicates,
                seed: 3,
                level: 1.0 - f64::EPSILON,
            };
            bootstrap.metrics(&matrix)[0].interval.unwrap()
        };
        let (few, many) = (extremes(300), extremes(3_000));
        assert!(many.low <= few.low + 1e-9 && many.high >= few.high - 1e-9);
    }

    #[test]
    fn the_interval_of_two_runs_is_exact() {
        // Means 0 (1/4), 0.5 (1/2), 1 (1/4): the 10% and 90% quantiles are 0 and 1, the 30% and 70% quantiles 0.5.
        let matrix = matrix::of([&[0.0, 1.0]]);
        let interval = |level| {
            let bootstrap = Bootstrap { level, ..SMALL };
            bootstrap.metrics(&matrix)[0].interval.unwrap()
        };
        assert_eq!(
            interval(0.8),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
        assert_eq!(
            interval(0.4),
            Interval {
                low: 0.5,
                high: 0.5
            }
        );
    }

    /// As above: means 0 (1/4), 0.5 (1/2), 1 (1/4). Less the mean of 1 and 1: lower by 1.
    #[test]
    fn the_interval_of_a_mean_and_of_a_difference_are_exact() {
        let bootstrap = Bootstrap {
            level: 0.8,
            ..SMALL
        };
        let of = |value, low, high| Estimate {
            value,
            interval: Some(Interval { low, high }),
        };
        assert_eq!(bootstrap.mean(&[0.0, 1.0]), of(0.5, 0.0, 1.0));
        let difference = bootstrap.difference(&[0.0, 1.0], &[1.0, 1.0]);
        assert_eq!(difference, of(-0.5, -1.0, 0.0));
        assert_eq!(bootstrap.mean(&[3.0]).interval, None);
        assert_eq!(bootstrap.difference(&[3.0], &[1.0, 2.0]).interval, None);
    }

    #[test]
    fn single_runs_have_values_without_intervals() {
        let x = matrix::of([&[0.1], &[2.0]]);
        assert!(SMALL.metrics(&x).iter().all(|e| e.interval.is_none()));
        assert_eq!(SMALL.profile(&x, &[1.0])[0].value, 0.5);
        assert_eq!(SMALL.profile(&x, &[1.0])[0].interval, None);
        let against_itself = SMALL.probability_of_improvement(&x, &x);
        assert_eq!((against_itself.value, against_itself.interval), (0.5, None));
        let y = matrix::of([&[0.1, 0.2], &[2.0, 1.0]]);
        assert_eq!(SMALL.probability_of_improvement(&x, &y).interval, None);
        assert_eq!(SMALL.probability_of_improvement(&y, &x).interval, None);
    }

    #[test]
    fn equal_runs_have_intervals_of_zero_width() {
        let matrix = matrix::of([&[0.5, 0.5, 0.5], &[1.5, 1.5]]);
        for Estimate { value, interval } in SMALL.metrics(&matrix) {
            let Interval { low, high } = interval.unwrap();
            assert!((low - value).abs() < 1e-12 && (high - value).abs() < 1e-12);
        }
    }

    #[test]
    fn a_profile_of_no_thresholds_is_empty() {
        assert_eq!(SMALL.profile(&matrix::of([&[0.0, 1.0]]), &[]), []);
    }
}
