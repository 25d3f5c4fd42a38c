//! The attention half of a Transformer's layer: norm, projections, attention, projection, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, add_bias, finish_rows,
    norm_back, row_sums, weight_gradient,
};
use crate::cpu::attention::{self, CachePlan, Plan};
use crate::cpu::dropout::Dropout;
use crate::cpu::math::Activation;
use crate::cpu::packed::Packed;
use crate::cpu::product::{Dense, product};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::{Tile, with_tile};

/// The attention half's parameters.
#[derive(Clone, Copy)]
pub struct AttentionHalf<'a> {
    pub norm: Norm<'a>,
    pub query: Linear<'a>,
    pub key: Linear<'a>,
    pub value: Linear<'a>,
    pub out: Linear<'a>,
    /// Of the output; that of the attention is in its plan.
    pub dropout: Dropout,
}

pub struct AttentionGradient {
    pub x: Vec<f32>,
    pub norm: NormGradient,
    /// Queries, keys, values, outputs.
    pub linears: [LinearGradient; 4],
}

impl AttentionHalf<'_> {
    fn width(&self) -> usize {
        self.norm.gamma.len()
    }

    fn weights(&self) -> [&[f32]; 3] {
        [self.query.weight, self.key.weight, self.value.weight]
    }

    /// Queries, keys and values side by side: `[rows, 3 * width]`.
    fn project<T: Tile>(&self, tile: T, packed: &impl Packed, x: &[f32]) -> Vec<f32> {
        let normed = Normed {
            level: tile.level(),
            x,
            norm: self.norm,
        };
        let bias = [self.query.bias, self.key.bias, self.value.bias].concat();
        let weights = packed.panels(tile, &self.weights(), self.width(), false);
        let mut out = unfilled(3 * x.len());
        product(tile, &normed, &weights, &mut out, |first, rows| {
            add_bias(tile.level(), first, rows, &bias)
        });
        out
    }

    /// `x + dropout(W attended)`
    fn finish<T: Tile>(
        &self,
        tile: T,
        packed: &impl Packed,
        x: &[f32],
        attended: &[f32],
    ) -> Vec<f32> {
        let width = self.width();
        let weights = packed.panels(tile, &[self.out.weight], width, false);
        let mut out = unfilled(x.len());
        let attended = Dense::new(attended, width);
        product(tile, &attended, &weights, &mut out, |first, rows| {
            let (level, bias) = (tile.level(), self.out.bias);
            finish_rows(level, first, rows, bias, self.dropout, Some(x));
        });
        out
    }

    /// Whole sequences: the outputs, and for the way back the projections and what was attended to.
    pub fn forward(
        &self,
        mode: Mode,
        packed: &impl Packed,
        plan: &Plan,
        x: &[f32],
    ) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        with_tile!(mode.level, mode.precision, tile => {
            let projections = self.project(tile, packed, x);
            let mut attended = unfilled(x.len());
            attention::forward(tile, plan, &projections, &mut attended);
            let out = self.finish(tile, packed, x, &attended);
            (out, projections, attended)
        })
    }

    /// New tokens after those in the cache.
    pub fn read(
        &self,
        mode: Mode,
        packed: &impl Packed,
        plan: &CachePlan,
        x: &[f32],
        cache: &mut [f32],
    ) -> Vec<f32> {
        with_tile!(mode.level, mode.precision, tile => {
            let projections = self.project(tile, packed, x);
            let mut attended = unfilled(x.len());
            attention::read(mode.level, plan, &projections, cache, &mut attended);
            self.finish(tile, packed, x, &attended)
        })
    }

    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        mode: Mode,
        packed: &impl Packed,
        plan: &Plan,
        x: &[f32],
        projections: &[f32],
        attended: &[f32],
        d_out: &[f32],
    ) -> AttentionGradient {
        let (level, width, rows) = (mode.level, self.width(), plan.rows());
        with_tile!(level, mode.precision, tile => {
            let dropped = Activated {
                level,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout,
            };
            let out = LinearGradient {
                weight: weight_gradient(tile, &Dense::new(attended, width), &dropped, rows),
                bias: row_sums(level, &dropped, rows),
            };
            let mut d_attended = unfilled::<f32>(attended.len());
            let turned = packed.panels(tile, &[self.out.weight], width, true);
            product(tile, &dropped, &turned, &mut d_attended, |_, _| {});
            let mut d_projections = unfilled::<f32>(projections.len());
            attention::backward(tile, plan, projections, &d_attended, &mut d_projections);

            let normed = Normed { level, x, norm: self.norm };
            let d = Dense::new(&d_projections, 3 * width);
            let weight = weight_gradient(tile, &normed, &d, rows);
            let bias = row_sums(level, &d, rows);
            let part = |i: usize| LinearGradient {
                weight: weight
                    .chunks_exact(3 * width)
                    .flat_map(|row| &row[i * width..][..width])
                    .copied()
                    .collect(),
                bias: bias[i * width..][..width].to_vec(),
            };
            let past = |row: usize| Some(&d_out[row * width..][..width]);
            let (x, norm) =
                norm_back(tile, packed, &normed, &d_projections, &self.weights(), |_| None, past);
            AttentionGradient { x, norm, linears: [part(0), part(1), part(2), out] }
        })
    }
}
