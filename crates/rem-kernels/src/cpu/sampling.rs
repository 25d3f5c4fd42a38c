//! Drawing one class per row of logits.

use rayon::prelude::*;

use super::cross_entropy::{largest, weight};
use super::level::{Level, vectorised};
use super::norm;
use super::scratch::Scratch;

/// Elements from which work is worth a second thread, and about how many a thread takes at a time.
const PARALLEL_FROM: usize = 32 * 1024;
const BLOCK: usize = 8 * 1024;

/// Classes whose weights are summed before anyone asks in which of them the draw lies.
const GROUP: usize = 64;

/// The class at which the cumulative distribution of each row passes its draw, uniform in [0, 1). A class
/// of no probability is never drawn. Every level and number of threads draws the same.
/// # Shapes
/// - `logits`: `[rows, classes]`; `draws`, `out`: `[rows]`
pub fn sample(level: Level, logits: &[f32], draws: &[f32], out: &mut [i64]) {
    let rows = draws.len();
    if rows == 0 {
        return;
    }
    let classes = logits.len() / rows;
    assert!(
        classes > 0 && logits.len() == rows * classes,
        "{rows} draws for {} logits",
        logits.len()
    );
    assert_eq!(out.len(), rows);
    let block = |((logits, draws), out): ((&[f32], &[f32]), &mut [i64])| {
        sample_rows(level, logits, draws, &mut Scratch::new(classes), out);
    };
    if logits.len() < PARALLEL_FROM {
        return block(((logits, draws), out));
    }
    let rows = BLOCK.div_ceil(classes);
    let blocks = logits
        .par_chunks(rows * classes)
        .zip(draws.par_chunks(rows));
    blocks.zip(out.par_chunks_mut(rows)).for_each(block);
}

vectorised! {
    fn sample_rows(logits: &[f32], draws: &[f32], weights: &mut [f32], out: &mut [i64]) {
        for ((logits, draw), out) in logits.chunks_exact(weights.len()).zip(draws).zip(out) {
            let most = largest(logits);
            for (to, x) in weights.iter_mut().zip(logits) {
                *to = weight(x - most);
            }
            *out = class_at(weights, *draw) as i64;
        }
    }
}

/// The number of classes whose cumulative weights are at most the draw's share of the whole.
#[inline(always)]
fn class_at(weights: &[f32], draw: f32) -> usize {
    let sum = |group: &[f32]| norm::sum_of([group], |[x]| x);
    // In the order of the search: the last cumulative sum is then the whole, and beyond the threshold.
    let whole = weights
        .chunks(GROUP)
        .fold(0f32, |before, group| before + sum(group));
    let threshold = draw * whole;
    let mut before = 0f32;
    for (i, group) in weights.chunks(GROUP).enumerate() {
        let after = before + sum(group);
        if after <= threshold {
            before = after;
            continue;
        }
        for (j, weight) in group.iter().enumerate() {
            before += weight;
            if before <= threshold {
                continue;
            }
            return i * GROUP + j;
        }
        // One by one the weights came to a little less than the group's sum, and the draw lies between.
        return last_possible(&weights[..i * GROUP + group.len()]);
    }
    last_possible(weights)
}

fn last_possible(weights: &[f32]) -> usize {
    weights
        .iter()
        .rposition(|w| *w > 0.0)
        .unwrap_or(weights.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    fn uniform(count: usize, seed: u64) -> Vec<f32> {
        let below_one = 1.0 - f32::EPSILON / 2.0;
        numbers(count, seed)
            .iter()
            .map(|x| (0.5 + 0.5 * x).clamp(0.0, below_one))
            .collect()
    }

    fn drawn(level: Level, logits: &[f32], draws: &[f32]) -> Vec<i64> {
        let mut out = vec![-1; draws.len()];
        sample(level, logits, draws, &mut out);
        out
    }

    #[test]
    fn the_class_drawn_is_where_the_exact_distribution_passes_the_draw() {
        for (rows, classes) in [(40, 1), (40, 2), (40, 18), (40, 65), (400, 517)] {
            let logits: Vec<f32> = numbers(rows * classes, 1).iter().map(|x| x * 4.0).collect();
            let draws = uniform(rows, 2);
            let first = drawn(Level::Portable, &logits, &draws);
            for (row, class) in first.iter().enumerate() {
                let weights = logits[row * classes..][..classes]
                    .iter()
                    .map(|x| f64::from(*x).exp());
                let weights: Vec<f64> = weights.collect();
                let whole: f64 = weights.iter().sum();
                let until = |class: usize| weights[..class].iter().sum::<f64>() / whole;
                let (class, draw) = (*class as usize, f64::from(draws[row]));
                assert!(
                    until(class) - 1e-6 <= draw && draw <= until(class + 1) + 1e-6,
                    "row {row}"
                );
            }
            assert!(Level::available().all(|level| drawn(level, &logits, &draws) == first));
        }
    }

    #[test]
    fn impossible_classes_are_never_drawn() {
        let classes = 150;
        // Every third class in two stretches, with impossible ones before, between and after them.
        let possible =
            |class: usize| class.is_multiple_of(3) && (40..60).chain(90..110).any(|c| c == class);
        let never = [f32::NEG_INFINITY, -1e30, -200.0];
        let row = |scale: f32| {
            (0..classes).map(move |c| {
                if possible(c) {
                    scale * c as f32
                } else {
                    never[c % 3]
                }
            })
        };
        let mut draws = uniform(4000, 3);
        draws.extend([0.0, f32::MIN_POSITIVE, 0.5, 1.0 - f32::EPSILON / 2.0, 1.0]);
        for scale in [0.0, 0.1, -0.3] {
            let logits: Vec<f32> = draws.iter().flat_map(|_| row(scale)).collect();
            for level in Level::available() {
                let drawn = drawn(level, &logits, &draws);
                assert!(
                    drawn.iter().all(|class| possible(*class as usize)),
                    "{level:?}"
                );
                let all_seen = (0..classes)
                    .filter(|c| possible(*c))
                    .all(|c| drawn.contains(&(c as i64)));
                assert!(all_seen || scale != 0.0);
            }
        }
    }

    #[test]
    fn the_ends_of_the_unit_interval() {
        let logits = [-1e30, 0.0, 0.0, 0.0, 0.0, -1e30];
        for level in Level::available() {
            assert_eq!(
                drawn(level, &logits, &[0.0, 1.0 - f32::EPSILON / 2.0]),
                [1, 1]
            );
            // What is not a distribution still gives a class.
            assert_eq!(
                drawn(level, &[0.0, f32::NAN, 0.0, 0.0], &[0.9, 0.9]),
                [0, 1]
            );
            assert_eq!(drawn(level, &[f32::NEG_INFINITY; 3], &[0.9]), [0]);
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (logits, draws) = (numbers(1000 * 61, 1), uniform(1000, 2));
        let run = || drawn(Level::of_this_machine(), &logits, &draws);
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert_eq!(pool(1).install(run), pool(3).install(run));
    }
}
