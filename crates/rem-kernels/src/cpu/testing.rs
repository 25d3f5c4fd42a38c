//! Test inputs and tolerances.

use super::tile::Precision;

/// Reproducible numbers in about [-1, 1].
pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    for _ in 0..8 {
        next();
    }
    (0..count).map(|_| next()).collect()
}

/// `a · b` in f64.
pub fn matmul_f64(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> {
    let at = |i: usize, j: usize| {
        (0..k)
            .map(|x| f64::from(a[i * k + x]) * f64::from(b[x * n + j]))
            .sum::<f64>() as f32
    };
    (0..m * n).map(|i| at(i / n, i % n)).collect()
}

/// Panics unless sums of `terms` products of numbers in [-1, 1] are as close as the precision allows.
pub fn close(found: &[f32], expected: &[f32], terms: usize, precision: Precision, what: &str) {
    assert_eq!(found.len(), expected.len());
    let unit = match precision {
        Precision::F32 => 1e-6,
        Precision::Mixed => 8e-3,
    };
    let tolerance = unit * (terms as f32).sqrt().max(1.0) * 1.5;
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() <= tolerance,
            "{what}: {f} for {e} at {i} ({precision:?})"
        );
    }
}
