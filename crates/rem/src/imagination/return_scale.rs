//! The scale of λ-returns, by which the policy loss divides advantages (Simulus; DreamerV3 has a moving average instead of
//! a window).

use std::collections::VecDeque;

use crate::config::ReturnScaling;

/// The quantiles between which the range of returns is measured.
const QUANTILES: [f64; 2] = [0.025, 0.975];

/// The λ-returns of the last batches of rollouts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecentReturns {
    window: usize,
    floor: f64,
    /// Each in ascending order, oldest first.
    batches: VecDeque<Vec<f32>>,
    /// The returns of all batches, ascending.
    sorted: Vec<f32>,
}

impl RecentReturns {
    /// No returns yet; `None` without scaling.
    pub(crate) fn new(config: ReturnScaling) -> Option<Self> {
        match config {
            ReturnScaling::Off {} => None,
            ReturnScaling::QuantileRange { window, floor } => Some(Self {
                window,
                floor,
                batches: VecDeque::new(),
                sorted: Vec::new(),
            }),
        }
    }

    /// Adds a batch. The oldest one leaves a full window.
    pub(crate) fn push(&mut self, mut batch: Vec<f32>) {
        batch.sort_unstable_by(f32::total_cmp);
        let full = self.batches.len() == self.window;
        let leaving = full.then(|| self.batches.pop_front()).flatten();
        self.sorted = replaced(&self.sorted, &leaving.unwrap_or_default(), &batch);
        self.batches.push_back(batch);
    }

    /// Half the range of the returns between [`QUANTILES`], at least the floor.
    pub(crate) fn scale(&self) -> f64 {
        let [low, high] = QUANTILES.map(|q| quantile(&self.sorted, q));
        (0.5 * (high - low)).max(self.floor)
    }

    /// The batches, oldest first: all values, and how many belong to each.
    pub(crate) fn to_parts(&self) -> (Vec<f32>, Vec<f32>) {
        let values = self.batches.iter().flatten().copied().collect();
        let lengths = self.batches.iter().map(|batch| batch.len() as f32);
        (values, lengths.collect())
    }

    /// Restores what [`Self::to_parts`] returned.
    pub(crate) fn restore(&mut self, values: &[f32], lengths: &[f32]) -> Result<(), String> {
        let total: usize = lengths.iter().map(|length| *length as usize).sum();
        if total != values.len() || lengths.len() > self.window {
            return Err("recent returns of another config".into());
        }
        let mut rest = values;
        self.batches.clear();
        for length in lengths {
            let (batch, after) = rest.split_at(*length as usize);
            self.batches.push_back(batch.to_vec());
            rest = after;
        }
        self.sorted = values.to_vec();
        self.sorted.sort_unstable_by(f32::total_cmp);
        Ok(())
    }
}

/// `sorted` without `leaving` and with `entering`, all ascending. One pass, since sorting all returns anew would take
/// longer than a small update of the controller.
fn replaced(sorted: &[f32], leaving: &[f32], entering: &[f32]) -> Vec<f32> {
    let mut leaving = leaving.iter().peekable();
    let mut entering = entering.iter().copied().peekable();
    let mut result = Vec::with_capacity(sorted.len() + entering.len());
    for x in sorted {
        if leaving.next_if(|left| left.total_cmp(x).is_eq()).is_some() {
            continue;
        }
        while let Some(new) = entering.next_if(|new| new.total_cmp(x).is_lt()) {
            result.push(new);
        }
        result.push(*x);
    }
    result.extend(entering);
    result
}

/// The quantile of ascending values, linearly interpolated as in `numpy.quantile`; 0 without values.
fn quantile(sorted: &[f32], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let position = q * last as f64;
    let below = position.floor() as usize;
    let at = |i: usize| f64::from(sorted[i.min(last)]);
    at(below) + (position - below as f64) * (at(below + 1) - at(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(window: usize, floor: f64) -> RecentReturns {
        RecentReturns::new(ReturnScaling::QuantileRange { window, floor }).unwrap()
    }

    /// `i * 7 % 41 / 4` for the integers of a range.
    fn batch(range: std::ops::Range<u32>) -> Vec<f32> {
        range.map(|i| (i * 7 % 41) as f32 / 4.0).collect()
    }

    /// ```python
    /// import numpy as np
    /// batch = lambda a, b: np.arange(a, b) * 7 % 41 / 4
    /// low, high = np.quantile(np.concatenate([batch(0, 10), batch(10, 30)]), [0.025, 0.975])
    /// print(0.5 * (high - low))  # 4.69375
    /// low, high = np.quantile(np.concatenate([batch(10, 30), batch(30, 36)]), [0.025, 0.975])
    /// print(0.5 * (high - low))  # 4.59375
    /// ```
    #[test]
    fn scale_is_half_the_quantile_range_of_the_last_batches() {
        let mut returns = recent(2, 1.0);
        returns.push(batch(0..10));
        returns.push(batch(10..30));
        assert!((returns.scale() - 4.69375).abs() < 1e-6);
        returns.push(batch(30..36));
        assert!((returns.scale() - 4.59375).abs() < 1e-6);
    }

    #[test]
    fn small_ranges_have_the_scale_of_the_floor() {
        for floor in [1.0, 0.01] {
            let mut returns = recent(3, floor);
            assert_eq!(returns.scale(), floor, "without returns");
            returns.push(vec![0.5; 8]);
            assert_eq!(returns.scale(), floor);
        }
        // Quantiles of [0, 1] are 0.025 and 0.975.
        let mut returns = recent(3, 0.01);
        returns.push(vec![1.0, 0.0]);
        assert!((returns.scale() - 0.475).abs() < 1e-12);
    }

    #[test]
    fn a_restored_window_continues_equally() {
        let mut returns = recent(3, 1.0);
        (0..5).for_each(|i| returns.push(batch(i..4 * i + 3)));
        let (values, lengths) = returns.to_parts();
        let mut restored = recent(3, 1.0);
        restored.restore(&values, &lengths).unwrap();
        assert_eq!(restored, returns);
        for window in [&mut restored, &mut returns] {
            window.push(batch(3..9));
        }
        assert_eq!(restored, returns);
        assert!(restored.restore(&values[1..], &lengths).is_err());
        assert!(recent(2, 1.0).restore(&values, &lengths).is_err());
    }

    #[test]
    fn sorted_returns_are_those_of_the_window() {
        let mut returns = recent(4, 1.0);
        for i in 0..30 {
            returns.push(batch(i..i + 1 + i % 5));
            let mut all = returns.to_parts().0;
            all.sort_unstable_by(f32::total_cmp);
            assert_eq!(returns.sorted, all);
        }
    }
}
