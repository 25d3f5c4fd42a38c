//! The retention sublayer: norm, projections, retention, norm over heads with its gate, projection, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, add_bias, columns,
    norm_backward, row_sums, weight_gradient,
};
use crate::cpu::dropout::Dropout;
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::matmul::{Dense, Rows, SharedMut, matmul};
use crate::cpu::norm;
use crate::cpu::pack::Packer;
use crate::cpu::retention::{self, Plan, Projections};
use crate::cpu::scratch::uninit_vec;
use crate::cpu::tile::{Tile, with_tile};

/// Retained values after dropout, the norm over heads, and the gate.
struct Gated<'a> {
    isa: Isa,
    retained: &'a [f32],
    /// Queries and gates side by side.
    queries: &'a [f32],
    plan: &'a Plan<'a>,
    dropout: Dropout,
}

impl Gated<'_> {
    fn gate(&self, i: usize) -> &[f32] {
        let width = self.plan.width();
        &self.queries[(2 * self.plan.query_of(i) + 1) * width..][..width]
    }

    /// Row `i` after dropout.
    fn dropped(&self, i: usize) -> std::borrow::Cow<'_, [f32]> {
        let width = self.plan.width();
        let x = &self.retained[i * width..][..width];
        if self.dropout.is_off() {
            return x.into();
        }
        let mut x = x.to_vec();
        self.dropout.apply(self.isa, i, &mut x);
        x.into()
    }

    fn backward(&self, i: usize, d: &mut [f32], d_gate: &mut [f32]) {
        norm::gated_norm_backward(
            self.isa,
            &self.dropped(i),
            self.gate(i),
            self.plan.heads,
            d,
            d_gate,
        );
        self.dropout.apply(self.isa, i, d);
    }
}

impl Rows for Gated<'_> {
    fn width(&self) -> usize {
        self.plan.width()
    }
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32] {
        norm::gated_norm(
            self.isa,
            &self.dropped(i),
            self.gate(i),
            self.plan.heads,
            buffer,
        );
        buffer
    }
}

/// The retention sublayer's parameters.
#[derive(Clone, Copy)]
pub struct RetentionSublayer<'a> {
    /// The layer norm in front.
    pub norm: Norm<'a>,
    /// Projection to queries.
    pub query: Linear<'a>,
    /// Projection to keys.
    pub key: Linear<'a>,
    /// Projection to values.
    pub value: Linear<'a>,
    /// Projection to gates.
    pub gate: Linear<'a>,
    /// Output projection.
    pub out: Linear<'a>,
    /// Dropout inside the sublayer and of its output.
    pub dropout: Dropout,
}

/// What [`RetentionSublayer::forward`] saves for the backward pass.
pub struct RetentionSaved {
    /// Queries and gates, `[queries, 2 * width]`
    pub queries: Vec<f32>,
    /// `[rows, 2 * width]`
    pub keys_values: Vec<f32>,
    /// `[outputs, width]`
    pub retained: Vec<f32>,
    /// After each chunk, `[batch, heads, chunks, head_dim, head_dim]`
    pub states: Vec<f32>,
}

impl RetentionSaved {
    fn borrowed(&self) -> RetentionSavedRef<'_> {
        RetentionSavedRef {
            queries: &self.queries,
            keys_values: &self.keys_values,
            retained: &self.retained,
            states: &self.states,
        }
    }
}

/// A [`RetentionSaved`], borrowed.
#[derive(Clone, Copy)]
pub struct RetentionSavedRef<'a> {
    /// Queries and gates, `[queries, 2 * width]`
    pub queries: &'a [f32],
    /// Keys and values, `[rows, 2 * width]`
    pub keys_values: &'a [f32],
    /// Retained values, `[outputs, width]`
    pub retained: &'a [f32],
    /// State after each chunk, `[batch, heads, chunks, head_dim, head_dim]`
    pub states: &'a [f32],
}

impl<'a> RetentionSavedRef<'a> {
    fn projections(self) -> Projections<'a> {
        Projections {
            queries: self.queries,
            keys_values: self.keys_values,
        }
    }
}

/// Gradients of a [`RetentionSublayer`].
pub struct RetentionGradient {
    /// Of the input.
    pub x: Vec<f32>,
    /// The layer norm in front.
    pub norm: NormGradient,
    /// Queries, keys, values, gates, outputs.
    pub linears: [LinearGradient; 5],
}

/// The rows of a matrix that have queries.
struct Queries<'a, R> {
    rows: R,
    plan: &'a Plan<'a>,
}

impl<R: Rows> Rows for Queries<'_, R> {
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
    packer: &impl Packer,
    rows: &impl Rows,
    pair: [Linear; 2],
    out: &mut [f32],
) {
    let bias = [pair[0].bias, pair[1].bias].concat();
    let weights = packer.panels(tile, &[pair[0].weight, pair[1].weight], rows.width(), false);
    matmul(tile, rows, &weights, out, |first, rows| {
        add_bias(tile.isa(), first, rows, &bias)
    });
}

