//! Sampling one class per row of logits.

use rayon::prelude::*;

use super::cross_entropy::{largest, weight};
use super::isa::{Isa, multiversion};
use super::norm;
use super::scratch::Scratch;

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 32 * 1024;
/// Approximate number of elements per task.
const BLOCK: usize = 8 * 1024;

/// Classes of a group: the search first finds the group, then the class.
const GROUP: usize = 64;

/// The class at which the cumulative distribution of each row passes its draw, uniform in [0, 1). A class
/// of zero probability is never drawn. Results do not depend on the instruction set or the number of threads.
/// # Shapes
/// - `logits`: `[rows, classes]`; `draws`, `out`: `[rows]`
pub fn sample(isa: Isa, logits: &[f32], draws: &[f32], out: &mut [i64]) {
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
        sample_rows(isa, logits, draws, &mut Scratch::new(classes), out);
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

multiversion! {
    fn sample_rows(logits: &[f32], draws: &[f32], weights: &mut [f32], out: &mut [i64]) {
        for ((logits, draw), out) in logits.chunks_exact(weights.len()).zip(draws).zip(out) {
            let max = largest(logits);
            for (to, x) in weights.iter_mut().zip(logits) {
                *to = weight(x - max);
            }
            *out = class_at(weights, *draw) as i64;
        }
    }
}

/// The first class whose cumulative weight exceeds `draw` times the total.
#[inline(always)]
fn class_at(weights: &[f32], draw: f32) -> usize {
    let sum = |group: &[f32]| norm::sum_of([group], |[x]| x);
    // Summed in the order of the search, so that the last cumulative sum equals the total.
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
        // Rounding: one by one the weights sum to less than the group's sum, and the draw lies between.
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

    fn drawn(isa: Isa, logits: &[f32], draws: &[f32]) -> Vec<i64> {
        let mut out = vec![-1; draws.len()];
        sample(isa, logits, draws, &mut out);
        out
    }

    #[test]
    fn samples_invert_the_cumulative_distribution() {
        for (rows, classes) in [(40, 1), (40, 2), (40, 18), (40, 65), (400, 517)] {
            let logits: Vec<f32> = numbers(rows * classes, 1).iter().map(|x| x * 4.0).collect();
            let draws = uniform(rows, 2);
            let first = drawn(Isa::Portable, &logits, &draws);
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
            assert!(Isa::available().all(|isa| drawn(isa, &logits, &draws) == first));
        }
    }

    #[test]
    fn classes_of_zero_probability_are_never_drawn() {
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
            for isa in Isa::available() {
                let drawn = drawn(isa, &logits, &draws);
                assert!(
                    drawn.iter().all(|class| possible(*class as usize)),
                    "{isa:?}"
                );
                let all_seen = (0..classes)
                    .filter(|c| possible(*c))
                    .all(|c| drawn.contains(&(c as i64)));
                assert!(all_seen || scale != 0.0);
            }
        }
    }

    #[test]
    fn draws_of_0_and_nearly_1_give_valid_classes() {
        let logits = [-1e30, 0.0, 0.0, 0.0, 0.0, -1e30];
        for isa in Isa::available() {
            assert_eq!(
                drawn(isa, &logits, &[0.0, 1.0 - f32::EPSILON / 2.0]),
                [1, 1]
            );
            // Invalid distributions still give a class.
            assert_eq!(drawn(isa, &[0.0, f32::NAN, 0.0, 0.0], &[0.9, 0.9]), [0, 1]);
            assert_eq!(drawn(isa, &[f32::NEG_INFINITY; 3], &[0.9]), [0]);
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let (logits, draws) = (numbers(1000 * 61, 1), uniform(1000, 2));
        let run = || drawn(Isa::selected(), &logits, &draws);
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert_eq!(pool(1).install(run), pool(3).install(run));
    }
}
