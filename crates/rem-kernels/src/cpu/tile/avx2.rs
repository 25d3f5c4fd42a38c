//! AVX2: 6 x 16 sums in 12 registers.

#![cfg(target_arch = "x86_64")]
// Rows and vectors are indices of several arrays at once.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::{Job, NARROW, height, width};

/// # Safety
/// As for [`super::Tile::run`]; the processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run(job: &Job<f32>) {
    let rows = height(job.rows);
    let part = if rows == 12 { 6 } else { 4 };
    for row in (0..rows).step_by(part) {
        for column in (0..width(job.columns)).step_by(NARROW) {
            // SAFETY: same requirements as this function.
            unsafe {
                match part {
                    6 => tile::<6>(job, row, column),
                    _ => tile::<4>(job, row, column),
                }
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const ROWS: usize>(job: &Job<f32>, row: usize, column: usize) {
    let panel = width(job.columns);
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    // SAFETY: `job` guarantees the reads.
    unsafe {
        let mut b = job.b.add(column);
        for &segment in job.segments {
            for k in 0..job.steps {
                let columns = [_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8))];
                for r in 0..ROWS {
                    let x = _mm256_set1_ps(*job.a[row + r].add(segment + k));
                    for v in 0..2 {
                        sums[r][v] = _mm256_fmadd_ps(x, columns[v], sums[r][v]);
                    }
                }
                b = b.add(panel);
            }
        }
    }
    let count = job.columns.saturating_sub(column).min(NARROW);
    for (r, sums) in sums.iter().enumerate().take(job.rows.saturating_sub(row)) {
        let mut values = [0f32; NARROW];
        // SAFETY: both halves are within `values`; the rest within `rows` and `columns`.
        unsafe {
            _mm256_storeu_ps(values.as_mut_ptr(), sums[0]);
            _mm256_storeu_ps(values.as_mut_ptr().add(8), sums[1]);
            let to = std::slice::from_raw_parts_mut(job.c[row + r].add(column), count);
            for (to, value) in to.iter_mut().zip(values) {
                *to = if job.add { *to + value } else { value };
            }
        }
    }
}
