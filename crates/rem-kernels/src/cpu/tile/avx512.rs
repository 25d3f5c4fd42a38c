//! AVX-512: 12 x 32 sums in 24 registers.

#![cfg(target_arch = "x86_64")]
// Rows and vectors are indices of several arrays at once.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::{Job, NARROW, height};

/// # Safety
/// As [`super::Tile::run`]; the processor has AVX-512 with BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn run_bf16(job: &Job<u16>) {
    // SAFETY: handed on.
    unsafe {
        match (height(job.rows), job.columns <= NARROW) {
            (12, false) => bf16::<12, 2>(job),
            (12, true) => bf16::<12, 1>(job),
            (8, false) => bf16::<8, 2>(job),
            (8, true) => bf16::<8, 1>(job),
            (_, false) => bf16::<4, 2>(job),
            (_, true) => bf16::<4, 1>(job),
        }
    }
}

/// # Safety
/// As [`super::Tile::run`]; the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn run_f32(job: &Job<f32>) {
    // SAFETY: handed on.
    unsafe {
        match (height(job.rows), job.columns <= NARROW) {
            (12, false) => f32::<12, 2>(job),
            (12, true) => f32::<12, 1>(job),
            (8, false) => f32::<8, 2>(job),
            (8, true) => f32::<8, 1>(job),
            (_, false) => f32::<4, 2>(job),
            (_, true) => f32::<4, 1>(job),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn bf16<const ROWS: usize, const VECTORS: usize>(job: &Job<u16>) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    let mut b = job.b.cast::<__m512i>();
    // SAFETY: `job` promises the reads; every row and panel is `steps` pairs long in each segment.
    unsafe {
        for &segment in job.segments {
            let mut a = [std::ptr::null::<i32>(); ROWS];
            for r in 0..ROWS {
                a[r] = job.a[r].add(segment).cast();
            }
            for k in 0..job.steps {
                let mut columns = [_mm512_setzero_si512(); VECTORS];
                for v in 0..VECTORS {
                    columns[v] = b.add(v).read_unaligned();
                }
                for r in 0..ROWS {
                    let x = _mm512_set1_epi32(a[r].add(k).read_unaligned());
                    for v in 0..VECTORS {
                        sums[r][v] = _mm512_dpbf16_ps(
                            sums[r][v],
                            std::mem::transmute::<__m512i, __m512bh>(x),
                            std::mem::transmute::<__m512i, __m512bh>(columns[v]),
                        );
                    }
                }
                b = b.add(VECTORS);
            }
        }
        store(&sums, job.c, job.rows, job.columns, job.add);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn f32<const ROWS: usize, const VECTORS: usize>(job: &Job<f32>) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    let mut b = job.b;
    // SAFETY: as in `bf16`.
    unsafe {
        for &segment in job.segments {
            let mut a = [std::ptr::null::<f32>(); ROWS];
            for r in 0..ROWS {
                a[r] = job.a[r].add(segment);
            }
            for k in 0..job.steps {
                let mut columns = [_mm512_setzero_ps(); VECTORS];
                for v in 0..VECTORS {
                    columns[v] = _mm512_loadu_ps(b.add(v * 16));
                }
                for r in 0..ROWS {
                    let x = _mm512_set1_ps(*a[r].add(k));
                    for v in 0..VECTORS {
                        sums[r][v] = _mm512_fmadd_ps(x, columns[v], sums[r][v]);
                    }
                }
                b = b.add(VECTORS * 16);
            }
        }
        store(&sums, job.c, job.rows, job.columns, job.add);
    }
}

/// # Safety
/// The first `rows` of `c` are valid for `columns` elements, at most 16 times `VECTORS`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store<const ROWS: usize, const VECTORS: usize>(
    sums: &[[__m512; VECTORS]; ROWS],
    c: [*mut f32; super::MAX_HEIGHT],
    rows: usize,
    columns: usize,
    add: bool,
) {
    for (r, row) in sums.iter().enumerate().take(rows) {
        for (v, &sum) in row.iter().enumerate() {
            let left = columns.saturating_sub(v * 16).min(16);
            let mask = ((1u32 << left) - 1) as __mmask16;
            // SAFETY: the mask keeps within `columns`.
            unsafe {
                let to = c[r].add(v * 16);
                let sum = if add {
                    _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to))
                } else {
                    sum
                };
                _mm512_mask_storeu_ps(to, mask, sum);
            }
        }
    }
}
