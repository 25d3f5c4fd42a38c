//! The encoder and the decoder (paper, table tokenizer-arch).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, GroupNormConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

use crate::config::{self, Sight};
use crate::conv::{conv, conv1, conv3, norm_conv, scale_and_shift};

const GROUPS: usize = 8;
const NORM_EPSILON: f64 = 1e-6;

#[derive(Module, Debug)]
pub(super) struct Encoder {
    in_conv: Conv2d,
    blocks: Vec<EncoderBlock>,
    out_norm: GroupNorm,
    out_conv: Conv2d,
    #[module(skip)]
    sight: Sight,
}

#[derive(Module, Debug)]
struct EncoderBlock {
    norm: GroupNorm,
    down: Conv2d,
    conv: Conv2d,
}

#[derive(Module, Debug)]
pub(super) struct Decoder {
    in_conv: Conv2d,
    blocks: Vec<DecoderBlock>,
    out_norm: GroupNorm,
    out_conv: Conv2d,
}

#[derive(Module, Debug)]
struct DecoderBlock {
    norm: GroupNorm,
    up: Conv2d,
    conv: Conv2d,
}

fn norm(channels: usize, device: &Device) -> GroupNorm {
    GroupNormConfig::new(GROUPS, channels)
        .with_epsilon(NORM_EPSILON)
        .init(device)
}

/// Normalises the channels of each position by themselves: `[n, h, w, c]`. What is far away has no say in it, which
/// it has in a norm over the whole image.
fn position_norm(norm: &GroupNorm, x: Tensor<4>) -> Tensor<4> {
    let centred = x.clone() - x.mean_dim(3);
    let variance = centred.clone().square().mean_dim(3);
    let (gamma, beta) = scale_and_shift(norm);
    let unit = centred / variance.add_scalar(NORM_EPSILON).sqrt();
    unit * gamma.reshape([1, 1, 1, -1]) + beta.reshape([1, 1, 1, -1])
}

/// Four neighbours become one position, their channels behind each other: `[n, h, w, c]` -> `[n, h / 2, w / 2, 4 c]`.
fn fold_neighbours(x: Tensor<4>) -> Tensor<4> {
    let [n, h, w, c] = x.dims();
    x.reshape([n, h / 2, 2, w / 2, 2, c])
        .swap_dims(2, 3)
        .reshape([n, h / 2, w / 2, 4 * c])
}

impl Encoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let width = |level: usize| config.channels << level;
        let levels = config.downsamplings;
        let seeing = |from, to| match config.sight {
            Sight::Wide => conv3(from, to, device),
            Sight::Narrow => conv1(from, to, device),
        };
        let down = |from, to| match config.sight {
            // Padded on the right and at the bottom only.
            Sight::Wide => Conv2dConfig::new([from, to], [3, 3])
                .with_stride([2, 2])
                .with_padding(PaddingConfig2d::Explicit(0, 0, 1, 1))
                .init(device),
            Sight::Narrow => conv1(4 * from, to, device),
        };
        Self {
            in_conv: seeing(3, width(0)),
            blocks: (0..levels)
                .map(|l| EncoderBlock {
                    norm: norm(width(l), device),
                    down: down(width(l), width(l + 1)),
                    conv: seeing(width(l + 1), width(l + 1)),
                })
                .collect(),
            out_norm: norm(width(levels), device),
            out_conv: seeing(width(levels), config.embedding),
            sight: config.sight,
        }
    }

    /// `[frames, size, size, 3]` -> `[frames, grid, grid, embedding]`
    pub(super) fn forward(&self, frames: Tensor<4>, precision: Precision) -> Tensor<4> {
        let plain = |c: &Conv2d, kind, x| conv(c, kind, Activation::None, x, precision);
        let pointwise = |c: &Conv2d, x| {
            let kind = ConvKind::Pointwise;
            conv(c, kind, Activation::Silu, x, precision)
        };
        let seeing = match self.sight {
            Sight::Wide => ConvKind::Same,
            Sight::Narrow => ConvKind::Pointwise,
        };
        let mut x = plain(&self.in_conv, seeing, frames);
        for EncoderBlock { norm, down, conv } in &self.blocks {
            x = match self.sight {
                Sight::Wide => norm_conv(norm, down, ConvKind::Down, x, precision),
                Sight::Narrow => pointwise(down, fold_neighbours(position_norm(norm, x))),
            };
            x = plain(conv, seeing, x);
        }
        match self.sight {
            Sight::Wide => norm_conv(&self.out_norm, &self.out_conv, seeing, x, precision),
            Sight::Narrow => pointwise(&self.out_conv, position_norm(&self.out_norm, x)),
        }
    }
}

impl Decoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let levels = config.downsamplings;
        let width = |level: usize| config.channels << (levels - level);
        Self {
            in_conv: conv3(config.embedding, width(0), device),
            blocks: (0..levels)
                .map(|l| DecoderBlock {
                    norm: norm(width(l), device),
                    up: conv3(width(l), width(l + 1), device),
                    conv: conv3(width(l + 1), width(l + 1), device),
                })
                .collect(),
            out_norm: norm(width(levels), device),
            out_conv: conv3(width(levels), 3, device),
        }
    }

    /// `[frames, grid, grid, embedding]` -> `[frames, size, size, 3]`
    pub(super) fn forward(&self, latents: Tensor<4>, precision: Precision) -> Tensor<4> {
        let plain = |c: &Conv2d, x| conv(c, ConvKind::Same, Activation::None, x, precision);
        let mut x = plain(&self.in_conv, latents);
        for block in &self.blocks {
            x = norm_conv(&block.norm, &block.up, ConvKind::Up, x, precision);
            x = plain(&block.conv, x);
        }
        norm_conv(&self.out_norm, &self.out_conv, ConvKind::Same, x, precision)
    }
}
