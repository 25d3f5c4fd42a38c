//! What is done to an image before it is convolved.

use rayon::prelude::*;

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

/// A stage with the norms of all images spread over their channels.
pub(super) enum Prepared<'a> {
    Activation(Activation),
    GroupNormSilu {
        /// `[n, c]`
        mean: Vec<f32>,
        /// `[n, c]`
        slope: Vec<f32>,
        beta: &'a [f32],
    },
}

impl<'a> Stage<'a> {
    pub(super) fn prepare(self, images: usize, channels: usize) -> Prepared<'a> {
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
                let of = |i: usize| {
                    mean_and_scale[i / channels * groups + i % channels / (channels / groups)]
                };
                Prepared::GroupNormSilu {
                    mean: (0..images * channels).map(|i| of(i).0).collect(),
                    slope: (0..images * channels)
                        .map(|i| of(i).1 * gamma[i % channels])
                        .collect(),
                    beta,
                }
            }
        }
    }
}

impl Prepared<'_> {
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
                let channels = image * beta.len()..(image + 1) * beta.len();
                norm_silu(
                    level,
                    x,
                    &mean[channels.clone()],
                    &slope[channels],
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
        let channels = beta.len();
        for (x, out) in x.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
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
