//! The two halves of a RetNet layer, forward and backward: retention and feed-forward, each from its norm to
//! its residual. What lies between is either kept for the backward pass or made again from what is.

use std::sync::Mutex;

use super::dropout::Dropout;
use super::level::{Level, vectorised};
use super::math::{self, Activation};
use super::norm;
use super::product::{Dense, Panels, Rows, product, transposed_product};
use super::retention::{self, Plan, Projections};
use super::scratch::unfilled;
use super::tile::{Precision, Tile, with_tile};

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

/// Retained values through dropout, the norm over heads, and the gate.
struct Gated<'a> {
    level: Level,
    retained: &'a [f32],
    /// Queries and gates side by side.
    queries: &'a [f32],
    width: usize,
    heads: usize,
    dropout: Dropout,
}

impl Gated<'_> {
    fn gate(&self, i: usize) -> &[f32] {
        &self.queries[(2 * i + 1) * self.width..][..self.width]
    }

    /// Row `i` of what the norm sees, where dropout changes it.
    fn dropped(&self, i: usize) -> std::borrow::Cow<'_, [f32]> {
        let x = &self.retained[i * self.width..][..self.width];
        if self.dropout.is_off() {
            return x.into();
        }
        let mut x = x.to_vec();
        self.dropout.apply(self.level, i, &mut x);
        x.into()
    }

    fn back(&self, i: usize, d: &mut [f32], d_gate: &mut [f32]) {
        norm::gated_norm_back(self.level, &self.dropped(i), self.gate(i), self.heads, d, d_gate);
        self.dropout.apply(self.level, i, d);
    }
}

impl Rows for Gated<'_> {
    fn width(&self) -> usize {
        self.width
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        norm::gated_norm(self.level, &self.dropped(i), self.gate(i), self.heads, buffer);
        buffer
    }
}

/// Panels of weights side by side: B is `[inputs, outputs of all]`.
pub fn panels<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
    let outputs = weights[0].len() / inputs;
    Panels::pack(tile, 1, inputs, outputs * weights.len(), |_, k, first, to: &mut [f32]| {
        let mut first = first;
        let mut to = to;
        while !to.is_empty() {
            let (which, column) = (first / outputs, first % outputs);
            let count = to.len().min(outputs - column);
            let (now, rest) = to.split_at_mut(count);
            now.copy_from_slice(&weights[which][k * outputs + column..][..count]);
            (to, first) = (rest, first + count);
        }
    })
}

/// Panels of the transpose of weights side by side: B is `[outputs of all, inputs]`.
pub fn panels_turned<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
    let outputs = weights[0].len() / inputs;
    Panels::pack(tile, 1, outputs * weights.len(), inputs, |_, k, first, to: &mut [f32]| {
        let (weight, column) = (weights[k / outputs], k % outputs);
        for (i, to) in to.iter_mut().enumerate() {
            *to = weight[(first + i) * outputs + column];
        }
    })
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
        self.blocks.lock().expect("no panic while locked").push((first, sums));
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
    let turned = panels_turned(tile, weights, width);
    product(tile, &Dense::new(d_out, columns), &turned, &mut d_x, |first, rows| {
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
    });
    let mut gamma = sums.total(level);
    let beta = gamma.split_off(width);
    (d_x, NormGradient { gamma, beta })
}

/// The retention half's parameters.
#[derive(Clone, Copy)]
pub struct RetentionHalf<'a> {
    pub norm: Norm<'a>,
    pub query: Linear<'a>,
    pub key: Linear<'a>,
    pub value: Linear<'a>,
    pub gate: Linear<'a>,
    pub out: Linear<'a>,
    pub dropout: Dropout,
}

/// What [`RetentionHalf::forward`] leaves for the backward pass.
pub struct RetentionKept {
    /// Queries and gates, `[outputs, 2 * width]`
    pub queries: Vec<f32>,
    /// `[rows, 2 * width]`
    pub keys_values: Vec<f32>,
    /// `[outputs, width]`
    pub retained: Vec<f32>,
    /// After each piece, `[batch, heads, pieces, head_dim, head_dim]`
    pub states: Vec<f32>,
}

impl RetentionKept {
    fn borrowed(&self) -> Kept<'_> {
        Kept {
            queries: &self.queries,
            keys_values: &self.keys_values,
            retained: &self.retained,
            states: &self.states,
        }
    }
}

/// A [`RetentionKept`], borrowed.
#[derive(Clone, Copy)]
pub struct Kept<'a> {
    pub queries: &'a [f32],
    pub keys_values: &'a [f32],
    pub retained: &'a [f32],
    pub states: &'a [f32],
}

impl<'a> Kept<'a> {
    fn projections(self) -> Projections<'a> {
        Projections {
            queries: self.queries,
            keys_values: self.keys_values,
        }
    }
}

