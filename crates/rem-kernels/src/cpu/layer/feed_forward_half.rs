//! The feed-forward half: norm, two linear layers with an activation between them, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, finish_rows, norm_back,
    row_sums, weight_gradient,
};
use crate::cpu::dropout::Dropout;
use crate::cpu::level::Level;
use crate::cpu::math::Activation;
use crate::cpu::packed::Packed;
use crate::cpu::product::{Dense, product};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::with_tile;

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
    pub fn forward(&self, mode: Mode, packed: &impl Packed, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (level, width, inner) = (mode.level, self.norm.gamma.len(), self.up.bias.len());
        let rows = x.len() / width;
        let mut hidden = unfilled(rows * inner);
        let mut out = unfilled(rows * width);
        with_tile!(level, mode.precision, tile => {
            let normed = Normed { level, x, norm: self.norm };
            let up = packed.panels(tile, &[self.up.weight], width, false);
            product(tile, &normed, &up, &mut hidden, |first, rows| {
                finish_rows(level, first, rows, self.up.bias, Dropout::NONE, None);
            });
            let down = packed.panels(tile, &[self.down.weight], inner, false);
            product(tile, &self.activated(level, &hidden), &down, &mut out, |first, rows| {
                finish_rows(level, first, rows, self.down.bias, self.dropout.place(1), Some(x));
            });
        });
        (out, hidden)
    }

    pub fn backward(
        &self,
        mode: Mode,
        packed: &impl Packed,
        x: &[f32],
        hidden: &[f32],
        d_out: &[f32],
    ) -> FeedForwardGradient {
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
            let turned = packed.panels(tile, &[self.down.weight], inner, true);
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
            let (x, norm) = norm_back(tile, packed, &normed, &d_hidden, &[self.up.weight], |_| None, past);
            FeedForwardGradient { x, norm, up, down }
        })
    }
}
