//! Descriptive statistics of the runs of one game.

use crate::quantile::quantile;

/// Descriptive statistics of raw or normalized scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The scores, from the lowest to the highest.
    pub sorted: Vec<f64>,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1 in the denominator); `None` for a single run.
    pub standard_deviation: Option<f64>,
    /// First quartile.
    pub lower_quartile: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub upper_quartile: f64,
}

impl Distribution {
    /// The statistics of `scores`.
    ///
    /// # Panics
    ///
    /// If `scores` is empty.
    pub fn of(scores: &[f64]) -> Self {
        assert!(!scores.is_empty(), "a distribution needs scores");
        let mut sorted = scores.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
        Self {
            mean,
            standard_deviation: (scores.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            lower_quartile: quantile(&mut sorted, 0.25),
            median: quantile(&mut sorted, 0.5),
            upper_quartile: quantile(&mut sorted, 0.75),
            sorted,
        }
    }

    /// The lowest score.
    pub fn lowest(&self) -> f64 {
        self.sorted[0]
    }

    /// The highest score.
    pub fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_match_hand_computed_values() {
        let five = Distribution::of(&[4.0, 0.0, 2.0, 8.0, 6.0]);
        assert_eq!(five.sorted, [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!((five.lowest(), five.highest()), (0.0, 8.0));
        assert_eq!((five.mean, five.median), (4.0, 4.0));
        assert_eq!((five.lower_quartile, five.upper_quartile), (2.0, 6.0));
        // Sum of squares 16 + 4 + 0 + 4 + 16 = 40, divided by 4.
        assert_eq!(five.standard_deviation, Some(10f64.sqrt()));
    }

    #[test]
    fn a_single_run_has_no_standard_deviation() {
        let one = Distribution::of(&[3.0]);
        assert_eq!(one.standard_deviation, None);
        assert_eq!((one.lower_quartile, one.upper_quartile), (3.0, 3.0));
    }
}
