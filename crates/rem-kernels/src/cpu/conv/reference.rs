//! Convolutions by definition, in f64.

use super::stage::Stage;
use super::{ConvKind, Shape};
use crate::cpu::math::{self, Activation};

pub(super) struct Reference {
    pub kind: ConvKind,
    pub shape: Shape,
}

impl Reference {
    /// The input pixel, unless it is padding, that kernel index `k` reads for output pixel `o`.
    fn pixel(&self, o: usize, k: usize, size: usize) -> Option<usize> {
        match self.kind {
            ConvKind::Same => (o + k).checked_sub(1).filter(|i| *i < size),
            ConvKind::Down => Some(2 * o + k).filter(|i| *i < size),
            ConvKind::Up => (o + k).checked_sub(1).map(|i| i / 2).filter(|i| *i < size),
            ConvKind::Pointwise => Some(o),
        }
    }

    /// Calls `term` with the indices in input, weight and output of every product.
    fn terms(&self, mut term: impl FnMut(usize, usize, usize)) {
        let Shape {
            images,
            height,
            width,
            c_in,
            c_out,
        } = self.shape;
        let (out_height, out_width) = self.shape.output(self.kind);
        let side = self.kind.side();
        for i in 0..images * out_height * out_width * side * side {
            let (rest, kx) = (i / side, i % side);
            let (rest, ky) = (rest / side, rest % side);
            let (image, y, x) = (
                rest / out_width / out_height,
                rest / out_width % out_height,
                rest % out_width,
            );
            let (Some(iy), Some(ix)) = (self.pixel(y, ky, height), self.pixel(x, kx, width)) else {
                continue;
            };
            let input = ((image * height + iy) * width + ix) * c_in;
            for co in 0..c_out {
                for ci in 0..c_in {
                    let weight = ((co * c_in + ci) * side + ky) * side + kx;
                    term(input + ci, weight, rest * c_out + co);
                }
            }
        }
    }

    pub(super) fn forward(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let first = |o: usize| bias.map_or(0.0, |bias| f64::from(bias[o % bias.len()]));
        let mut sums: Vec<f64> = (0..self.shape.outputs(self.kind)).map(first).collect();
        self.terms(|i, w, o| sums[o] += f64::from(x[i]) * f64::from(weight[w]));
        rounded(&sums)
    }

    pub(super) fn input_gradient(&self, weight: &[f32], d_out: &[f32]) -> Vec<f32> {
        let mut sums = vec![0f64; self.shape.inputs()];
        self.terms(|i, w, o| sums[i] += f64::from(d_out[o]) * f64::from(weight[w]));
        rounded(&sums)
    }

    pub(super) fn weight_gradient(&self, x: &[f32], d_out: &[f32]) -> Vec<f32> {
        let mut sums = vec![0f64; self.shape.weights(self.kind)];
        self.terms(|i, w, o| sums[w] += f64::from(x[i]) * f64::from(d_out[o]));
        rounded(&sums)
    }
}

fn rounded(sums: &[f64]) -> Vec<f32> {
    sums.iter().map(|sum| *sum as f32).collect()
}

/// The image after a stage.
pub(super) fn staged(shape: Shape, stage: Stage, x: &[f32]) -> Vec<f32> {
    let apply = |(i, x): (usize, &f32)| match stage {
        Stage::Identity | Stage::Activation(Activation::None) => *x,
        Stage::Activation(Activation::Relu) => x.max(0.0),
        Stage::Activation(Activation::Silu) => x / (1.0 + (-x).exp()),
        Stage::Activation(Activation::Gelu) => math::gelu(*x),
        Stage::GroupNormSilu {
            groups,
            gamma,
            beta,
            mean_and_scale,
        } => {
            let channel = i % shape.c_in;
            let image = i / (shape.height * shape.width * shape.c_in);
            let (mean, scale) = mean_and_scale[image * groups + channel * groups / shape.c_in];
            let y = (x - mean) * scale * gamma[channel] + beta[channel];
            y / (1.0 + (-y).exp())
        }
    };
    x.iter().enumerate().map(apply).collect()
}
