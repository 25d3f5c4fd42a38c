//! Whole matrices in one number.

use crate::matrix::Matrix;
use crate::quantile::quantile;
use crate::resample::Resample;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Of the games' means.
    Mean,
    /// Of the games' means.
    Median,
    /// Interquartile mean: of what is left of all runs without the lowest and the highest quarter, each rounded down to
    /// whole runs.
    Iqm,
    /// How far below human the runs are on average, where runs above human count as human. Lower is better.
    OptimalityGap,
}

impl Metric {
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::Iqm, Self::OptimalityGap];

    pub fn of(self, matrix: &Matrix) -> f64 {
        self.of_resample(&mut Resample::all(matrix))
    }

    /// Reorders the resample's means.
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

/// How many games have a mean above human. A mean that is human up to rounding is not above.
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
    fn by_hand() {
        // Means 0.25, 1.0, 3.0. Sorted: 0, 0.5, 0.5, 1.5, 2, 4; a quarter of six is one run: (0.5 + 0.5 + 1.5 + 2) / 4.
        // Gaps: 1, 0.5, 0.5, 0, 0, 0.
        let matrix = matrix::of([&[0.0, 0.5], &[1.5, 0.5], &[2.0, 4.0]]);
        assert_eq!(metrics(&matrix), [4.25 / 3.0, 1.0, 1.125, 2.0 / 6.0]);
        assert_eq!(superhuman(&matrix), 1);
    }

    #[test]
    fn one_game_of_one_run() {
        assert_eq!(metrics(&matrix::of([&[0.25]])), [0.25, 0.25, 0.25, 0.75]);
    }

    #[test]
    fn one_run_a_game() {
        // A quarter of four is one.
        let matrix = matrix::of([&[-1.0], &[0.0], &[0.5], &[8.0]]);
        assert_eq!(metrics(&matrix), [1.875, 0.25, 0.25, 3.5 / 4.0]);
    }

    #[test]
    fn with_unequal_runs_every_game_weighs_the_same() {
        // 4 runs: those of the first game weigh 2/3, the other 2; a quarter is 1.
        // Sorted: 2/3 of 0, 2/3 of 0.3, 2/3 of 0.6, 2 of 2. From 1 to 3: 1/3 of 0.3, 2/3 of 0.6, 1 of 2.
        let matrix = matrix::of([&[0.6, 0.0, 0.3], &[2.0]]);
        let [mean, median, iqm, gap] = metrics(&matrix);
        assert!((mean - (0.3 + 2.0) / 2.0).abs() < 1e-12);
        assert!((median - 1.15).abs() < 1e-12);
        assert!((iqm - (0.1 + 0.4 + 2.0) / 2.0).abs() < 1e-12);
        assert!((gap - (0.7 + 0.0) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn repeating_all_runs_of_a_game_changes_no_mean() {
        let once = metrics(&matrix::of([&[0.1, 0.7], &[1.5, 0.2]]));
        let twice = metrics(&matrix::of([&[0.1, 0.7, 0.1, 0.7], &[1.5, 0.2]]));
        for metric in [0, 1, 3] {
            assert!((once[metric] - twice[metric]).abs() < 1e-12);
        }
    }

    #[test]
    fn human_is_not_superhuman() {
        let above = 1.0 + 1e-6;
        assert_eq!(
            superhuman(&matrix::of([&[1.0, 1.0], &[0.9, 1.1], &[above]])),
            1
        );
    }
}
