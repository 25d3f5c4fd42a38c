//! Encoder and decoder of single patches (`tokenizer.encoder.type = "whitened_patches"`): a token depends on the pixels
//! of its own grid cell only.

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use rem_kernels::{Activation, ConvKind, Precision};

use super::rows;
use crate::config;
use crate::model::conv::{conv, conv1};

/// Ridge added to the covariance of the pixels of a cell, which are in [-1, 1]: smaller variances count as noise.
const RIDGE: f64 = 1e-2;

/// A fixed linear map that whitens the pixels of a cell, fitted to frames before training. After whitening, a one-pixel
/// ball weighs as much as a wall that appears and disappears. As the map is not trained, equal cells always have equal
/// latents.
#[derive(Module, Debug)]
pub(super) struct PatchEncoder {
    /// `[pixels, embedding]`
    weight: Param<Tensor<2>>,
    /// `[embedding]`
    bias: Param<Tensor<1>>,
    #[module(skip)]
    downsamplings: usize,
}

/// One hidden layer from a code to the pixels of its cell.
#[derive(Module, Debug)]
pub(super) struct PatchDecoder {
    hidden: Conv2d,
    norm: LayerNorm,
    out: Conv2d,
    #[module(skip)]
    downsamplings: usize,
}

impl PatchEncoder {
    /// A random projection, to be whitened by [`Self::fit_whitening`].
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let pixels = pixels(config.downsamplings);
        let normal = Distribution::Normal(0.0, (pixels as f64).powf(-0.5));
        let weight = Tensor::random([pixels, config.embedding], normal, device);
        Self {
            weight: Param::from_tensor(weight),
            bias: Param::from_tensor(Tensor::zeros([config.embedding], device)),
            downsamplings: config.downsamplings,
        }
    }

    /// `[frames, size, size, 3]` -> `[frames, grid, grid, embedding]`, without gradient
    pub(super) fn forward(&self, frames: Tensor<4>) -> Tensor<4> {
        let cells = self.cells(frames);
        let [n, h, w, _] = cells.dims();
        let [_, width] = self.weight.dims();
        // Always in f32: differences of one or two of 255 pixel levels matter.
        let z = rows(cells).matmul(self.weight.val()) + self.bias.val().unsqueeze();
        z.reshape([n, h, w, width]).detach()
    }

    /// Fits the whitening to the cells of frames, `[frames, size, size, 3]`, and applies the random projection after
    /// it.
    pub(super) fn fit_whitening(mut self, frames: Tensor<4>) -> Self {
        let device = self.weight.device();
        let cells = rows(self.cells(frames)).inner();
        let [count, pixels] = cells.dims();
        let mean = cells.clone().mean_dim(0);
        let centered = cells - mean.clone();
        let covariance = centered.clone().transpose().matmul(centered) / count as f64;
        let covariance: Vec<f32> = covariance.try_into_vec_as().expect("covariances are f32");
        let whitening = inverse_cholesky(&covariance, pixels, RIDGE);
        let whitening = TensorData::new(whitening, [pixels, pixels]);
        let whitening = Tensor::<2>::from_data(whitening, &device);
        let weight = whitening.transpose().matmul(self.weight.val().inner());
        let bias = mean.matmul(weight.clone()).neg().squeeze_dim(0);
        self.weight = self.weight.map(|_| weight.autodiff());
        self.bias = self.bias.map(|_| bias.autodiff());
        self
    }

    /// The pixels of each cell: `[frames, size, size, 3]` -> `[frames, grid, grid, pixels]`.
    fn cells(&self, frames: Tensor<4>) -> Tensor<4> {
        (0..self.downsamplings).fold(frames, |x, _| space_to_depth(x))
    }
}

impl PatchDecoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let hidden = patch_width(config);
        Self {
            hidden: conv1(config.embedding, hidden, device),
            norm: LayerNormConfig::new(hidden).init(device),
            out: conv1(hidden, pixels(config.downsamplings), device),
            downsamplings: config.downsamplings,
        }
    }

    /// `[frames, grid, grid, embedding]` -> `[frames, size, size, 3]`
    pub(super) fn forward(&self, latents: Tensor<4>, precision: Precision) -> Tensor<4> {
        let kind = ConvKind::Pointwise;
        let hidden = conv(&self.hidden, kind, Activation::None, latents, precision);
        let hidden = self.norm.forward(hidden);
        let cells = conv(&self.out, kind, Activation::Silu, hidden, precision);
        (0..self.downsamplings).fold(cells, |x, _| depth_to_space(x))
    }
}

/// Width of the hidden layer of the patch decoder.
pub fn patch_width(config: &config::Tokenizer) -> usize {
    config.channels << (config.downsamplings + 2)
}

/// Pixel values in a cell.
fn pixels(downsamplings: usize) -> usize {
    3 << (2 * downsamplings)
}

/// Moves 2x2 neighbors into the channels: `[n, h, w, c]` -> `[n, h / 2, w / 2, 4 c]`.
fn space_to_depth(x: Tensor<4>) -> Tensor<4> {
    let [n, h, w, c] = x.dims();
    x.reshape([n, h / 2, 2, w / 2, 2, c])
        .swap_dims(2, 3)
        .reshape([n, h / 2, w / 2, 4 * c])
}

