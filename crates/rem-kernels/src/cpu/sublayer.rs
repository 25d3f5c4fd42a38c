//! The sublayers of a layer, forward and backward: retention or attention, and feed-forward, each from its norm to
//! its residual. Intermediate results are either saved for the backward pass or recomputed in it.

mod attention;
mod feed_forward;
mod retention;

pub use attention::{AttentionGradient, AttentionSublayer};
pub use feed_forward::{FeedForwardGradient, FeedForwardSublayer};
pub use retention::{RetentionGradient, RetentionSaved, RetentionSavedRef, RetentionSublayer};

use std::sync::Mutex;

use super::dropout::Dropout;
use super::isa::{Isa, multiversion};
use super::math::{self, Activation};
use super::matmul::{Dense, Rows, matmul, matmul_transposed};
use super::norm;
use super::pack::Packer;
use super::scratch::uninit_vec;
use super::tile::{Precision, Tile};

/// A linear layer's weight `[inputs, outputs]` and bias.
#[derive(Clone, Copy)]
pub struct Linear<'a> {
    /// `[inputs, outputs]`
    pub weight: &'a [f32],
    /// `[outputs]`
    pub bias: &'a [f32],
}

/// Gradients of a [`Linear`].
pub struct LinearGradient {
    /// `[inputs, outputs]`
    pub weight: Vec<f32>,
    /// `[outputs]`
    pub bias: Vec<f32>,
}

/// Parameters of a layer norm.
#[derive(Clone, Copy)]
pub struct Norm<'a> {
    /// Scale, one per channel.
    pub gamma: &'a [f32],
    /// Shift, one per channel.
    pub beta: &'a [f32],
}

/// Gradients of a [`Norm`].
pub struct NormGradient {
    /// Scale, one per channel.
    pub gamma: Vec<f32>,
    /// Shift, one per channel.
    pub beta: Vec<f32>,
}

/// Instruction set and precision.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// The instruction set to run on.
    pub isa: Isa,
    /// Type of the factors of matrix products.
    pub precision: Precision,
}

/// The rows of a matrix after a layer norm.
pub struct Normed<'a> {
    /// The instruction set to run on.
    pub isa: Isa,
    /// The matrix.
    pub x: &'a [f32],
    /// The layer norm.
    pub norm: Norm<'a>,
}

impl Rows for Normed<'_> {
    fn width(&self) -> usize {
        self.norm.gamma.len()
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        let x = &self.x[i * self.width()..][..self.width()];
        norm::layer_norm(self.isa, x, self.norm.gamma, self.norm.beta, buffer);
        buffer
    }
}

/// The rows of a matrix after an activation and dropout.
pub struct Activated<'a> {
    /// The instruction set to run on.
    pub isa: Isa,
    /// The matrix.
    pub x: &'a [f32],
    /// Channels of a row.
    pub width: usize,
    /// The activation.
    pub activation: Activation,
    /// Dropout after the activation.
    pub dropout: Dropout,
}

impl Rows for Activated<'_> {
    fn width(&self) -> usize {
        self.width
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        let x = &self.x[i * self.width..][..self.width];
        if self.activation == Activation::None && self.dropout.is_off() {
            return x;
        }
        activate(self.isa, x, self.activation, buffer);
        self.dropout.apply(self.isa, i, buffer);
        buffer
    }
}

impl Activated<'_> {
    /// Turns the gradient of row `i`'s output into that of its input, in place.
    pub fn backward(&self, i: usize, d: &mut [f32]) {
        self.dropout.apply(self.isa, i, d);
        let x = &self.x[i * self.width..][..self.width];
        activate_backward(self.isa, x, self.activation, d);
    }
}

multiversion! {
    pub(crate) fn activate(x: &[f32], activation: Activation, out: &mut [f32]) {
        let pairs = out.iter_mut().zip(x);
        match activation {
            Activation::None => pairs.for_each(|(o, x)| *o = *x),
            Activation::Relu => pairs.for_each(|(o, x)| *o = math::relu(*x)),
            Activation::Silu => pairs.for_each(|(o, x)| *o = math::silu(*x)),
            Activation::Gelu => pairs.for_each(|(o, x)| *o = math::gelu(*x)),
        }
    }
}

multiversion! {
    pub(crate) fn activate_backward(x: &[f32], activation: Activation, d: &mut [f32]) {
        let pairs = d.iter_mut().zip(x);
        match activation {
            Activation::None => {}
            Activation::Relu => pairs.for_each(|(d, x)| *d *= math::relu_slope(*x)),
            Activation::Silu => pairs.for_each(|(d, x)| *d *= math::silu_slope(*x)),
            Activation::Gelu => pairs.for_each(|(d, x)| *d *= math::gelu_slope(*x)),
        }
    }
}

