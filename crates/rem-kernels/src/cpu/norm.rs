//! Norms over rows: layer norm, and the norm over heads with its gate.

use super::isa::{Isa, multiversion};
use super::math;

/// Added to variances.
pub const EPSILON: f32 = 1e-6;

/// The sum of a function of slices of one length, in a fixed order. Sixteen lanes, then a tree.
#[inline(always)]
pub fn sum_of<const N: usize>(slices: [&[f32]; N], f: impl Fn([f32; N]) -> f32) -> f32 {
    let parts = slices.map(|slice| slice.as_chunks::<16>());
    let mut lanes = [0f32; 16];
    for i in 0..parts[0].0.len() {
        let chunk = parts.map(|(whole, _)| &whole[i]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(chunk.map(|x| x[lane]));
        }
    }
    // Through memory: otherwise the compiler narrows the loop's registers to fit the additions below.
    let lanes = std::hint::black_box(lanes);
    let eight: [f32; 8] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 8]);
    let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
    let sum = (four[0] + four[2]) + (four[1] + four[3]);
    let rest = parts.map(|(_, rest)| rest);
    (0..rest[0].len()).fold(sum, |sum, i| sum + f(rest.map(|x| x[i])))
}

/// Mean and 1 / standard deviation.
#[inline(always)]
fn moments(x: &[f32]) -> (f32, f32) {
    let count = x.len() as f32;
    let mean = sum_of([x], |[x]| x) / count;
    let variance = sum_of([x], |[x]| (x - mean) * (x - mean)) / count;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

multiversion! {
    /// `out = (x - mean) / deviation * gamma + beta`
    pub fn layer_norm(x: &[f32], gamma: &[f32], beta: &[f32], out: &mut [f32]) {
        let (mean, scale) = moments(x);
        for (((o, x), g), b) in out.iter_mut().zip(x).zip(gamma).zip(beta) {
            *o = (x - mean) * scale * g + b;
        }
    }
}

multiversion! {
    /// Backward pass of [`layer_norm`]: turns the output's gradient in `dz` into the input's, and adds the
    /// parameters' gradients to `d_gamma` and `d_beta`.
    pub fn layer_norm_backward(x: &[f32], gamma: &[f32], dz: &mut [f32], d_gamma: &mut [f32], d_beta: &mut [f32]) {
        let (mean, scale) = moments(x);
        let count = x.len() as f32;
        let sum = sum_of([dz, gamma], |[d, g]| d * g) / count;
        let projection = sum_of([dz, gamma, x], |[d, g, x]| d * g * (x - mean));
        let projection = projection * scale * scale / count;
        for ((((dz, x), g), dg), db) in dz.iter_mut().zip(x).zip(gamma).zip(d_gamma).zip(d_beta) {
            let centered = x - mean;
            *dg += *dz * centered * scale;
            *db += *dz;
            *dz = (*dz * g - sum - centered * projection) * scale;
        }
    }
}

multiversion! {
    /// Normalizes each head to mean 0 and variance 1 and multiplies by SiLU of the gate.
    pub fn gated_norm(x: &[f32], gate: &[f32], heads: usize, out: &mut [f32]) {
        let dim = x.len() / heads;
        for ((x, gate), out) in x.chunks_exact(dim).zip(gate.chunks_exact(dim)).zip(out.chunks_exact_mut(dim)) {
            let (mean, scale) = moments(x);
            for ((o, x), g) in out.iter_mut().zip(x).zip(gate) {
                *o = (x - mean) * scale * math::silu(*g);
            }
        }
    }
}

multiversion! {
    /// Backward pass of [`gated_norm`]: turns the output's gradient in `dz` into that of `x`, and sets `d_gate`.
    pub fn gated_norm_backward(x: &[f32], gate: &[f32], heads: usize, dz: &mut [f32], d_gate: &mut [f32]) {
        let dim = x.len() / heads;
        let count = dim as f32;
        for (h, (x, gate)) in x.chunks_exact(dim).zip(gate.chunks_exact(dim)).enumerate() {
            let (mean, scale) = moments(x);
            let dz = &mut dz[h * dim..][..dim];
            let d_gate = &mut d_gate[h * dim..][..dim];
            for (((dz, dg), x), g) in dz.iter_mut().zip(d_gate).zip(x).zip(gate) {
                let s = math::sigmoid(*g);
                let normed = (x - mean) * scale;
                *dg = *dz * normed * (s * (1.0 + g * (1.0 - s)));
                *dz *= g * s;
            }
            let sum = sum_of([dz], |[d]| d) / count;
            // The mean of d * (x - mean): the sum over d times the mean drops out of d * x.
            let projection = (sum_of([dz, x], |[d, x]| d * x) / count - sum * mean) * scale * scale;
            for (dz, x) in dz.iter_mut().zip(x) {
                *dz = (*dz - sum - (x - mean) * projection) * scale;
            }
        }
    }
}

multiversion! {
    /// `to += from`
    pub fn add(to: &mut [f32], from: &[f32]) {
        for (t, f) in to.iter_mut().zip(from) {
            *t += f;
        }
    }
}

/// Adds up the columns of `rows` rows of `width`, in an order that depends on sizes only.
pub fn column_sums(isa: Isa, values: &[f32], width: usize) -> Vec<f32> {
    use rayon::prelude::*;
    const ROWS: usize = 512;
    let parts: Vec<Vec<f32>> = values
        .par_chunks(ROWS * width)
        .map(|part| {
            let mut sums = vec![0f32; width];
            for row in part.chunks_exact(width) {
                add(isa, &mut sums, row);
            }
            sums
        })
        .collect();
    let mut total = vec![0f32; width];
    for part in &parts {
        add(isa, &mut total, part);
    }
    total
}
