//! Dropout without a stored mask: a hash of the seed and the element's position decides.

use super::isa::multiversion;

/// Drops each element with probability `p` and scales the others by 1 / (1 - p).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability of dropping an element, in [0, 1).
    pub p: f32,
    /// Seed of the mask.
    pub seed: u64,
}

impl Dropout {
    /// Drops nothing.
    pub const NONE: Self = Self { p: 0.0, seed: 0 };

    /// An independent mask derived from this one, like JAX's `fold_in`.
    pub fn fold_in(self, index: u64) -> Self {
        Self {
            p: self.p,
            seed: mix(self
                .seed
                .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        }
    }

    /// Whether nothing is dropped.
    pub fn is_off(self) -> bool {
        self.p == 0.0
    }

    /// Applies the dropout to all rows of a matrix.
    pub fn apply_to_rows(self, isa: super::isa::Isa, width: usize, values: &mut [f32]) {
        use rayon::prelude::*;
        let rows = values.par_chunks_exact_mut(width).enumerate();
        rows.with_min_len(64)
            .for_each(|(row, values)| self.apply(isa, row, values));
    }

    /// Applies the dropout of row `row` to its values.
    pub fn apply(self, isa: super::isa::Isa, row: usize, values: &mut [f32]) {
        if self.is_off() {
            return;
        }
        let key = mix(self.seed ^ (row as u64).wrapping_mul(0xd134_2543_de82_ef95));
        drop_row(
            isa,
            values,
            key as u32,
            (key >> 32) as u32,
            threshold(self.p),
            1.0 / (1.0 - self.p),
        );
    }
}

/// Hashes below this are dropped.
fn threshold(p: f32) -> u32 {
    (f64::from(p) * 4_294_967_296.0).min(4_294_967_295.0) as u32
}

/// The finalizer of SplitMix64.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

multiversion! {
    fn drop_row(values: &mut [f32], low: u32, high: u32, threshold: u32, scale: f32) {
        for (i, x) in values.iter_mut().enumerate() {
            // The element's index, hashed with the row's key.
            let h = (i as u32).wrapping_mul(0x9e37_79b1) ^ low;
            let h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b) ^ high;
            let h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
            let h = h ^ (h >> 16);
            *x = if h < threshold { 0.0 } else { *x * scale };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;

    #[test]
    fn drops_a_fraction_p_and_preserves_the_mean() {
        let dropout = Dropout { p: 0.1, seed: 7 };
        let (mut sum, mut dropped, count) = (0.0, 0, 400 * 256);
        for row in 0..400 {
            let mut values = [1f32; 256];
            dropout.apply(Isa::selected(), row, &mut values);
            dropped += values.iter().filter(|v| **v == 0.0).count();
            sum += values.iter().sum::<f32>();
        }
        let share = dropped as f32 / count as f32;
        assert!((share - 0.1).abs() < 0.005, "{share}");
        assert!((sum / count as f32 - 1.0).abs() < 0.006);
    }

    #[test]
    fn adjacent_elements_and_rows_are_independent() {
        // Pairs of adjacent elements, and the same element of the next row, are both dropped in p^2 of the cases.
        let dropout = Dropout { p: 0.25, seed: 3 }.fold_in(5);
        let rows: Vec<[f32; 512]> = (0..512)
            .map(|row| {
                let mut values = [1f32; 512];
                dropout.apply(Isa::selected(), row, &mut values);
                values
            })
            .collect();
        let both = |a: f32, b: f32| usize::from(a == 0.0 && b == 0.0);
        let across: usize = rows
            .iter()
            .map(|r| r.windows(2).map(|w| both(w[0], w[1])).sum::<usize>())
            .sum();
        let down: usize = rows
            .windows(2)
            .map(|r| {
                r[0].iter()
                    .zip(&r[1])
                    .map(|(a, b)| both(*a, *b))
                    .sum::<usize>()
            })
            .sum();
        for count in [across, down] {
            let share = count as f32 / (512.0 * 511.0);
            assert!((share - 0.0625).abs() < 0.003, "{share}");
        }
    }

    #[test]
    fn masks_are_equal_on_every_isa() {
        let draw = |isa| {
            let mut values = [1f32; 100];
            Dropout { p: 0.5, seed: 1 }.apply(isa, 9, &mut values);
            values
        };
        let first = draw(Isa::Portable);
        assert!(Isa::available().all(|isa| draw(isa) == first));
    }
}
