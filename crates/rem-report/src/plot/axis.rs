//! Numbers to places, and the round numbers that axes are labelled with.

use crate::table::fixed;

/// A range of numbers over a range of pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<f64>,
    from: f64,
    to: f64,
}

impl Axis {
    /// Around all of `values`, with about `count` ticks, from pixel `from` to pixel `to`. The ends are ticks.
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
            from,
            to,
        }
    }

    pub fn place(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Ticks with their texts, all with as many decimals, thousands as `k`.
    pub fn labels(&self) -> Vec<(f64, String)> {
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

/// The next larger of 1, 2, 2.5 and 5 times a power of ten.
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
    fn ticks_are_round_and_hold_all_values() {
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
    fn one_value_and_none() {
        assert_eq!(labels(&[]).len(), 5);
        let axis = Axis::around([5.0], 4, (0.0, 100.0));
        assert!(axis.low < 5.0 && axis.high > 5.0);
        let zero = Axis::around([0.0, 0.0], 4, (0.0, 100.0));
        assert!(zero.low < 0.0 && zero.high > 0.0);
    }

    #[test]
    fn places_can_run_upwards() {
        let axis = Axis::around([0.0, 1.0], 4, (200.0, 0.0));
        assert_eq!(axis.place(0.0), 200.0);
        assert_eq!(axis.place(0.5), 100.0);
    }
}
