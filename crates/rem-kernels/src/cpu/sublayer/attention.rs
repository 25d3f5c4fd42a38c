//! The attention sublayer: norm, projections, attention, projection, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, add_bias, columns,
    finish_rows, norm_backward, row_sums, weight_gradient,
};
use crate::cpu::attention::{self, Cache, CachePlan, Plan};
use crate::cpu::dropout::Dropout;
use crate::cpu::math::Activation;
use crate::cpu::matmul::{Dense, matmul};
use crate::cpu::pack::Packer;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::tile::{Tile, with_tile};

/// The attention sublayer's parameters.
#[derive(Clone, Copy)]
pub struct AttentionSublayer<'a> {
    /// The layer norm in front.
    pub norm: Norm<'a>,
    /// Projection to queries.
    pub query: Linear<'a>,
    /// Projection to keys.
    pub key: Linear<'a>,
    /// Projection to values.
    pub value: Linear<'a>,
    /// Output projection.
    pub out: Linear<'a>,
    /// Of the output; that of the attention is in its plan.
    pub dropout: Dropout,
}

/// Gradients of an [`AttentionSublayer`].
pub struct AttentionGradient {
    /// Of the input.
    pub x: Vec<f32>,
    /// The layer norm in front.
    pub norm: NormGradient,
    /// Queries, keys, values, outputs.
    pub linears: [LinearGradient; 4],
}

impl AttentionSublayer<'_> {
    fn width(&self) -> usize {
        self.norm.gamma.len()
    }

    fn weights(&self) -> [&[f32]; 3] {
        [self.query.weight, self.key.weight, self.value.weight]
    }

    /// Queries, keys and values side by side: `[rows, 3 * width]`.
    fn project<T: Tile>(&self, tile: T, packer: &impl Packer, x: &[f32]) -> Vec<f32> {
        let normed = Normed {
            isa: tile.isa(),
            x,
            norm: self.norm,
        };
        let bias = [self.query.bias, self.key.bias, self.value.bias].concat();
        let weights = packer.panels(tile, &self.weights(), self.width(), false);
        let mut out = uninit_vec(3 * x.len());
        matmul(tile, &normed, &weights, &mut out, |first, rows| {
            add_bias(tile.isa(), first, rows, &bias)
        });
        out
    }

    /// `x + dropout(W attended)`
    fn finish<T: Tile>(
        &self,
        tile: T,
        packer: &impl Packer,
        x: &[f32],
        attended: &[f32],
    ) -> Vec<f32> {
        let width = self.width();
        let weights = packer.panels(tile, &[self.out.weight], width, false);
        let mut out = uninit_vec(x.len());
        let attended = Dense::new(attended, width);
        matmul(tile, &attended, &weights, &mut out, |first, rows| {
            let (isa, bias) = (tile.isa(), self.out.bias);
            finish_rows(isa, first, rows, bias, self.dropout, Some(x));
        });
        out
    }

    /// Whole sequences and their prediction blocks: the outputs, and for the backward pass the projections and the attention's output.
    pub fn forward(
        &self,
        mode: Mode,
        packer: &impl Packer,
        plan: &Plan,
        x: &[f32],
    ) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        with_tile!(mode.isa, mode.precision, tile => {
            let projections = self.project(tile, packer, x);
            let mut attended = uninit_vec(x.len());
            attention::forward(tile, plan, &projections, &mut attended);
            let out = self.finish(tile, packer, x, &attended);
            (out, projections, attended)
        })
    }

    /// New tokens after those in a cache.
    pub fn forward_cached(
        &self,
        mode: Mode,
        packer: &impl Packer,
        plan: &CachePlan,
        x: &[f32],
        cache: Cache,
    ) -> Vec<f32> {
        with_tile!(mode.isa, mode.precision, tile => {
            let projections = self.project(tile, packer, x);
            let mut attended = uninit_vec(x.len());
            attention::forward_cached(tile, plan, &projections, cache, &mut attended);
            self.finish(tile, packer, x, &attended)
        })
    }

    /// Gradients of the input and of all parameters, from that of the output.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        mode: Mode,
        packer: &impl Packer,
        plan: &Plan,
        x: &[f32],
        projections: &[f32],
        attended: &[f32],
        d_out: &[f32],
    ) -> AttentionGradient {
        let (isa, width, rows) = (mode.isa, self.width(), plan.rows());
        with_tile!(isa, mode.precision, tile => {
            let dropped = Activated {
                isa,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout,
            };
            let out = LinearGradient {
                weight: weight_gradient(tile, &Dense::new(attended, width), &dropped, rows),
                bias: row_sums(isa, &dropped, rows),
            };
            let mut d_attended = uninit_vec::<f32>(attended.len());
            let transposed = packer.panels(tile, &[self.out.weight], width, true);
            matmul(tile, &dropped, &transposed, &mut d_attended, |_, _| {});
            let mut d_projections = uninit_vec::<f32>(projections.len());
            attention::backward(tile, plan, projections, &d_attended, &mut d_projections);

            let normed = Normed { isa, x, norm: self.norm };
            let d = Dense::new(&d_projections, 3 * width);
            let weight = weight_gradient(tile, &normed, &d, rows);
            let bias = row_sums(isa, &d, rows);
            let part = |i: usize| LinearGradient {
                weight: columns(&weight, 3 * width, i * width, width),
                bias: bias[i * width..][..width].to_vec(),
            };
            let past = |row: usize| Some(&d_out[row * width..][..width]);
            let (x, norm) =
                norm_backward(tile, packer, &normed, &d_projections, &self.weights(), |_| None, past);
            AttentionGradient { x, norm, linears: [part(0), part(1), part(2), out] }
        })
    }
}
