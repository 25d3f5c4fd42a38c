//! Norm and activation in front of a convolution.

use rayon::prelude::*;

use super::super::group_norm::{repeated, span};
use super::super::isa::{Isa, multiversion};
use super::super::math::{self, Activation};
use super::super::sublayer::{activate, activate_backward};

/// Applied to every pixel while it is read. Padding stays zero.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// The unchanged image.
    Identity,
    /// An activation.
    Activation(Activation),
    /// `silu(group_norm(x) * gamma + beta)`
    GroupNormSilu {
        /// Groups of channels that are normalized together.
        groups: usize,
        /// Scale, one per channel.
        gamma: &'a [f32],
        /// Shift, one per channel.
        beta: &'a [f32],
        /// Of each image's groups, from `group_norm::statistics`.
        mean_and_scale: &'a [(f32, f32)],
    },
}

/// A stage with the norms of all images spread over their channels, repeated over a [`span`].
pub(super) enum Prepared {
    Activation(Activation),
    GroupNormSilu {
        /// `[n, span]`
        mean: Vec<f32>,
        /// `[n, span]`
        slope: Vec<f32>,
        /// `[span]`
        beta: Vec<f32>,
    },
}

impl Stage<'_> {
    pub(super) fn prepare(self, images: usize, channels: usize) -> Prepared {
        match self {
            Self::Identity => Prepared::Activation(Activation::None),
            Self::Activation(activation) => Prepared::Activation(activation),
            Self::GroupNormSilu {
                groups,
                gamma,
                beta,
                mean_and_scale,
            } => {
                assert_eq!(
                    channels % groups,
                    0,
                    "{channels} channels in {groups} groups"
                );
                assert_eq!(mean_and_scale.len(), images * groups);
                assert!(gamma.len() == channels && beta.len() == channels);
                let wide = span(channels);
                let of = |i: usize| {
                    let channel = i % wide % channels;
                    let (mean, scale) =
                        mean_and_scale[i / wide * groups + channel / (channels / groups)];
                    (mean, scale * gamma[channel])
                };
                Prepared::GroupNormSilu {
                    mean: (0..images * wide).map(|i| of(i).0).collect(),
                    slope: (0..images * wide).map(|i| of(i).1).collect(),
                    beta: repeated(beta.iter().copied(), channels),
                }
            }
        }
    }
}

impl Prepared {
    /// Some pixels of an image after the stage: borrowed, or computed into `buffer` of equal length.
    pub(super) fn apply<'b>(
        &self,
        isa: Isa,
        image: usize,
        x: &'b [f32],
        buffer: &'b mut [f32],
    ) -> &'b [f32] {
        match self {
            Self::Activation(Activation::None) => return x,
            Self::Activation(activation) => activate(isa, x, *activation, buffer),
            Self::GroupNormSilu { mean, slope, beta } => {
                let of_image = image * beta.len()..(image + 1) * beta.len();
                norm_silu(
                    isa,
                    x,
                    &mean[of_image.clone()],
                    &slope[of_image],
                    beta,
                    buffer,
                );
            }
        }
        buffer
    }
}

multiversion! {
    /// Normalizes pixels and applies SiLU.
    fn norm_silu(x: &[f32], mean: &[f32], slope: &[f32], beta: &[f32], out: &mut [f32]) {
        let wide = beta.len();
        for (x, out) in x.chunks(wide).zip(out.chunks_mut(wide)) {
            let parameters = mean.iter().zip(slope).zip(beta);
            for ((o, x), ((mean, slope), beta)) in out.iter_mut().zip(x).zip(parameters) {
                *o = math::silu((x - mean) * slope + beta);
            }
        }
    }
}

/// Turns the gradient of an activation's output in `d` into that of its input `x`.
pub fn activation_backward(isa: Isa, activation: Activation, x: &[f32], d: &mut [f32]) {
    const CHUNK: usize = 16 * 1024;
    assert_eq!(x.len(), d.len());
    if activation == Activation::None {
        return;
    }
    let chunks = d.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK));
    chunks.for_each(|(d, x)| activate_backward(isa, x, activation, d));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    #[test]
    fn activation_backward_multiplies_by_the_slope() {
        let x = numbers(40_000, 1);
        for isa in Isa::available() {
            for (activation, slope) in [
                (Activation::None, (|_| 1.0) as fn(f32) -> f32),
                (Activation::Relu, math::relu_slope),
                (Activation::Silu, math::silu_slope),
                (Activation::Gelu, math::gelu_slope),
            ] {
                let before = numbers(x.len(), 2);
                let mut d = before.clone();
                activation_backward(isa, activation, &x, &mut d);
                for ((d, before), x) in d.iter().zip(before).zip(&x) {
                    assert!(
                        (d - before * slope(*x)).abs() < 1e-6,
                        "{activation:?} {isa:?} at {x}"
                    );
                }
            }
        }
    }
}
