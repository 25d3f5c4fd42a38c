//! Performance profiles: the fraction of runs above a score.

use crate::matrix::Matrix;
use crate::resample::Resample;

/// The fraction of runs with a score above each threshold (Figure 8).
pub fn profile(matrix: &Matrix, thresholds: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; thresholds.len()];
    Profile::new(matrix, thresholds).of_resample(&Resample::all(matrix), &mut shares);
    shares
}

/// The thresholds located in the sorted scores of a matrix, once for all resamples.
pub(crate) struct Profile {
    /// The number of scores at or below each threshold.
    not_above: Vec<usize>,
}

impl Profile {
    pub fn new(matrix: &Matrix, thresholds: &[f64]) -> Self {
        let place = |threshold: &f64| matrix.sorted().partition_point(|score| score <= threshold);
        Self {
            not_above: thresholds.iter().map(place).collect(),
        }
    }

    pub fn of_resample(&self, resample: &Resample, shares: &mut [f64]) {
        for (share, place) in shares.iter_mut().zip(&self.not_above) {
            // Not `sum`, which is -0.0 for an empty slice.
            let above = resample.weights[*place..]
                .iter()
                .fold(0.0, |sum, w| sum + w);
            *share = above / resample.total_weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    #[test]
    fn fractions_match_hand_computed_values() {
        let matrix = matrix::of([&[0.0, 0.5], &[1.0, 2.0]]);
        let shares = profile(&matrix, &[-1.0, 0.0, 0.5, 0.6, 2.0]);
        assert_eq!(shares, [1.0, 0.75, 0.5, 0.5, 0.0]);
        assert!(shares[4].is_sign_positive());
    }

    #[test]
    fn thresholds_may_be_in_any_order() {
        let matrix = matrix::of([&[0.0, 0.5], &[1.0, 2.0]]);
        assert_eq!(profile(&matrix, &[1.5, 0.0]), [0.25, 0.75]);
        assert!(profile(&matrix, &[]).is_empty());
    }

    #[test]
    fn games_with_unequal_runs_have_equal_weight() {
        let matrix = matrix::of([&[0.0, 0.1, 0.2, 3.0], &[2.0]]);
        let shares = profile(&matrix, &[1.0]);
        assert!((shares[0] - (0.25 + 1.0) / 2.0).abs() < 1e-12);
    }
}