pub struct RetentionGradient {
    pub x: Vec<f32>,
    pub norm: NormGradient,
    /// Queries, keys, values, gates, outputs.
    pub linears: [LinearGradient; 5],
}

/// The rows of another that belong to a plan's outputs.
struct Outputs<'a, R> {
    rows: R,
    plan: &'a Plan<'a>,
}

impl<R: Rows> Rows for Outputs<'_, R> {
    fn width(&self) -> usize {
        self.rows.width()
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        self.rows.row(self.plan.row_of(i), buffer)
    }
}

/// Two linear layers side by side on the same rows: `[rows, 2 * width]`.
fn project<T: Tile>(tile: T, rows: &impl Rows, pair: [Linear; 2], out: &mut [f32]) {
    let bias = [pair[0].bias, pair[1].bias].concat();
    let weights = panels(tile, &[pair[0].weight, pair[1].weight], rows.width());
    product(tile, rows, &weights, out, |first, rows| add_bias(tile.level(), first, rows, &bias));
}

/// The gradients of two linear layers side by side.
fn project_back<T: Tile>(tile: T, rows: &impl Rows, d_out: &[f32], count: usize) -> [LinearGradient; 2] {
    let width = rows.width();
    let d_out = Dense::new(d_out, 2 * width);
    let weight = weight_gradient(tile, rows, &d_out, count);
    let bias = row_sums(tile.level(), &d_out, count);
    std::array::from_fn(|i| LinearGradient {
        weight: weight.chunks_exact(2 * width).flat_map(|row| &row[i * width..][..width]).copied().collect(),
        bias: bias[i * width..][..width].to_vec(),
    })
}

impl RetentionHalf<'_> {
    fn gated<'a>(&self, level: Level, plan: &Plan, kept: Kept<'a>) -> Gated<'a> {
        Gated {
            level,
            retained: kept.retained,
            queries: kept.queries,
            width: plan.width(),
            heads: plan.heads,
            dropout: self.dropout.place(0),
        }
    }

    /// `x + dropout(W (gate ∘ norm(dropout(retention(norm(x))))))` for the plan's outputs; `whole` also gives
    /// the last state.
    pub fn forward(
        &self,
        mode: Mode,
        plan: &Plan,
        x: &[f32],
        start: Option<&[f32]>,
        whole: bool,
    ) -> (Vec<f32>, RetentionKept) {
        let (level, width, outputs) = (mode.level, plan.width(), plan.outputs());
        assert_eq!(x.len(), plan.rows() * width);
        let mut kept = RetentionKept {
            queries: unfilled(outputs * 2 * width),
            keys_values: unfilled(plan.rows() * 2 * width),
            retained: unfilled(outputs * width),
            states: unfilled(plan.states_len()),
        };
        let mut out = unfilled(outputs * width);
        with_tile!(level, mode.precision, tile => {
            let normed = Normed { level, x, norm: self.norm };
            project(tile, &normed, [self.key, self.value], &mut kept.keys_values);
            let normed = Outputs { rows: normed, plan };
            project(tile, &normed, [self.query, self.gate], &mut kept.queries);
            let p = Projections { queries: &kept.queries, keys_values: &kept.keys_values };
            retention::forward(tile, plan, p, start, &mut kept.states, whole, &mut kept.retained);
            let weights = panels(tile, &[self.out.weight], width);
            product(tile, &self.gated(level, plan, kept.borrowed()), &weights, &mut out, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    norm::add(level, row, self.out.bias);
                    self.dropout.place(1).apply(level, first + i, row);
                    norm::add(level, row, &x[plan.row_of(first + i) * width..][..width]);
                }
            });
        });
        (out, kept)
    }

    pub fn backward(
        &self,
        mode: Mode,
        plan: &Plan,
        x: &[f32],
        start: Option<&[f32]>,
        kept: Kept,
        d_out: &[f32],
    ) -> RetentionGradient {
        let (level, width, outputs) = (mode.level, plan.width(), plan.outputs());
        with_tile!(level, mode.precision, tile => {
            let dropped = Activated {
                level,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout.place(1),
            };
            let gated = self.gated(level, plan, kept);
            let out = LinearGradient {
                weight: weight_gradient(tile, &gated, &dropped, outputs),
                bias: row_sums(level, &dropped, outputs),
            };
            let mut d_queries = unfilled::<f32>(outputs * 2 * width);
            let mut d_keys_values = unfilled::<f32>(plan.rows() * 2 * width);
            let mut d_retained = unfilled(outputs * width);
            let shared = &super::product::SharedMut(d_queries.as_mut_ptr());
            let turned = panels_turned(tile, &[self.out.weight], width);
            product(tile, &dropped, &turned, &mut d_retained, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    // SAFETY: the gate's place in this row; every row belongs to one block.
                    let d_gate = unsafe {
                        let at = (2 * (first + i) + 1) * width;
                        std::slice::from_raw_parts_mut(shared.0.add(at), width)
                    };
                    gated.back(first + i, row, d_gate);
                }
            });
            retention::backward(
                tile,
                plan,
                kept.projections(),
                start,
                kept.states,
                &d_retained,
                &mut d_queries,
                &mut d_keys_values,
            );

            let normed = Normed { level, x, norm: self.norm };
            let [key, value] = project_back(tile, &normed, &d_keys_values, plan.rows());
            let seen = Outputs { rows: Normed { level, x, norm: self.norm }, plan };
            let [query, gate] = project_back(tile, &seen, &d_queries, outputs);
            // What queries and gates send to their rows of the norm's output.
            let mut inner = d_retained;
            let turned = panels_turned(tile, &[self.query.weight, self.gate.weight], width);
            product(tile, &Dense::new(&d_queries, 2 * width), &turned, &mut inner, |_, _| {});
            let pick = |row: usize| plan.output_of(row).map(|i| &inner[i * width..][..width]);
            let past = |row: usize| plan.output_of(row).map(|i| &d_out[i * width..][..width]);
            let weights = [self.key.weight, self.value.weight];
            let (x, norm) = norm_back(tile, &normed, &d_keys_values, &weights, pick, past);
            RetentionGradient { x, norm, linears: [query, key, value, gate, out] }
        })
    }
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

