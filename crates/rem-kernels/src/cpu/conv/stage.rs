//! What is done to an image before it is convolved.

use rayon::prelude::*;

use super::super::group_norm::{stretch, stretched};
use super::super::layer::{activate, activate_back};
use super::super::level::{Level, vectorised};
use super::super::math::{self, Activation};

/// Applied to every pixel while it is read. Padding is not a pixel: it stays zero.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    Plain,
    Activation(Activation),
    /// `silu(group_norm(x) * gamma + beta)`
    GroupNormSilu {
        groups: usize,
        gamma: &'a [f32],
        beta: &'a [f32],
        /// Of each image's groups, from `group_norm::statistics`.
        mean_and_scale: &'a [(f32, f32)],
    },
}

/// A stage with the norms of all images spread over their channels, repeated over a [`stretch`].
pub(super) enum Prepared {
    Activation(Activation),
    GroupNormSilu {
        /// `[n, stretch]`
        mean: Vec<f32>,
        /// `[n, stretch]`
        slope: Vec<f32>,
        /// `[stretch]`
        beta: Vec<f32>,
    },
}

impl Stage<'_> {
    pub(super) fn prepare(self, images: usize, channels: usize) -> Prepared {
        match self {
            Self::Plain => Prepared::Activation(Activation::None),
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
                let wide = stretch(channels);
                let of = |i: usize| {
                    let channel = i % wide % channels;
                    let (mean, scale) =
                        mean_and_scale[i / wide * groups + channel / (channels / groups)];
                    (mean, scale * gamma[channel])
                };
                Prepared::GroupNormSilu {
                    mean: (0..images * wide).map(|i| of(i).0).collect(),
                    slope: (0..images * wide).map(|i| of(i).1).collect(),
                    beta: stretched(beta.iter().copied(), channels),
                }
            }
        }
    }
}

impl Prepared {
    /// Some pixels of an image after the stage: as they lie, or in `buffer`, which is as long.
    pub(super) fn apply<'b>(
        &self,
        level: Level,
        image: usize,
        x: &'b [f32],
        buffer: &'b mut [f32],
    ) -> &'b [f32] {
        match self {
            Self::Activation(Activation::None) => return x,
            Self::Activation(activation) => activate(level, x, *activation, buffer),
            Self::GroupNormSilu { mean, slope, beta } => {
                let of_image = image * beta.len()..(image + 1) * beta.len();
                norm_silu(
                    level,
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

vectorised! {
    /// Pixels, through their channels' norm and SiLU.
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

/// From the gradient of an activation's output in `d` to that of its input `x`, in place.
pub fn activation_back(level: Level, activation: Activation, x: &[f32], d: &mut [f32]) {
    const CHUNK: usize = 16 * 1024;
    assert_eq!(x.len(), d.len());
    if activation == Activation::None {
        return;
    }
    let chunks = d.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK));
    chunks.for_each(|(d, x)| activate_back(level, x, activation, d));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    #[test]
    fn gradients_of_activations_are_multiplied_by_their_slopes() {
        let x = numbers(40_000, 1);
        for level in Level::available() {
            for (activation, slope) in [
                (Activation::None, (|_| 1.0) as fn(f32) -> f32),
                (Activation::Relu, math::relu_slope),
                (Activation::Silu, math::silu_slope),
                (Activation::Gelu, math::gelu_slope),
            ] {
                let before = numbers(x.len(), 2);
                let mut d = before.clone();
                activation_back(level, activation, &x, &mut d);
                for ((d, before), x) in d.iter().zip(before).zip(&x) {
                    assert!(
                        (d - before * slope(*x)).abs() < 1e-6,
                        "{activation:?} {level:?} at {x}"
                    );
                }
            }
        }
    }
}
