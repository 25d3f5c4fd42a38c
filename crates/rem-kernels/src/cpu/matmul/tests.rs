//! Products against sums in f64, and packing.

use super::*;
use crate::cpu::isa::Isa;
use crate::cpu::testing::{self, numbers};
use crate::cpu::tile::{Precision, with_tile};

const SIZES: [(usize, usize, usize); 8] = [
    (1, 1, 1),
    (3, 2, 5),
    (13, 33, 17),
    (16, 64, 64),
    (65, 65, 64),
    (97, 31, 48),
    (300, 70, 100),
    (1100, 129, 40),
];

#[test]
fn matmul_matches_f64() {
    for (m, k, n) in SIZES {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let expected = testing::matmul_f64(&a, &b, m, k, n);
        for isa in Isa::available() {
            for precision in [Precision::F32, Precision::Mixed] {
                let mut out = vec![f32::NAN; m * n];
                with_tile!(isa, precision, tile => {
                    let fill = |_: usize, row: usize, first: usize, to: &mut [f32]| {
                        to.copy_from_slice(&b[row * n + first..][..to.len()]);
                    };
                    let panels = Panels::pack(tile, 1, k, n, fill);
                    matmul(tile, &Dense::new(&a, k), &panels, &mut out, |_, _| {});
                });
                testing::close(
                    &out,
                    &expected,
                    k,
                    precision,
                    &format!("{isa:?} {m} {k} {n}"),
                );
            }
        }
    }
}

#[test]
fn rows_are_packed_like_copies_of_them() {
    for (depth, columns) in [
        (1, 16),
        (7, 32),
        (8, 48),
        (33, 64),
        (64, 17),
        (65, 300),
        (600, 96),
    ] {
        let b = numbers(depth * columns, 1);
        for isa in Isa::available() {
            for precision in [Precision::F32, Precision::Mixed] {
                with_tile!(isa, precision, tile => {
                    let copied = Panels::pack(tile, 1, depth, columns, |_, k, first, to| {
                        to.copy_from_slice(&b[k * columns + first..][..to.len()]);
                    });
                    let packed = Panels::pack_rows(tile, depth, columns, |k, first| {
                        &b[k * columns + first..]
                    });
                    assert!(packed.data[..] == copied.data[..], "{isa:?} {depth} {columns}");
                });
            }
        }
    }
}

#[test]
fn matmul_transposed_matches_f64() {
    for (k, m, n) in SIZES {
        let (a, b) = (numbers(k * m, 1), numbers(k * n, 2));
        let transposed: Vec<f32> = (0..m * k).map(|i| a[i % k * m + i / k]).collect();
        let expected = testing::matmul_f64(&transposed, &b, m, k, n);
        for isa in Isa::available() {
            for precision in [Precision::F32, Precision::Mixed] {
                let mut out = vec![f32::NAN; m * n];
                with_tile!(isa, precision, tile => {
                    matmul_transposed(tile, &Dense::new(&a, m), &Dense::new(&b, n), k, &mut out);
                });
                testing::close(
                    &out,
                    &expected,
                    k,
                    precision,
                    &format!("{isa:?} {m} {k} {n}"),
                );
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_thread_count() {
    let (m, k, n) = (700, 130, 96);
    let (a, b) = (numbers(m * k, 1), numbers(m * n, 2));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let mut out = vec![0f32; k * n];
        let isa = Isa::selected();
        pool.install(|| {
            with_tile!(isa, Precision::Mixed, tile => {
                matmul_transposed(tile, &Dense::new(&a, k), &Dense::new(&b, n), m, &mut out);
            });
        });
        out
    };
    assert_eq!(run(1), run(3));
}