/// The feed-forward half's parameters.
#[derive(Clone, Copy)]
pub struct FeedForwardHalf<'a> {
    pub norm: Norm<'a>,
    pub up: Linear<'a>,
    pub down: Linear<'a>,
    pub activation: Activation,
    pub dropout: Dropout,
}

pub struct FeedForwardGradient {
    pub x: Vec<f32>,
    pub norm: NormGradient,
    pub up: LinearGradient,
    pub down: LinearGradient,
}

impl FeedForwardHalf<'_> {
    fn activated<'a>(&self, level: Level, hidden: &'a [f32]) -> Activated<'a> {
        Activated {
            level,
            x: hidden,
            width: self.up.bias.len(),
            activation: self.activation,
            dropout: self.dropout.place(0),
        }
    }

    /// `x + dropout(W₂ dropout(activation(W₁ norm(x))))`, and what `W₁` gave: `[rows, hidden]`.
    pub fn forward(&self, mode: Mode, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (level, width, inner) = (mode.level, self.norm.gamma.len(), self.up.bias.len());
        let rows = x.len() / width;
        let mut hidden = unfilled(rows * inner);
        let mut out = unfilled(rows * width);
        with_tile!(level, mode.precision, tile => {
            let normed = Normed { level, x, norm: self.norm };
            let up = panels(tile, &[self.up.weight], width);
            product(tile, &normed, &up, &mut hidden, |first, rows| {
                finish_rows(level, first, rows, self.up.bias, Dropout::NONE, None);
            });
            let down = panels(tile, &[self.down.weight], inner);
            product(tile, &self.activated(level, &hidden), &down, &mut out, |first, rows| {
                finish_rows(level, first, rows, self.down.bias, self.dropout.place(1), Some(x));
            });
        });
        (out, hidden)
    }

    pub fn backward(&self, mode: Mode, x: &[f32], hidden: &[f32], d_out: &[f32]) -> FeedForwardGradient {
        let (level, width, inner) = (mode.level, self.norm.gamma.len(), self.up.bias.len());
        let rows = x.len() / width;
        with_tile!(level, mode.precision, tile => {
            let dropped = Activated {
                level,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout.place(1),
            };
            let activated = self.activated(level, hidden);
            let down = LinearGradient {
                weight: weight_gradient(tile, &activated, &dropped, rows),
                bias: row_sums(level, &dropped, rows),
            };
            let mut d_hidden = unfilled(rows * inner);
            let turned = panels_turned(tile, &[self.down.weight], inner);
            product(tile, &dropped, &turned, &mut d_hidden, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(inner).enumerate() {
                    activated.back(first + i, row);
                }
            });
            let normed = Normed { level, x, norm: self.norm };
            let all = Dense::new(&d_hidden, inner);
            let up = LinearGradient {
                weight: weight_gradient(tile, &normed, &all, rows),
                bias: row_sums(level, &all, rows),
            };
            let past = |row: usize| Some(&d_out[row * width..][..width]);
            let (x, norm) = norm_back(tile, &normed, &d_hidden, &[self.up.weight], |_| None, past);
            FeedForwardGradient { x, norm, up, down }
        })
    }
}
