//! The feed-forward sublayer: norm, two linear layers with an activation between them, residual.

use super::{
    Activated, Linear, LinearGradient, Mode, Norm, NormGradient, Normed, finish_rows,
    norm_backward, row_sums, weight_gradient,
};
use crate::cpu::dropout::Dropout;
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::matmul::{Dense, matmul};
use crate::cpu::pack::Packer;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::tile::with_tile;

/// The feed-forward sublayer's parameters.
#[derive(Clone, Copy)]
pub struct FeedForwardSublayer<'a> {
    /// The layer norm in front.
    pub norm: Norm<'a>,
    /// The first linear layer.
    pub up: Linear<'a>,
    /// The second linear layer.
    pub down: Linear<'a>,
    /// The activation between the linear layers.
    pub activation: Activation,
    /// Dropout after the activation.
    pub hidden_dropout: Dropout,
    /// Dropout of the output.
    pub dropout: Dropout,
}

/// Gradients of a [`FeedForwardSublayer`].
pub struct FeedForwardGradient {
    /// Of the input.
    pub x: Vec<f32>,
    /// The layer norm in front.
    pub norm: NormGradient,
    /// The first linear layer.
    pub up: LinearGradient,
    /// The second linear layer.
    pub down: LinearGradient,
}

impl FeedForwardSublayer<'_> {
    fn activated<'a>(&self, isa: Isa, hidden: &'a [f32]) -> Activated<'a> {
        Activated {
            isa,
            x: hidden,
            width: self.up.bias.len(),
            activation: self.activation,
            dropout: self.hidden_dropout,
        }
    }

    /// `x + dropout(W₂ dropout(activation(W₁ norm(x))))`, and the output of `W₁`: `[rows, hidden]`.
    pub fn forward(&self, mode: Mode, packer: &impl Packer, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (isa, width, inner) = (mode.isa, self.norm.gamma.len(), self.up.bias.len());
        let rows = x.len() / width;
        let mut hidden = uninit_vec(rows * inner);
        let mut out = uninit_vec(rows * width);
        with_tile!(isa, mode.precision, tile => {
            let normed = Normed { isa, x, norm: self.norm };
            let up = packer.panels(tile, &[self.up.weight], width, false);
            matmul(tile, &normed, &up, &mut hidden, |first, rows| {
                finish_rows(isa, first, rows, self.up.bias, Dropout::NONE, None);
            });
            let down = packer.panels(tile, &[self.down.weight], inner, false);
            matmul(tile, &self.activated(isa, &hidden), &down, &mut out, |first, rows| {
                finish_rows(isa, first, rows, self.down.bias, self.dropout, Some(x));
            });
        });
        (out, hidden)
    }

    /// Gradients of the input and of all parameters, from that of the output.
    pub fn backward(
        &self,
        mode: Mode,
        packer: &impl Packer,
        x: &[f32],
        hidden: &[f32],
        d_out: &[f32],
    ) -> FeedForwardGradient {
        let (isa, width, inner) = (mode.isa, self.norm.gamma.len(), self.up.bias.len());
        let rows = x.len() / width;
        with_tile!(isa, mode.precision, tile => {
            let dropped = Activated {
                isa,
                x: d_out,
                width,
                activation: Activation::None,
                dropout: self.dropout,
            };
            let activated = self.activated(isa, hidden);
            let down = LinearGradient {
                weight: weight_gradient(tile, &activated, &dropped, rows),
                bias: row_sums(isa, &dropped, rows),
            };
            let mut d_hidden = uninit_vec(rows * inner);
            let transposed = packer.panels(tile, &[self.down.weight], inner, true);
            matmul(tile, &dropped, &transposed, &mut d_hidden, |first, rows| {
                for (i, row) in rows.chunks_exact_mut(inner).enumerate() {
                    activated.backward(first + i, row);
                }
            });
            let normed = Normed { isa, x, norm: self.norm };
            let all = Dense::new(&d_hidden, inner);
            let up = LinearGradient {
                weight: weight_gradient(tile, &normed, &all, rows),
                bias: row_sums(isa, &all, rows),
            };
            let past = |row: usize| Some(&d_out[row * width..][..width]);
            let (x, norm) = norm_backward(tile, packer, &normed, &d_hidden, &[self.up.weight], |_| None, past);
            FeedForwardGradient { x, norm, up, down }
        })
    }
}