/// The gradients of two linear layers side by side.
fn project_backward<T: Tile>(
    tile: T,
    rows: &impl Rows,
    d_out: &[f32],
    count: usize,
) -> [LinearGradient; 2] {
    let width = rows.width();
    let d_out = Dense::new(d_out, 2 * width);
    let weight = weight_gradient(tile, rows, &d_out, count);
    let bias = row_sums(tile.isa(), &d_out, count);
    std::array::from_fn(|i| LinearGradient {
        weight: columns(&weight, 2 * width, i * width, width),
        bias: bias[i * width..][..width].to_vec(),
    })
}

impl RetentionSublayer<'_> {
    fn gated<'a>(&self, isa: Isa, plan: &'a Plan<'a>, saved: RetentionSavedRef<'a>) -> Gated<'a> {
        Gated {
            isa,
            retained: saved.retained,
            queries: saved.queries,
            plan,
            dropout: self.dropout.fold_in(0),
        }
    }

    /// `x + dropout(W (gate ∘ norm(dropout(retention(norm(x))))))` for the plan's outputs; with
    /// `last_state`, the saved states include that after the last chunk.
    pub fn forward(
        &self,
        mode: Mode,
        packer: &impl Packer,
        plan: &Plan,
        x: &[f32],
        start: Option<&[f32]>,
        last_state: bool,
    ) -> (Vec<f32>, RetentionSaved) {
        let (isa, width, outputs) = (mode.isa, plan.width(), plan.outputs());
        assert_eq!(x.len(), plan.rows() * width);
        let mut saved = RetentionSaved {
            queries: uninit_vec(plan.queries() * 2 * width),
            keys_values: uninit_vec(plan.rows() * 2 * width),
            retained: uninit_vec(outputs * width),
            states: uninit_vec(plan.states_len()),
        };
        let mut out = uninit_vec(outputs * width);
        with_tile!(isa, mode.precision, tile => {
            let normed = Normed { isa, x, norm: self.norm };
            project(tile, packer, &normed, [self.key, self.value], &mut saved.keys_values);
            let normed = Queries { rows: normed, plan };
            project(tile, packer, &normed, [self.query, self.gate], &mut saved.queries);
            let p = Projections { queries: &saved.queries, keys_values: &saved.keys_values };
            retention::forward(tile, plan, p, start, &mut saved.states, last_state, &mut saved.retained);
            let weights = packer.panels(tile, &[self.out.weight], width, false);
            matmul(tile, &self.gated(isa, plan, saved.borrowed()), &weights, &mut out, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    norm::add(isa, row, self.out.bias);
                    self.dropout.fold_in(1).apply(isa, first + i, row);
                    norm::add(isa, row, &x[plan.row_of(first + i) * width..][..width]);
                }
            });
        });
        (out, saved)
    }

    /// Gradients of the input and of all parameters, from that of the output.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        mode: Mode,
        packer: &impl Packer,
        plan: &Plan,
        x: &[f32],
        start: Option<&[f32]>,
        saved: RetentionSavedRef,
        d_out: &[f32],
    ) -> RetentionGradient {
        let (isa, width, outputs) = (mode.isa, plan.width(), plan.outputs());
        assert!(!plan.shared, "shared prediction blocks have no gradients");
        with_tile!(isa, mode.precision, tile => {
            let dropped = Activated {
                isa,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout.fold_in(1),
            };
            let gated = self.gated(isa, plan, saved);
            let out = LinearGradient {
                weight: weight_gradient(tile, &gated, &dropped, outputs),
                bias: row_sums(isa, &dropped, outputs),
            };
            let mut d_queries = uninit_vec::<f32>(outputs * 2 * width);
            let mut d_keys_values = uninit_vec::<f32>(plan.rows() * 2 * width);
            let mut d_retained = uninit_vec(outputs * width);
            let shared = &SharedMut(d_queries.as_mut_ptr());
            let transposed = packer.panels(tile, &[self.out.weight], width, true);
            matmul(tile, &dropped, &transposed, &mut d_retained, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    // SAFETY: the gate's columns of this row; every row belongs to one block.
                    let d_gate = unsafe {
                        let at = (2 * (first + i) + 1) * width;
                        std::slice::from_raw_parts_mut(shared.0.add(at), width)
                    };
                    gated.backward(first + i, row, d_gate);
                }
            });
            retention::backward(
                tile,
                plan,
                saved.projections(),
                start,
                saved.states,
                &d_retained,
                &mut d_queries,
                &mut d_keys_values,
            );

            let normed = Normed { isa, x, norm: self.norm };
            let [key, value] = project_backward(tile, &normed, &d_keys_values, plan.rows());
            let seen = Queries { rows: Normed { isa, x, norm: self.norm }, plan };
            let [query, gate] = project_backward(tile, &seen, &d_queries, outputs);
            // The queries' and gates' share of the gradient of the norm's output.
            let mut inner = d_retained;
            let weights = [self.query.weight, self.gate.weight];
            let transposed = packer.panels(tile, &weights, width, true);
            matmul(tile, &Dense::new(&d_queries, 2 * width), &transposed, &mut inner, |_, _| {});
            let pick = |row: usize| plan.output_of(row).map(|i| &inner[i * width..][..width]);
            let past = |row: usize| plan.output_of(row).map(|i| &d_out[i * width..][..width]);
            let weights = [self.key.weight, self.value.weight];
            let (x, norm) = norm_backward(tile, packer, &normed, &d_keys_values, &weights, pick, past);
            RetentionGradient { x, norm, linears: [query, key, value, gate, out] }
        })
    }
}
