//! Cross-entropy of logits with class indices.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::{math, norm};

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 32 * 1024;
/// Approximate number of elements per task.
const BLOCK: usize = 8 * 1024;

/// The loss of each row, and the logarithm of its sum of exponentials, which [`backward`] needs.
/// # Shapes
/// - `logits`: `[rows, classes]`; `targets`, `losses`, `log_sums`: `[rows]`
pub fn forward(
    isa: Isa,
    logits: &[f32],
    targets: &[i64],
    losses: &mut [f32],
    log_sums: &mut [f32],
) {
    let (rows, classes) = sizes(logits, targets);
    assert_eq!(losses.len(), rows);
    assert_eq!(log_sums.len(), rows);
    if logits.len() < PARALLEL_FROM {
        return forward_rows(isa, logits, targets, losses, log_sums);
    }
    let rows = BLOCK.div_ceil(classes);
    let blocks = logits
        .par_chunks(rows * classes)
        .zip(targets.par_chunks(rows));
    let results = losses
        .par_chunks_mut(rows)
        .zip(log_sums.par_chunks_mut(rows));
    blocks
        .zip(results)
        .for_each(|((logits, targets), (losses, log_sums))| {
            forward_rows(isa, logits, targets, losses, log_sums);
        });
}

/// The gradient of the logits: (softmax - one hot) times the gradient of the row's loss.
/// # Shapes
/// - `logits`, `d_logits`: `[rows, classes]`; `targets`, `log_sums`, `d_losses`: `[rows]`
pub fn backward(
    isa: Isa,
    logits: &[f32],
    targets: &[i64],
    log_sums: &[f32],
    d_losses: &[f32],
    d_logits: &mut [f32],
) {
    let (rows, classes) = sizes(logits, targets);
    assert_eq!(log_sums.len(), rows);
    assert_eq!(d_losses.len(), rows);
    assert_eq!(d_logits.len(), logits.len());
    if logits.len() < PARALLEL_FROM {
        return backward_rows(isa, logits, targets, log_sums, d_losses, d_logits);
    }
    let rows = BLOCK.div_ceil(classes);
    let blocks = logits
        .par_chunks(rows * classes)
        .zip(targets.par_chunks(rows));
    let known = log_sums.par_chunks(rows).zip(d_losses.par_chunks(rows));
    let results = d_logits.par_chunks_mut(rows * classes);
    blocks.zip(known).zip(results).for_each(
        |(((logits, targets), (log_sums, d_losses)), d_logits)| {
            backward_rows(isa, logits, targets, log_sums, d_losses, d_logits);
        },
    );
}

/// Rows and classes. Panics if a target is out of range.
fn sizes(logits: &[f32], targets: &[i64]) -> (usize, usize) {
    let rows = targets.len();
    let classes = logits.len() / rows.max(1);
    assert_eq!(
        logits.len(),
        rows * classes,
        "{rows} targets for {} logits",
        logits.len()
    );
    let known = 0..classes as i64;
    for (row, target) in targets.iter().enumerate() {
        assert!(
            known.contains(target),
            "the target of row {row} is class {target} of {classes}"
        );
    }
    (rows, classes)
}

multiversion! {
    fn forward_rows(logits: &[f32], targets: &[i64], losses: &mut [f32], log_sums: &mut [f32]) {
        let classes = logits.len() / targets.len().max(1);
        let results = losses.iter_mut().zip(log_sums);
        for (i, (target, (loss, log_sum))) in targets.iter().zip(results).enumerate() {
            let logits = &logits[i * classes..][..classes];
            let max = largest(logits);
            let log = norm::sum_of([logits], |[x]| weight(x - max)).ln();
            // Not from `log_sum`: the small loss of a confident row would be lost in the rounding of a large maximum.
            *loss = (max - logits[*target as usize]) + log;
            *log_sum = max + log;
        }
    }
}

multiversion! {
    fn backward_rows(
        logits: &[f32],
        targets: &[i64],
        log_sums: &[f32],
        d_losses: &[f32],
        d_logits: &mut [f32],
    ) {
        let classes = logits.len() / targets.len().max(1);
        for (i, (target, (log_sum, d))) in targets.iter().zip(log_sums.iter().zip(d_losses)).enumerate() {
            let d_logits = &mut d_logits[i * classes..][..classes];
            for (to, x) in d_logits.iter_mut().zip(&logits[i * classes..][..classes]) {
                *to = weight(x - log_sum) * d;
            }
            d_logits[*target as usize] -= d;
        }
    }
}

