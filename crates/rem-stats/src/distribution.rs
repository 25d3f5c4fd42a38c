//! The scores of one game's runs.

use crate::quantile::quantile;

/// Of raw or of normalised scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// From the lowest to the highest.
    pub sorted: Vec<f64>,
    pub mean: f64,
    /// Of the sample (n - 1 in its denominator); none for a single run.
    pub standard_deviation: Option<f64>,
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
}

impl Distribution {
    /// # Panics
    /// If there are no scores.
    pub fn of(scores: &[f64]) -> Self {
        assert!(!scores.is_empty(), "a distribution has scores");
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

    pub fn lowest(&self) -> f64 {
        self.sorted[0]
    }

    pub fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let five = Distribution::of(&[4.0, 0.0, 2.0, 8.0, 6.0]);
        assert_eq!(five.sorted, [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!((five.lowest(), five.highest()), (0.0, 8.0));
        assert_eq!((five.mean, five.median), (4.0, 4.0));
        assert_eq!((five.lower_quartile, five.upper_quartile), (2.0, 6.0));
        // Squares 16 + 4 + 0 + 4 + 16 = 40, by 4.
        assert_eq!(five.standard_deviation, Some(10f64.sqrt()));
    }

    #[test]
    fn one_run_has_no_deviation() {
        let one = Distribution::of(&[3.0]);
        assert_eq!(one.standard_deviation, None);
        assert_eq!((one.lower_quartile, one.upper_quartile), (3.0, 3.0));
    }
}