/// The inverse of [`space_to_depth`]: `[n, h, w, 4 c]` -> `[n, 2 h, 2 w, c]`.
fn depth_to_space(x: Tensor<4>) -> Tensor<4> {
    let [n, h, w, c] = x.dims();
    x.reshape([n, h, w, 2, 2, c / 4])
        .swap_dims(2, 3)
        .reshape([n, 2 * h, 2 * w, c / 4])
}

/// The inverse of the Cholesky factor L with L Lᵀ = `covariance` + ridge, row by row. Multiplying by it makes values
/// uncorrelated with unit variance.
fn inverse_cholesky(covariance: &[f32], size: usize, ridge: f64) -> Vec<f32> {
    let at = |i: usize, j: usize| i * size + j;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut root = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let known = dot(&root[at(i, 0)..at(i, j)], &root[at(j, 0)..at(j, j)]);
            let rest = f64::from(covariance[at(i, j)]) - known;
            root[at(i, j)] = match i == j {
                // Rounding can make the variance of a constant direction negative.
                true => (rest.max(0.0) + ridge).sqrt(),
                false => rest / root[at(j, j)],
            };
        }
    }
    let mut inverse = vec![0.0; size * size];
    for column in 0..size {
        for i in column..size {
            let one = if i == column { 1.0 } else { 0.0 };
            let known: f64 = (column..i)
                .map(|k| root[at(i, k)] * inverse[at(k, column)])
                .sum();
            inverse[at(i, column)] = (one - known) / root[at(i, i)];
        }
    }
    inverse.into_iter().map(|x| x as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn host<const D: usize>(x: Tensor<D>) -> Vec<f32> {
        x.try_into_vec_as().unwrap()
    }

    fn whitened_patches() -> config::Tokenizer {
        let keys = [
            "tokenizer.encoder=whitened_patches",
            "tokenizer.downsamplings=2",
        ];
        Config::load("debug", &keys.map(String::from))
            .unwrap()
            .tokenizer
    }

    /// Black frames, the even ones with a bright left half, each with a dim dot at another position.
    fn frames(device: &Device) -> Tensor<4> {
        let (count, size) = (64, 8);
        let mut pixels = vec![-1.0; count * size * size * 3];
        for (i, frame) in pixels.chunks_exact_mut(size * size * 3).enumerate() {
            if i % 2 == 0 {
                frame
                    .chunks_exact_mut(size * 3)
                    .for_each(|row| row[..size * 3 / 2].fill(1.0));
            }
            let dot = (i * 37 % (size * size)) * 3;
            frame[dot..dot + 3].iter_mut().for_each(|x| *x += 0.3);
        }
        Tensor::<1>::from_floats(&pixels[..], device).reshape([count, size, size, 3])
    }

    #[test]
    fn depth_to_space_inverts_space_to_depth() {
        let x = Tensor::random([2, 4, 8, 3], Distribution::Default, &Device::flex());
        let folded = space_to_depth(x.clone());
        assert_eq!(folded.dims(), [2, 2, 4, 12]);
        assert_eq!(host(depth_to_space(folded)), host(x));
    }

    #[test]
    fn inverse_cholesky_matches_hand_computed_factor() {
        let covariance = [4.0, 2.0, 2.0, 5.0];
        let inverse = inverse_cholesky(&covariance, 2, 0.0);
        // L = [[2, 0], [1, 2]]
        for (x, expected) in inverse.into_iter().zip([0.5, 0.0, -0.25, 0.5]) {
            assert!((x - expected).abs() < 1e-6, "{x} for {expected}");
        }
    }

    #[test]
    fn whitening_raises_the_weight_of_a_dim_dot_relative_to_a_wall() {
        let device = Device::flex();
        device.seed(1);
        let frames = frames(&device);
        let ratio = |encoder: &PatchEncoder| {
            let at = |frame: usize| encoder.forward(frames.clone().narrow(0, frame, 1));
            let black = encoder.forward(Tensor::ones([1, 8, 8, 3], &device).neg());
            let from = |frame| host((at(frame) - black.clone()).square().sum())[0];
            // Frame 1 has the dot only, frame 0 the wall too.
            from(1) / from(0)
        };
        let random = PatchEncoder::new(&whitened_patches(), &device);
        let whitened = random.clone().fit_whitening(frames.clone());
        let (before, after) = (ratio(&random), ratio(&whitened));
        assert!(before < 0.02 && after > 0.2, "{before} {after}");
    }

    #[test]
    fn decoder_gets_gradients_and_encoder_does_not() {
        let device = Device::flex().autodiff();
        let (encoder, decoder) = (
            PatchEncoder::new(&whitened_patches(), &device),
            PatchDecoder::new(&whitened_patches(), &device),
        );
        let frames = frames(&device);
        let output = decoder.forward(encoder.forward(frames.clone()), Precision::F32);
        assert_eq!(output.dims(), frames.dims());
        let grads = (output - frames).square().mean().backward();
        assert!(encoder.weight.val().grad(&grads).is_none());
        assert!(decoder.out.weight.val().grad(&grads).is_some());
    }
}