/// e^x for x of at most about 0. Exactly 0 where negligible, so that impossible classes have zero probability and
/// gradients avoid slow subnormal numbers.
#[inline(always)]
pub(super) fn weight(x: f32) -> f32 {
    if x < -80.0 { 0.0 } else { math::exp(x) }
}

/// The maximum of a slice, ignoring NaN.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let larger = |max: &mut f32, x: &f32| *max = if *x > *max { *x } else { *max };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        lanes
            .iter_mut()
            .zip(chunk)
            .for_each(|(lane, x)| larger(lane, x));
    }
    lanes
        .iter_mut()
        .zip(rest)
        .for_each(|(lane, x)| larger(lane, x));
    let mut max = f32::NEG_INFINITY;
    lanes.iter().for_each(|lane| larger(&mut max, lane));
    max
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    fn inputs(rows: usize, classes: usize) -> (Vec<f32>, Vec<i64>) {
        let logits = numbers(rows * classes, 1)
            .iter()
            .map(|x| x * 12.0)
            .collect();
        let targets = (0..rows).map(|row| (row * 7 % classes) as i64).collect();
        (logits, targets)
    }

    /// The log-softmax of a row in f64.
    fn log_softmax(row: &[f32]) -> Vec<f64> {
        let max = row.iter().fold(f64::MIN, |m, x| m.max(f64::from(*x)));
        let sum: f64 = row.iter().map(|x| (f64::from(*x) - max).exp()).sum();
        row.iter().map(|x| f64::from(*x) - max - sum.ln()).collect()
    }

    #[test]
    fn losses_and_gradients_match_log_softmax_in_f64() {
        for (rows, classes) in [(1, 1), (5, 2), (7, 3), (3, 16), (9, 37), (150, 515)] {
            let (logits, targets) = inputs(rows, classes);
            let d_losses = numbers(rows, 2);
            for isa in Isa::available() {
                let (mut losses, mut log_sums) = (vec![f32::NAN; rows], vec![f32::NAN; rows]);
                let mut d_logits = vec![f32::NAN; rows * classes];
                forward(isa, &logits, &targets, &mut losses, &mut log_sums);
                backward(isa, &logits, &targets, &log_sums, &d_losses, &mut d_logits);
                for row in 0..rows {
                    let exact = log_softmax(&logits[row * classes..][..classes]);
                    let target = targets[row] as usize;
                    assert!(
                        (f64::from(losses[row]) + exact[target]).abs() < 4e-6,
                        "{isa:?} {row}"
                    );
                    for (class, log) in exact.iter().enumerate() {
                        let one = f64::from(u8::from(class == target));
                        let expected = (log.exp() - one) * f64::from(d_losses[row]);
                        let found = f64::from(d_logits[row * classes + class]);
                        assert!(
                            (found - expected).abs() < 2e-6,
                            "{isa:?} {row} {class}: {found}, {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_logits_give_exact_losses_and_zero_gradients() {
        for isa in Isa::available() {
            let logits = [1000.0, 990.0, -1e30, f32::NEG_INFINITY];
            let (mut losses, mut log_sums, mut d) = ([0.0], [0.0], [f32::NAN; 4]);
            forward(isa, &logits, &[0], &mut losses, &mut log_sums);
            let exact = (-10f32).exp().ln_1p();
            assert!(
                (losses[0] - exact).abs() < 1e-7,
                "{} for {exact}",
                losses[0]
            );
            backward(isa, &logits, &[0], &log_sums, &[1.0], &mut d);
            assert!(d[0].abs() < 1e-4 && d[2..] == [0.0, 0.0]);
            forward(isa, &logits, &[3], &mut losses, &mut log_sums);
            assert_eq!(losses[0], f32::INFINITY);
            forward(isa, &[0.0, f32::NAN, 0.0], &[0], &mut losses, &mut log_sums);
            assert!(losses[0].is_nan());
        }
    }

    #[test]
    #[should_panic(expected = "the target of row 1 is class 3 of 3")]
    fn targets_out_of_range_panic() {
        forward(
            Isa::Portable,
            &[0.0; 6],
            &[0, 3],
            &mut [0.0; 2],
            &mut [0.0; 2],
        );
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let (rows, classes) = (1000, 61);
        let (logits, targets) = inputs(rows, classes);
        let isa = Isa::selected();
        let run = || {
            let (mut losses, mut log_sums) = (vec![0.0; rows], vec![0.0; rows]);
            let mut d_logits = vec![0.0; rows * classes];
            forward(isa, &logits, &targets, &mut losses, &mut log_sums);
            backward(isa, &logits, &targets, &log_sums, &losses, &mut d_logits);
            (losses, log_sums, d_logits)
        };
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert_eq!(pool(1).install(run), pool(3).install(run));
    }
}
