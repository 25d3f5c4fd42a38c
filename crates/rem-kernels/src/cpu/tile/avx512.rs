//! AVX-512: 12 x 32 sums in 24 registers.

#![cfg(target_arch = "x86_64")]
// Rows and vectors are indices of several arrays at once.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::{Job, NARROW, height};

/// # Safety
/// As for [`super::Tile::run`]; the processor has AVX-512 with BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn run_bf16(job: &Job<u16>) {
    // SAFETY: same requirements as this function.
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
/// As for [`super::Tile::run`]; the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn run_f32(job: &Job<f32>) {
    // SAFETY: same requirements as this function.
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
    // SAFETY: `job` guarantees the reads; every row and panel is `steps` pairs long in each segment.
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
        store(sums, &job.c, job.rows, job.columns, job.add);
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
        store(sums, &job.c, job.rows, job.columns, job.add);
    }
}

/// # Safety
/// The first `rows` of `c` are valid for `columns` elements, at most 16 times `VECTORS`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store<const ROWS: usize, const VECTORS: usize>(
    sums: [[__m512; VECTORS]; ROWS],
    c: &[*mut f32; super::MAX_HEIGHT],
    rows: usize,
    columns: usize,
    add: bool,
) {
    let masks: [__mmask16; VECTORS] = std::array::from_fn(|v| {
        let left = columns.saturating_sub(v * 16).min(16);
        ((1u32 << left) - 1) as __mmask16
    });
    let old = if add { !0 } else { 0 };
    // Unrolled by hand: sums that a loop indexes would be spilled to memory.
    macro_rules! store_rows {
        ($($r:literal)*) => {$(
            if let Some(sums) = sums.get($r) {
                let real = if $r < rows { !0 } else { 0 };
                for v in 0..VECTORS {
                    // SAFETY: the masks keep within `rows` and `columns`.
                    unsafe {
                        let to = c[$r].wrapping_add(v * 16);
                        let mask = masks[v] & real;
                        let sum = _mm512_add_ps(sums[v], _mm512_maskz_loadu_ps(mask & old, to));
                        _mm512_mask_storeu_ps(to, mask, sum);
                    }
                }
            }
        )*};
    }
    store_rows!(0 1 2 3 4 5 6 7 8 9 10 11);
}

/// `to` in bfloat16, rounded to the nearest; in whole vectors, subnormal numbers become 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn convert(from: &[f32], to: &mut [u16]) {
    let (whole, rest) = to.as_chunks_mut::<16>();
    let (from, from_rest) = from.as_chunks::<16>();
    for (to, from) in whole.iter_mut().zip(from) {
        // SAFETY: both are of 16 elements.
        unsafe {
            let rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(from.as_ptr()));
            to.as_mut_ptr().cast::<__m256bh>().write_unaligned(rounded);
        }
    }
    for (to, from) in rest.iter_mut().zip(from_rest) {
        *to = super::bf16_bits(*from);
    }
}

/// Two rows in pairs, rounded as [`convert`] does.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn interleave(even: &[f32], odd: &[f32], to: &mut [u16]) {
    let (whole, rest) = to.as_chunks_mut::<32>();
    let (even, even_rest) = even.as_chunks::<16>();
    let (odd, odd_rest) = odd.as_chunks::<16>();
    for ((to, even), odd) in whole.iter_mut().zip(even).zip(odd) {
        // SAFETY: 16 elements are read from each row, 32 written; the types are of 256 bits.
        unsafe {
            let bits = |x: &[f32; 16]| {
                let rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x.as_ptr()));
                _mm512_cvtepu16_epi32(std::mem::transmute::<__m256bh, __m256i>(rounded))
            };
            let pairs = _mm512_or_si512(bits(even), _mm512_slli_epi32::<16>(bits(odd)));
            to.as_mut_ptr().cast::<__m512i>().write_unaligned(pairs);
        }
    }
    let pairs = rest.as_chunks_mut::<2>().0;
    for ((pair, even), odd) in pairs.iter_mut().zip(even_rest).zip(odd_rest) {
        *pair = [super::bf16_bits(*even), super::bf16_bits(*odd)];
    }
}
