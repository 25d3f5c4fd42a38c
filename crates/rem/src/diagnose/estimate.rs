//! Means with intervals, shares and correlation.

use serde::Serialize;

/// Half the width of a 95% interval, in standard errors.
const WIDTH: f64 = 1.96;

/// A mean with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval. 0 with fewer than two values.
    pub margin: f64,
}

impl Estimate {
    pub(super) fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let variance = squares / (n - 1.0).max(1.0);
        Self {
            mean,
            margin: WIDTH * (variance / n.max(1.0)).sqrt(),
        }
    }

    /// The difference between the means of independent values.
    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            mean: self.mean - other.mean,
            margin: self.margin.hypot(other.margin),
        }
    }

    /// Whether the interval is above zero.
    pub(super) fn is_positive(self) -> bool {
        self.mean > self.margin
    }
}

/// `part / all`; `None` of nothing.
pub(super) fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Pearson's correlation; `None` if one of the two does not vary.
pub(super) fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xy += dx * dy;
        xx += dx * dx;
        yy += dy * dy;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_that_of_the_standard_error() {
        // Variance 4, four values: standard error 1.
        let estimate = Estimate::of(&[1.0, 1.0, 5.0 - 3f64.sqrt(), 3.0 + 3f64.sqrt()]);
        assert_eq!(estimate.mean, 2.5);
        let squares: f64 =
            1.5f64.powi(2) * 2.0 + (2.5 - 3f64.sqrt()).powi(2) + (0.5 + 3f64.sqrt()).powi(2);
        let expected = 1.96 * (squares / 3.0 / 4.0).sqrt();
        assert!((estimate.margin - expected).abs() < 1e-12);
        assert_eq!(Estimate::of(&[7.0]).margin, 0.0);
    }

    #[test]
    fn differences_add_their_variances() {
        let of = |mean, margin| Estimate { mean, margin };
        let difference = of(5.0, 3.0).minus(of(1.0, 4.0));
        assert_eq!(difference, of(4.0, 5.0));
        assert!(!difference.is_positive() && of(5.1, 5.0).is_positive());
    }

    #[test]
    fn correlation_is_undefined_without_variation() {
        let x = [1.0, 2.0, 3.0];
        assert!((correlation(&x, &[2.0, 4.0, 6.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((correlation(&x, &[0.0, 1.0, 0.0]).unwrap()).abs() < 1e-12);
        assert_eq!(correlation(&x, &[5.0; 3]), None);
    }
}
