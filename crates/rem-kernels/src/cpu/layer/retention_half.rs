//! The retention half: norm, projections, retention, norm over heads with its gate, projection, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, add_bias, norm_back,
    row_sums, weight_gradient,
};
use crate::cpu::dropout::Dropout;
use crate::cpu::level::Level;
use crate::cpu::math::Activation;
use crate::cpu::norm;
use crate::cpu::packed::Packed;
use crate::cpu::product::{Dense, Rows, SharedMut, product};
use crate::cpu::retention::{self, Plan, Projections};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::{Tile, with_tile};

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
        norm::gated_norm_back(
            self.level,
            &self.dropped(i),
            self.gate(i),
            self.heads,
            d,
            d_gate,
        );
        self.dropout.apply(self.level, i, d);
    }
}

impl Rows for Gated<'_> {
    fn width(&self) -> usize {
        self.width
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        norm::gated_norm(
            self.level,
            &self.dropped(i),
            self.gate(i),
            self.heads,
            buffer,
        );
        buffer
    }
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
fn project<T: Tile>(
    tile: T,
    packed: &impl Packed,
    rows: &impl Rows,
    pair: [Linear; 2],
    out: &mut [f32],
) {
    let bias = [pair[0].bias, pair[1].bias].concat();
    let weights = packed.panels(tile, &[pair[0].weight, pair[1].weight], rows.width(), false);
    product(tile, rows, &weights, out, |first, rows| {
        add_bias(tile.level(), first, rows, &bias)
    });
}

/// The gradients of two linear layers side by side.
fn project_back<T: Tile>(
    tile: T,
    rows: &impl Rows,
    d_out: &[f32],
    count: usize,
) -> [LinearGradient; 2] {
    let width = rows.width();
    let d_out = Dense::new(d_out, 2 * width);
    let weight = weight_gradient(tile, rows, &d_out, count);
    let bias = row_sums(tile.level(), &d_out, count);
    std::array::from_fn(|i| LinearGradient {
        weight: weight
            .chunks_exact(2 * width)
            .flat_map(|row| &row[i * width..][..width])
            .copied()
            .collect(),
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
        packed: &impl Packed,
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
            project(tile, packed, &normed, [self.key, self.value], &mut kept.keys_values);
            let normed = Outputs { rows: normed, plan };
            project(tile, packed, &normed, [self.query, self.gate], &mut kept.queries);
            let p = Projections { queries: &kept.queries, keys_values: &kept.keys_values };
            retention::forward(tile, plan, p, start, &mut kept.states, whole, &mut kept.retained);
            let weights = packed.panels(tile, &[self.out.weight], width, false);
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

    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        mode: Mode,
        packed: &impl Packed,
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
            let shared = &SharedMut(d_queries.as_mut_ptr());
            let turned = packed.panels(tile, &[self.out.weight], width, true);
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
            let weights = [self.query.weight, self.gate.weight];
            let turned = packed.panels(tile, &weights, width, true);
            product(tile, &Dense::new(&d_queries, 2 * width), &turned, &mut inner, |_, _| {});
            let pick = |row: usize| plan.output_of(row).map(|i| &inner[i * width..][..width]);
            let past = |row: usize| plan.output_of(row).map(|i| &d_out[i * width..][..width]);
            let weights = [self.key.weight, self.value.weight];
            let (x, norm) = norm_back(tile, packed, &normed, &d_keys_values, &weights, pick, past);
            RetentionGradient { x, norm, linears: [query, key, value, gate, out] }
        })
    }
}
