//! Axes: values to pixels, with round ticks.

use crate::table::fixed;

/// An axis: maps a range of values to a range of pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The value at the first pixel.
    pub low: f64,
    /// The value at the last pixel.
    pub high: f64,
    /// The values with a label, in ascending order.
    pub ticks: Vec<f64>,
    scale: Scale,
    from: f64,
    to: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// A linear axis that covers `values`, with about `count` ticks, from pixel `from` to pixel `to`. Both ends are ticks.
    pub fn around(
        values: impl IntoIterator<Item = f64>,
        count: usize,
        (from, to): (f64, f64),
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() / 10.0 };
            (low, high) = (low - room, high + room);
        }
        let step = round_step((high - low) / count as f64);
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil();
        let ticks: Vec<f64> = (0..=(last - first) as usize)
            .map(|tick| (first + tick as f64) * step)
            .collect();
        Self {
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            ticks,
            scale: Scale::Linear,
            from,
            to,
        }
    }

    /// A logarithmic axis from the first to the last of these ticks.
    ///
    /// # Panics
    ///
    /// If `ticks` is empty.
    pub fn logarithmic(ticks: Vec<f64>, (from, to): (f64, f64)) -> Self {
        Self {
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            ticks,
            scale: Scale::Logarithmic,
            from,
            to,
        }
    }

    /// A logarithmic axis that covers `values`, which must be positive. Ticks are powers of ten; both ends are ticks.
    pub fn decades(values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        let first = low.log10().floor() as i32;
        let last = (high.log10().ceil() as i32).max(first + 1);
        Self::logarithmic(
            (first..=last).map(|power| 10f64.powi(power)).collect(),
            pixels,
        )
    }

    /// The pixel of a value.
    pub fn pixel(&self, value: f64) -> f64 {
        let fraction = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            // An axis of one tick has no length.
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln().max(1e-9),
        };
        self.from + fraction * (self.to - self.from)
    }

    /// Ticks with their labels. Labels of a linear axis have the same number of decimals; large ones end in `k` or `M`.
    pub fn labels(&self) -> Vec<(f64, String)> {
        if self.scale == Scale::Logarithmic {
            return self
                .ticks
                .iter()
                .map(|tick| (*tick, tick.to_string()))
                .collect();
        }
        let step = self.ticks[1] - self.ticks[0];
        let largest = self.low.abs().max(self.high.abs());
        let (unit, letter) = match largest {
            _ if largest >= 1e7 && step >= 1e5 => (1e6, "M"),
            _ if largest >= 1e4 && step >= 100.0 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let decimals = (0..6).find(|&decimals| {
            let scaled = step / unit * 10f64.powi(decimals);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        });
        let decimals = decimals.unwrap_or(6) as usize;
        let label = |tick: &f64| {
            let text = fixed(*tick / unit, decimals).replace('-', "−");
            (
                *tick,
                if *tick == 0.0 {
                    text
                } else {
                    format!("{text}{letter}")
                },
            )
        };
        self.ticks.iter().map(label).collect()
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let axis = Axis::around(values.iter().copied(), 4, (0.0, 100.0));
        axis.labels().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_all_values() {
        assert_eq!(labels(&[0.13, 0.71]), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(
            labels(&[-21.0, 18.0]),
            ["−30", "−20", "−10", "0", "10", "20"]
        );
        assert_eq!(
            labels(&[0.0, 100_000.0]),
            ["0", "25k", "50k", "75k", "100k"]
        );
        assert_eq!(labels(&[0.0, 24_000.0]), ["0", "10k", "20k", "30k"]);
        assert_eq!(
            labels(&[0.0, 1.0]),
            ["0.00", "0.25", "0.50", "0.75", "1.00"]
        );
    }

    #[test]
    fn an_axis_of_one_value_or_none_is_not_empty() {
        assert_eq!(labels(&[]).len(), 5);
        let axis = Axis::around([5.0], 4, (0.0, 100.0));
        assert!(axis.low < 5.0 && axis.high > 5.0);
        let zero = Axis::around([0.0, 0.0], 4, (0.0, 100.0));
        assert!(zero.low < 0.0 && zero.high > 0.0);
    }

    #[test]
    fn an_axis_may_run_from_large_to_small_pixels() {
        let axis = Axis::around([0.0, 1.0], 4, (200.0, 0.0));
        assert_eq!(axis.pixel(0.0), 200.0);
        assert_eq!(axis.pixel(0.5), 100.0);
    }

    #[test]
    fn a_logarithmic_axis_maps_equal_ratios_to_equal_distances() {
        let axis = Axis::decades([0.2, 30.0], (0.0, 300.0));
        let labels: Vec<_> = axis.labels().into_iter().map(|(_, text)| text).collect();
        assert_eq!(labels, ["0.1", "1", "10", "100"]);
        assert!((axis.pixel(1.0) - 100.0).abs() < 1e-9);
        let axis = Axis::logarithmic(vec![16.0], (5.0, 300.0));
        assert_eq!(axis.pixel(16.0), 5.0);
    }
}