/// Adds a bias to every row.
pub fn add_bias(isa: Isa, first: usize, rows: &mut [f32], bias: &[f32]) {
    finish_rows(isa, first, rows, bias, Dropout::NONE, None);
}

/// Adds a bias to every row, applies dropout, and adds the residual.
fn finish_rows(
    isa: Isa,
    first: usize,
    rows: &mut [f32],
    bias: &[f32],
    dropout: Dropout,
    residual: Option<&[f32]>,
) {
    let width = bias.len();
    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
        norm::add(isa, row, bias);
        dropout.apply(isa, first + i, row);
        if let Some(residual) = residual {
            norm::add(isa, row, &residual[(first + i) * width..][..width]);
        }
    }
}

/// Sums over blocks of rows, added in the order of the blocks.
struct BlockSums {
    width: usize,
    blocks: Mutex<Vec<(usize, Vec<f32>)>>,
}

impl BlockSums {
    fn new(width: usize) -> Self {
        Self {
            width,
            blocks: Mutex::default(),
        }
    }
    fn zeros(&self) -> Vec<f32> {
        vec![0.0; self.width]
    }
    fn put(&self, first: usize, sums: Vec<f32>) {
        self.blocks
            .lock()
            .expect("no panic while locked")
            .push((first, sums));
    }
    fn total(self, isa: Isa) -> Vec<f32> {
        let mut total = self.zeros();
        let mut blocks = self.blocks.into_inner().expect("no panic while locked");
        blocks.sort_by_key(|(first, _)| *first);
        for (_, sums) in &blocks {
            norm::add(isa, &mut total, sums);
        }
        total
    }
}

/// Backward pass of `Normed · weights`: the gradient of the norm's input, and the norm's own gradients. `inner` is
/// added to the gradient of a row of the norm's output, `residual` to that of its input.
fn norm_backward<'r, T: Tile>(
    tile: T,
    packer: &impl Packer,
    normed: &Normed,
    d_out: &[f32],
    weights: &[&[f32]],
    inner: impl Fn(usize) -> Option<&'r [f32]> + Sync,
    residual: impl Fn(usize) -> Option<&'r [f32]> + Sync,
) -> (Vec<f32>, NormGradient) {
    let isa = tile.isa();
    let width = normed.width();
    let columns = weights.iter().map(|w| w.len()).sum::<usize>() / width;
    let mut d_x = uninit_vec(normed.x.len());
    let sums = BlockSums::new(2 * width);
    let transposed = packer.panels(tile, weights, width, true);
    matmul(
        tile,
        &Dense::new(d_out, columns),
        &transposed,
        &mut d_x,
        |first, rows| {
            let mut own = sums.zeros();
            let (d_gamma, d_beta) = own.split_at_mut(width);
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let at = (first + i) * width;
                let x = &normed.x[at..at + width];
                if let Some(inner) = inner(first + i) {
                    norm::add(isa, row, inner);
                }
                norm::layer_norm_backward(isa, x, normed.norm.gamma, row, d_gamma, d_beta);
                if let Some(residual) = residual(first + i) {
                    norm::add(isa, row, residual);
                }
            }
            sums.put(first, own);
        },
    );
    let mut gamma = sums.total(isa);
    let beta = gamma.split_off(width);
    (d_x, NormGradient { gamma, beta })
}

/// `aᵀ · b` over all rows.
pub fn weight_gradient<T: Tile>(tile: T, a: &impl Rows, b: &impl Rows, rows: usize) -> Vec<f32> {
    let mut gradient = uninit_vec(a.width() * b.width());
    matmul_transposed(tile, a, b, rows, &mut gradient);
    gradient
}

/// `width` columns from `first` on, of rows that are `stride` long.
pub(crate) fn columns(rows: &[f32], stride: usize, first: usize, width: usize) -> Vec<f32> {
    let mut columns = Vec::with_capacity(rows.len() / stride * width);
    for row in rows.chunks_exact(stride) {
        columns.extend_from_slice(&row[first..][..width]);
    }
    columns
}

/// The sum of all rows, in an order that depends on sizes only.
pub fn row_sums(isa: Isa, a: &impl Rows, rows: usize) -> Vec<f32> {
    use rayon::prelude::*;
    const BLOCK: usize = 512;
    let parts: Vec<Vec<f32>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut sums = vec![0f32; a.width()];
            let mut buffer = vec![0f32; a.width()];
            for i in block * BLOCK..rows.min((block + 1) * BLOCK) {
                norm::add(isa, &mut sums, a.row(i, &mut buffer));
            }
            sums
        })
        .collect();
    let mut total = vec![0f32; a.width()];
    for part in &parts {
        norm::add(isa, &mut total, part);
    }
    total
}
