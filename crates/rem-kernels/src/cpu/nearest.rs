//! The nearest code of each row, without storing the distances.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::matmul::{Dense, Panels, convert, multiply_add};
use super::norm;
use super::scratch::Scratch;
use super::tile::F32;
use super::transpose::transpose;

/// Minimum number of multiplications to split over threads.
const PARALLEL_FROM: usize = 512 * 1024;

/// Rows of a task.
const BLOCK: usize = 32;

/// The index of the code with the smallest squared distance to each row, the first of several. Always in f32:
/// bfloat16 would often select another code.
/// # Shapes
/// - `rows`: `[n, width]`; `codes`: `[vocabulary, width]`; `out`: `[n]`
pub fn nearest(isa: Isa, rows: &[f32], codes: &[f32], width: usize, out: &mut [i64]) {
    let vocabulary = codes.len() / width;
    assert!(
        vocabulary > 0 && codes.len() == vocabulary * width,
        "{} numbers for codes of {width}",
        codes.len()
    );
    assert_eq!(rows.len(), out.len() * width);
    let tile = F32(isa);
    let mut norms = Scratch::new(vocabulary);
    squared_norms(isa, codes, width, &mut norms);
    let mut transposed = Scratch::new(codes.len());
    transpose(
        isa,
        codes,
        width,
        vocabulary,
        width,
        &mut transposed,
        vocabulary,
    );
    let panels = Panels::pack_rows(tile, width, vocabulary, |k, first| {
        &transposed[k * vocabulary + first..(k + 1) * vocabulary]
    });
    let norms = &norms[..];
    let block = |(i, out): (usize, &mut [i64])| {
        let converted = convert(tile, &Dense::new(rows, width), i * BLOCK, out.len());
        let mut products = Scratch::new(out.len() * vocabulary);
        multiply_add(tile, &converted, &panels, &mut products, false);
        least(isa, &products, norms, out);
    };
    if rows.len() * vocabulary < PARALLEL_FROM {
        out.chunks_mut(BLOCK).enumerate().for_each(block);
    } else {
        out.par_chunks_mut(BLOCK).enumerate().for_each(block);
    }
}

multiversion! {
    fn squared_norms(codes: &[f32], width: usize, norms: &mut [f32]) {
        for (norm, code) in norms.iter_mut().zip(codes.chunks_exact(width)) {
            *norm = norm::sum_of([code], |[x]| x * x);
        }
    }
}

multiversion! {
    /// The index that minimizes |e|² - 2 z·e, which is |z - e|² without |z|², the same for every code.
    fn least(products: &[f32], norms: &[f32], out: &mut [i64]) {
        for (products, out) in products.chunks_exact(norms.len()).zip(out) {
            let (mut best, mut index) = ([f32::INFINITY; 16], [0u32; 16]);
            let mut compare = |first: usize, products: &[f32], norms: &[f32]| {
                let lanes = best.iter_mut().zip(&mut index).zip(products.iter().zip(norms));
                for (lane, ((best, index), (product, norm))) in lanes.enumerate() {
                    let distance = norm - 2.0 * product;
                    let nearer = distance < *best;
                    *best = if nearer { distance } else { *best };
                    *index = if nearer { (first + lane) as u32 } else { *index };
                }
            };
            let (products, norms) = (products.chunks_exact(16), norms.chunks_exact(16));
            let rest = (products.remainder(), norms.remainder());
            let whole = 16 * products.len();
            for (i, (products, norms)) in products.zip(norms).enumerate() {
                compare(16 * i, products, norms);
            }
            compare(whole, rest.0, rest.1);
            let (mut nearest, mut at) = (best[0], index[0]);
            for (distance, i) in best.into_iter().zip(index) {
                if distance < nearest || (distance == nearest && i < at) {
                    (nearest, at) = (distance, i);
                }
            }
            *out = i64::from(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    fn found(isa: Isa, rows: &[f32], codes: &[f32], width: usize) -> Vec<i64> {
        let mut out = vec![-1; rows.len() / width];
        nearest(isa, rows, codes, width, &mut out);
        out
    }

    #[test]
    fn no_code_is_nearer_than_the_result() {
        for (n, vocabulary, width) in [
            (1, 1, 1),
            (5, 3, 2),
            (33, 16, 17),
            (70, 45, 31),
            (300, 130, 67),
        ] {
            let (rows, codes) = (numbers(n * width, 1), numbers(vocabulary * width, 2));
            for isa in Isa::available() {
                let found = found(isa, &rows, &codes, width);
                for (row, code) in rows.chunks_exact(width).zip(found) {
                    let distance = |code: &[f32]| -> f64 {
                        row.iter()
                            .zip(code)
                            .map(|(z, e)| (f64::from(*z) - f64::from(*e)).powi(2))
                            .sum()
                    };
                    let least = codes
                        .chunks_exact(width)
                        .map(distance)
                        .fold(f64::MAX, f64::min);
                    let taken = distance(&codes[code as usize * width..][..width]);
                    assert!(
                        taken <= least + 1e-5,
                        "{isa:?}: {taken}, but there is {least}"
                    );
                }
            }
        }
    }

    #[test]
    fn ties_resolve_to_the_first_code() {
        let (vocabulary, width) = (53, 24);
        let codes = numbers(vocabulary * width, 1);
        let twice = [&codes[..], &codes[..]].concat();
        for isa in Isa::available() {
            let found = found(isa, &twice, &twice, width);
            assert!(
                found
                    .iter()
                    .enumerate()
                    .all(|(i, code)| *code == (i % vocabulary) as i64)
            );
        }
    }

    #[test]
    fn distances_are_computed_in_f32() {
        let codes = [1.0, 1.0 + 1.0 / 512.0];
        let rows = [1.0 + 1.0 / 4096.0, 1.0 + 3.0 / 2048.0];
        assert!(Isa::available().all(|isa| found(isa, &rows, &codes, 1) == [0, 1]));
    }

    #[test]
    fn nan_is_never_nearest() {
        let codes = [f32::NAN, 1.0, 2.0];
        assert!(Isa::available().all(|isa| found(isa, &[1.9, f32::NAN], &codes, 1) == [2, 0]));
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let (rows, codes) = (numbers(500 * 40, 1), numbers(100 * 40, 2));
        let run = || found(Isa::selected(), &rows, &codes, 40);
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert_eq!(pool(1).install(run), pool(3).install(run));
    }
}
