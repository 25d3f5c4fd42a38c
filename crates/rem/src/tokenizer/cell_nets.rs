//! An encoder and a decoder for which each cell of the frame stands alone (`tokenizer.sight = "narrow"`).

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use rem_kernels::{Activation, ConvKind, Precision};

use super::rows;
use crate::config;
use crate::conv::{conv, conv1};

/// Added to the variance of every direction in which cells differ, of pixels in [-1, 1]: what varies less than this
/// counts as constant.
const RIDGE: f64 = 1e-2;

/// A fixed linear map that whitens the pixels of a cell, found from frames before learning starts. Whitened, a ball of a
/// pixel counts as much as a wall that comes and goes; and as nothing learns here, a cell that looks the same has the same
/// latent for ever.
#[derive(Module, Debug)]
pub(super) struct CellEncoder {
    /// `[pixels, embedding]`
    weight: Param<Tensor<2>>,
    /// `[embedding]`
    bias: Param<Tensor<1>>,
    #[module(skip)]
    levels: usize,
}

/// One hidden layer from a code to the pixels of its cell.
#[derive(Module, Debug)]
pub(super) struct CellDecoder {
    hidden: Conv2d,
    norm: LayerNorm,
    out: Conv2d,
    #[module(skip)]
    levels: usize,
}

impl CellEncoder {
    /// A random projection, until [`Self::whitening`].
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let pixels = pixels(config.downsamplings);
        let normal = Distribution::Normal(0.0, (pixels as f64).powf(-0.5));
        let weight = Tensor::random([pixels, config.embedding], normal, device);
        Self {
            weight: Param::from_tensor(weight),
            bias: Param::from_tensor(Tensor::zeros([config.embedding], device)),
            levels: config.downsamplings,
        }
    }

    /// `[frames, size, size, 3]` -> `[frames, grid, grid, embedding]`, without gradient
    pub(super) fn forward(&self, frames: Tensor<4>) -> Tensor<4> {
        let cells = self.cells(frames);
        let [n, h, w, _] = cells.dims();
        let [_, width] = self.weight.dims();
        // Always in f32: differences of a level or two count here.
        let z = rows(cells).matmul(self.weight.val()) + self.bias.val().unsqueeze();
        z.reshape([n, h, w, width]).detach()
    }

    /// The projection of what the cells of these frames, whitened, look like.
    pub(super) fn whitening(mut self, frames: Tensor<4>) -> Self {
        let device = self.weight.device();
        let cells = rows(self.cells(frames)).inner();
        let [count, pixels] = cells.dims();
        let mean = cells.clone().mean_dim(0);
        let centred = cells - mean.clone();
        let covariance = centred.clone().transpose().matmul(centred) / count as f64;
        let covariance: Vec<f32> = covariance.try_into_vec_as().expect("covariances are f32");
        let unmixing = inverse_of_root(&covariance, pixels, RIDGE);
        let unmixing = Tensor::<2>::from_data(TensorData::new(unmixing, [pixels, pixels]), &device);
        let weight = unmixing.transpose().matmul(self.weight.val().inner());
        let bias = mean.matmul(weight.clone()).neg().squeeze_dim(0);
        self.weight = self.weight.map(|_| weight.autodiff());
        self.bias = self.bias.map(|_| bias.autodiff());
        self
    }

    fn cells(&self, frames: Tensor<4>) -> Tensor<4> {
        (0..self.levels).fold(frames, |x, _| fold_neighbours(x))
    }
}

impl CellDecoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let levels = config.downsamplings;
        let hidden = cell_width(config);
        Self {
            hidden: conv1(config.embedding, hidden, device),
            norm: LayerNormConfig::new(hidden).init(device),
            out: conv1(hidden, pixels(levels), device),
            levels,
        }
    }

    /// `[frames, grid, grid, embedding]` -> `[frames, size, size, 3]`
    pub(super) fn forward(&self, latents: Tensor<4>, precision: Precision) -> Tensor<4> {
        let kind = ConvKind::Pointwise;
        let hidden = conv(&self.hidden, kind, Activation::None, latents, precision);
        let hidden = self.norm.forward(hidden);
        let cells = conv(&self.out, kind, Activation::Silu, hidden, precision);
        (0..self.levels).fold(cells, |x, _| unfold_neighbours(x))
    }
}

/// The width of the decoder's hidden layer.
pub(crate) fn cell_width(config: &config::Tokenizer) -> usize {
    config.channels << (config.downsamplings + 2)
}

