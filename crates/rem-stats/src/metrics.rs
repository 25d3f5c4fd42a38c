//! Aggregate metrics.

use crate::matrix::Matrix;
use crate::quantile::quantile;
use crate::resample::Resample;

/// An aggregate metric of human-normalized scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Mean over games of the mean over runs.
    Mean,
    /// Median over games of the mean over runs.
    Median,
    /// Interquartile mean: the mean of all runs without the lowest and highest quarter, each rounded down to whole runs
    /// (Table 1).
    Iqm,
    /// Mean amount by which runs fall short of the human score; runs above human count as human. Lower is better.
    OptimalityGap,
}

impl Metric {
    /// All metrics, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::Iqm, Self::OptimalityGap];

    /// The metric of all runs of a matrix.
    pub fn of(self, matrix: &Matrix) -> f64 {
        self.of_resample(&mut Resample::all(matrix))
    }

    /// The metric of a resample. Reorders its means.
    pub(crate) fn of_resample(self, resample: &mut Resample) -> f64 {
        match self {
            Self::Mean => resample.means.iter().sum::<f64>() / resample.means.len() as f64,
            Self::Median => quantile(&mut resample.means, 0.5),
            Self::Iqm => interquartile_mean(resample),
            Self::OptimalityGap => optimality_gap(resample),
        }
    }
}

fn interquartile_mean(resample: &Resample) -> f64 {
    let total = resample.total_weight();
    let low = (total / 4.0).floor();
    let high = total - low;
    let (mut sum, mut below) = (0.0, 0.0);
    for (score, weight) in resample.weighted() {
        let upto = below + weight;
        let kept = (upto.min(high) - below.max(low)).max(0.0);
        sum += kept * score;
        below = upto;
    }
    sum / (high - low)
}

fn optimality_gap(resample: &Resample) -> f64 {
    let gaps = resample
        .weighted()
        .map(|(score, weight)| weight * (1.0 - score.min(1.0)));
    gaps.sum::<f64>() / resample.total_weight()
}

/// The number of games whose mean over runs is above human by more than a rounding error.
pub fn superhuman(matrix: &Matrix) -> usize {
    const ROUNDING: f64 = 1e-9;
    let means = Resample::all(matrix).means;
    means.iter().filter(|mean| **mean > 1.0 + ROUNDING).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    fn metrics(matrix: &Matrix) -> [f64; 4] {
        Metric::ALL.map(|metric| metric.of(matrix))
    }

    #[test]
    fn metrics_match_hand_computed_values() {
        // Means 0.25, 1.0, 3.0. Sorted: 0, 0.5, 0.5, 1.5, 2, 4; a quarter of six is one run: (0.5 + 0.5 + 1.5 + 2) / 4.
        // Gaps: 1, 0.5, 0.5, 0, 0, 0.
        let matrix = matrix::of([&[0.0, 0.5], &[1.5, 0.5], &[2.0, 4.0]]);
        assert_eq!(metrics(&matrix), [4.25 / 3.0, 1.0, 1.125, 2.0 / 6.0]);
        assert_eq!(superhuman(&matrix), 1);
    }

    #[test]
    fn a_single_run_is_its_own_mean() {
        assert_eq!(metrics(&matrix::of([&[0.25]])), [0.25, 0.25, 0.25, 0.75]);
    }

    #[test]
    fn metrics_of_one_run_per_game() {
        // A quarter of four is one.
        let matrix = matrix::of([&[-1.0], &[0.0], &[0.5], &[8.0]]);
        assert_eq!(metrics(&matrix), [1.875, 0.25, 0.25, 3.5 / 4.0]);
    }

    #[test]
    fn games_with_unequal_runs_have_equal_weight() {
        // 4 runs: weight 2/3 each in the first game, 2 in the second; a quarter of the total weight is 1.
        // Sorted: 2/3 of 0, 2/3 of 0.3, 2/3 of 0.6, 2 of 2. From 1 to 3: 1/3 of 0.3, 2/3 of 0.6, 1 of 2.
        let matrix = matrix::of([&[0.6, 0.0, 0.3], &[2.0]]);
        let [mean, median, iqm, gap] = metrics(&matrix);
        assert!((mean - (0.3 + 2.0) / 2.0).abs() < 1e-12);
        assert!((median - 1.15).abs() < 1e-12);
        assert!((iqm - (0.1 + 0.4 + 2.0) / 2.0).abs() < 1e-12);
        assert!((gap - (0.7 + 0.0) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn repeating_all_runs_of_a_game_does_not_change_means() {
        let once = metrics(&matrix::of([&[0.1, 0.7], &[1.5, 0.2]]));
        let twice = metrics(&matrix::of([&[0.1, 0.7, 0.1, 0.7], &[1.5, 0.2]]));
        for metric in [0, 1, 3] {
            assert!((once[metric] - twice[metric]).abs() < 1e-12);
        }
    }

    #[test]
    fn a_human_score_is_not_superhuman() {
        let above = 1.0 + 1e-6;
        assert_eq!(
            superhuman(&matrix::of([&[1.0, 1.0], &[0.9, 1.1], &[above]])),
            1
        );
    }
}
