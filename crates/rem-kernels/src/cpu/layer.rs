//! The halves of a layer, forward and backward: retention or attention, and feed-forward, each from its norm to
//! its residual. What lies between is either kept for the backward pass or made again from what is.

mod attention_half;
mod feed_forward_half;
mod retention_half;

pub use attention_half::{AttentionGradient, AttentionHalf};
pub use feed_forward_half::{FeedForwardGradient, FeedForwardHalf};
pub use retention_half::{Kept, RetentionGradient, RetentionHalf, RetentionKept};

use std::sync::Mutex;

use super::dropout::Dropout;
use super::level::{Level, vectorised};
use super::math::{self, Activation};
use super::norm;
use super::packed::Packed;
use super::product::{Dense, Rows, product, transposed_product};
use super::scratch::unfilled;
use super::tile::{Precision, Tile};

/// A linear layer's weight `[inputs, outputs]` and bias.
#[derive(Clone, Copy)]
pub struct Linear<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
}

/// Gradients of a [`Linear`].
pub struct LinearGradient {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

#[derive(Clone, Copy)]
pub struct Norm<'a> {
    pub gamma: &'a [f32],
    pub beta: &'a [f32],
}

pub struct NormGradient {
    pub gamma: Vec<f32>,
    pub beta: Vec<f32>,
}

/// How to compute: the instructions and the type of factors.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub level: Level,
    pub precision: Precision,
}

/// Rows through a layer norm.
pub struct Normed<'a> {
    pub level: Level,
    pub x: &'a [f32],
    pub norm: Norm<'a>,
}

impl Rows for Normed<'_> {
    fn width(&self) -> usize {
        self.norm.gamma.len()
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        let x = &self.x[i * self.width()..][..self.width()];
        norm::layer_norm(self.level, x, self.norm.gamma, self.norm.beta, buffer);
        buffer
    }
}

/// Rows through an activation and a dropout.
pub struct Activated<'a> {
    pub level: Level,
    pub x: &'a [f32],
    pub width: usize,
    pub activation: Activation,
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
        activate(self.level, x, self.activation, buffer);
        self.dropout.apply(self.level, i, buffer);
        buffer
    }
}

impl Activated<'_> {
    /// From the gradient of row `i`'s output to that of its input, in place.
    pub fn back(&self, i: usize, d: &mut [f32]) {
        self.dropout.apply(self.level, i, d);
        let x = &self.x[i * self.width..][..self.width];
        activate_back(self.level, x, self.activation, d);
    }
}

vectorised! {
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

vectorised! {
    pub(crate) fn activate_back(x: &[f32], activation: Activation, d: &mut [f32]) {
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
pub fn add_bias(level: Level, first: usize, rows: &mut [f32], bias: &[f32]) {
    finish_rows(level, first, rows, bias, Dropout::NONE, None);
}

/// Adds a bias to every row, then puts rows through dropout and adds them to the residual's.
fn finish_rows(
    level: Level,
    first: usize,
    rows: &mut [f32],
    bias: &[f32],
    dropout: Dropout,
    residual: Option<&[f32]>,
) {
    let width = bias.len();
    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
        norm::add(level, row, bias);
        dropout.apply(level, first + i, row);
        if let Some(residual) = residual {
            norm::add(level, row, &residual[(first + i) * width..][..width]);
        }
    }
}

/// Sums that blocks of rows add to, added up in the order of the blocks.
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
    fn fresh(&self) -> Vec<f32> {
        vec![0.0; self.width]
    }
    fn put(&self, first: usize, sums: Vec<f32>) {
        self.blocks
            .lock()
            .expect("no panic while locked")
            .push((first, sums));
    }
    fn total(self, level: Level) -> Vec<f32> {
        let mut total = self.fresh();
        let mut blocks = self.blocks.into_inner().expect("no panic while locked");
        blocks.sort_by_key(|(first, _)| *first);
        for (_, sums) in &blocks {
            norm::add(level, &mut total, sums);
        }
        total
    }
}

/// From the gradient of a product with rows out of a layer norm (`d_out` of `Normed · weights`) to the
/// gradient of the norm's input, and the norm's own gradients. `inner` gives what else reaches a row of the
/// norm's output, `residual` what reaches its input past the norm.
fn norm_back<'r, T: Tile>(
    tile: T,
    packed: &impl Packed,
    normed: &Normed,
    d_out: &[f32],
    weights: &[&[f32]],
    inner: impl Fn(usize) -> Option<&'r [f32]> + Sync,
    residual: impl Fn(usize) -> Option<&'r [f32]> + Sync,
) -> (Vec<f32>, NormGradient) {
    let level = tile.level();
    let width = normed.width();
    let columns = weights.iter().map(|w| w.len()).sum::<usize>() / width;
    let mut d_x = unfilled(normed.x.len());
    let sums = BlockSums::new(2 * width);
    let turned = packed.panels(tile, weights, width, true);
    product(
        tile,
        &Dense::new(d_out, columns),
        &turned,
        &mut d_x,
        |first, rows| {
            let mut own = sums.fresh();
            let (d_gamma, d_beta) = own.split_at_mut(width);
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let at = (first + i) * width;
                let x = &normed.x[at..at + width];
                if let Some(inner) = inner(first + i) {
                    norm::add(level, row, inner);
                }
                norm::layer_norm_back(level, x, normed.norm.gamma, row, d_gamma, d_beta);
                if let Some(residual) = residual(first + i) {
                    norm::add(level, row, residual);
                }
            }
            sums.put(first, own);
        },
    );
    let mut gamma = sums.total(level);
    let beta = gamma.split_off(width);
    (d_x, NormGradient { gamma, beta })
}

/// `aᵀ · b` over all rows.
pub fn weight_gradient<T: Tile>(tile: T, a: &impl Rows, b: &impl Rows, rows: usize) -> Vec<f32> {
    let mut gradient = unfilled(a.width() * b.width());
    transposed_product(tile, a, b, rows, &mut gradient);
    gradient
}

/// The sum of all rows, in an order that depends on the sizes alone.
pub fn row_sums(level: Level, a: &impl Rows, rows: usize) -> Vec<f32> {
    use rayon::prelude::*;
    const BLOCK: usize = 512;
    let parts: Vec<Vec<f32>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut sums = vec![0f32; a.width()];
            let mut buffer = vec![0f32; a.width()];
            for i in block * BLOCK..rows.min((block + 1) * BLOCK) {
                norm::add(level, &mut sums, a.row(i, &mut buffer));
            }
            sums
        })
        .collect();
    let mut total = vec![0f32; a.width()];
    for part in &parts {
        norm::add(level, &mut total, part);
    }
    total
}