/// Numbers in a cell after so many halvings of the frame's sides.
fn pixels(levels: usize) -> usize {
    3 << (2 * levels)
}

/// Four neighbours become one position, their channels behind each other: `[n, h, w, c]` -> `[n, h / 2, w / 2, 4 c]`.
fn fold_neighbours(x: Tensor<4>) -> Tensor<4> {
    let [n, h, w, c] = x.dims();
    x.reshape([n, h / 2, 2, w / 2, 2, c])
        .swap_dims(2, 3)
        .reshape([n, h / 2, w / 2, 4 * c])
}

/// [`fold_neighbours`] undone: `[n, h, w, 4 c]` -> `[n, 2 h, 2 w, c]`.
fn unfold_neighbours(x: Tensor<4>) -> Tensor<4> {
    let [n, h, w, c] = x.dims();
    x.reshape([n, h, w, 2, 2, c / 4])
        .swap_dims(2, 3)
        .reshape([n, 2 * h, 2 * w, c / 4])
}

/// The inverse of the lower triangle L with L Lᵀ = `covariance` + ridge, row by row (Cholesky): what makes of numbers that
/// vary together numbers that vary by themselves, each by one.
fn inverse_of_root(covariance: &[f32], size: usize, ridge: f64) -> Vec<f32> {
    let at = |i: usize, j: usize| i * size + j;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut root = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let known = dot(&root[at(i, 0)..at(i, j)], &root[at(j, 0)..at(j, j)]);
            let rest = f64::from(covariance[at(i, j)]) - known;
            root[at(i, j)] = match i == j {
                // Rounding must not make a direction without variance a negative one.
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
    use crate::imagination::host;

    fn narrow() -> config::Tokenizer {
        let keys = [
            "tokenizer.sight=narrow",
            "tokenizer.quantiser_convs=false",
            "tokenizer.downsamplings=2",
        ];
        Config::load("debug", &keys.map(String::from))
            .unwrap()
            .tokenizer
    }

    /// Frames of a dark ground with a bright left half that comes and goes, and a dim dot at a place of its own.
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
    fn neighbours_unfold_as_they_were_folded() {
        let x = Tensor::random([2, 4, 8, 3], Distribution::Default, &Device::flex());
        let folded = fold_neighbours(x.clone());
        assert_eq!(folded.dims(), [2, 2, 4, 12]);
        assert_eq!(host(unfold_neighbours(folded)), host(x));
    }

    #[test]
    fn the_root_of_a_covariance_is_inverted() {
        let covariance = [4.0, 2.0, 2.0, 5.0];
        let inverse = inverse_of_root(&covariance, 2, 0.0);
        // L = [[2, 0], [1, 2]]
        for (x, expected) in inverse.into_iter().zip([0.5, 0.0, -0.25, 0.5]) {
            assert!((x - expected).abs() < 1e-6, "{x} for {expected}");
        }
    }

    #[test]
    fn whitened_a_dim_dot_counts_as_much_as_a_wall() {
        let device = Device::flex();
        device.seed(1);
        let frames = frames(&device);
        let ratio = |encoder: &CellEncoder| {
            let at = |frame: usize| encoder.forward(frames.clone().narrow(0, frame, 1));
            let black = encoder.forward(Tensor::ones([1, 8, 8, 3], &device).neg());
            let from = |frame| host((at(frame) - black.clone()).square().sum())[0];
            // Frame 1 has the dot only, frame 0 the wall too.
            from(1) / from(0)
        };
        let plain = CellEncoder::new(&narrow(), &device);
        let whitening = plain.clone().whitening(frames.clone());
        let (before, after) = (ratio(&plain), ratio(&whitening));
        assert!(before < 0.02 && after > 0.2, "{before} {after}");
    }

    #[test]
    fn the_encoder_stays_as_it_is_while_the_decoder_learns() {
        let device = Device::flex().autodiff();
        let (encoder, decoder) = (
            CellEncoder::new(&narrow(), &device),
            CellDecoder::new(&narrow(), &device),
        );
        let frames = frames(&device);
        let drawn = decoder.forward(encoder.forward(frames.clone()), Precision::F32);
        assert_eq!(drawn.dims(), frames.dims());
        let grads = (drawn - frames).square().mean().backward();
        assert!(encoder.weight.val().grad(&grads).is_none());
        assert!(decoder.out.weight.val().grad(&grads).is_some());
    }
}
