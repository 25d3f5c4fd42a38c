//! Transposition of matrices of 32-bit elements.

use super::isa::Isa;

/// `to[j][i] = from[i][j]` for `rows` x `columns` elements; strides are from one row to the next.
pub fn transpose(
    isa: Isa,
    from: &[f32],
    from_stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [f32],
    to_stride: usize,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(
        from.len() >= (rows - 1) * from_stride + columns && columns <= from_stride.max(columns)
    );
    assert!(to.len() >= (columns - 1) * to_stride + rows);
    let (whole_rows, whole_columns) = (rows / 16 * 16, columns / 16 * 16);
    for i in (0..whole_rows).step_by(16) {
        for j in (0..whole_columns).step_by(16) {
            let (from, to) = (&from[i * from_stride + j..], &mut to[j * to_stride + i..]);
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 | Isa::Avx512Bf16 => {
                    assert!(from.len() >= 15 * from_stride + 16 && to.len() >= 15 * to_stride + 16);
                    // SAFETY: 16 rows of 16 elements fit both, and the processor supports the instruction set.
                    unsafe { block_avx512(from.as_ptr(), from_stride, to.as_mut_ptr(), to_stride) };
                }
                _ => block(from, from_stride, to, to_stride),
            }
        }
    }
    for i in 0..rows {
        let start = if i < whole_rows { whole_columns } else { 0 };
        for j in start..columns {
            to[j * to_stride + i] = from[i * from_stride + j];
        }
    }
}

fn block(from: &[f32], from_stride: usize, to: &mut [f32], to_stride: usize) {
    for j in 0..16 {
        for i in 0..16 {
            to[j * to_stride + i] = from[i * from_stride + j];
        }
    }
}

/// # Safety
/// 16 rows of 16 elements at both pointers; the processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn block_avx512(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::*;
    let mut a = [_mm512_setzero_ps(); 16];
    for (i, a) in a.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        *a = unsafe { _mm512_loadu_ps(from.add(i * from_stride)) };
    }
    // Pairs of rows, then pairs of pairs, within lanes of four elements.
    let mut b = a;
    for i in (0..16).step_by(2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    let double = |x| _mm512_castps_pd(x);
    for i in (0..16).step_by(4) {
        for half in 0..2 {
            let (low, high) = (double(b[i + half]), double(b[i + half + 2]));
            a[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            a[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    }
    // Now a[4 g + c] holds, in lane l, column 4 l + c of rows 4 g to 4 g + 3: transpose the lanes.
    for c in 0..4 {
        let low_01 = _mm512_shuffle_f32x4::<0x88>(a[c], a[4 + c]);
        let high_01 = _mm512_shuffle_f32x4::<0xdd>(a[c], a[4 + c]);
        let low_23 = _mm512_shuffle_f32x4::<0x88>(a[8 + c], a[12 + c]);
        let high_23 = _mm512_shuffle_f32x4::<0xdd>(a[8 + c], a[12 + c]);
        // low_01: lanes (0, 2) of group 0, lanes (0, 2) of group 1
        b[c] = _mm512_shuffle_f32x4::<0x88>(low_01, low_23);
        b[8 + c] = _mm512_shuffle_f32x4::<0xdd>(low_01, low_23);
        b[4 + c] = _mm512_shuffle_f32x4::<0x88>(high_01, high_23);
        b[12 + c] = _mm512_shuffle_f32x4::<0xdd>(high_01, high_23);
    }
    for (j, b) in b.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_ps(to.add(j * to_stride), *b) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    #[test]
    fn transpose_moves_every_element() {
        for (rows, columns) in [(1, 1), (16, 16), (17, 33), (65, 64), (40, 7), (3, 50)] {
            let (from_stride, to_stride) = (columns + 3, rows + 1);
            let from = numbers(rows * from_stride, 1);
            for isa in Isa::available() {
                let mut to = vec![0f32; columns * to_stride];
                transpose(isa, &from, from_stride, rows, columns, &mut to, to_stride);
                for i in 0..rows {
                    for j in 0..columns {
                        assert_eq!(
                            to[j * to_stride + i],
                            from[i * from_stride + j],
                            "{rows} x {columns}"
                        );
                    }
                }
            }
        }
    }
}
