//! The convolutional encoder and decoder (Table 4).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, GroupNormConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

use crate::config;
use crate::model::conv::{conv, conv3, norm_conv};

const GROUPS: usize = 8;
const NORM_EPSILON: f64 = 1e-6;

/// Encoder of Table 4.
#[derive(Module, Debug)]
pub(super) struct ConvEncoder {
    in_conv: Conv2d,
    blocks: Vec<EncoderBlock>,
    out_norm: GroupNorm,
    out_conv: Conv2d,
}

#[derive(Module, Debug)]
struct EncoderBlock {
    norm: GroupNorm,
    down: Conv2d,
    conv: Conv2d,
}

/// Decoder of Table 4.
#[derive(Module, Debug)]
pub(super) struct ConvDecoder {
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

impl ConvEncoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let levels = config.downsamplings;
        let width = |level: usize| config.channels << level;
        Self {
            in_conv: conv3(3, width(0), device),
            blocks: (0..levels)
                .map(|l| EncoderBlock {
                    norm: norm(width(l), device),
                    // Pads right and bottom only.
                    down: Conv2dConfig::new([width(l), width(l + 1)], [3, 3])
                        .with_stride([2, 2])
                        .with_padding(PaddingConfig2d::Explicit(0, 0, 1, 1))
                        .init(device),
                    conv: conv3(width(l + 1), width(l + 1), device),
                })
                .collect(),
            out_norm: norm(width(levels), device),
            out_conv: conv3(width(levels), config.embedding, device),
        }
    }

    /// `[frames, size, size, 3]` -> `[frames, grid, grid, embedding]`
    pub(super) fn forward(&self, frames: Tensor<4>, precision: Precision) -> Tensor<4> {
        let same_conv = |c: &Conv2d, x| conv(c, ConvKind::Same, Activation::None, x, precision);
        let mut x = same_conv(&self.in_conv, frames);
        for block in &self.blocks {
            x = norm_conv(&block.norm, &block.down, ConvKind::Down, x, precision);
            x = same_conv(&block.conv, x);
        }
        norm_conv(&self.out_norm, &self.out_conv, ConvKind::Same, x, precision)
    }
}

impl ConvDecoder {
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
        let same_conv = |c: &Conv2d, x| conv(c, ConvKind::Same, Activation::None, x, precision);
        let mut x = same_conv(&self.in_conv, latents);
        for block in &self.blocks {
            x = norm_conv(&block.norm, &block.up, ConvKind::Up, x, precision);
            x = same_conv(&block.conv, x);
        }
        norm_conv(&self.out_norm, &self.out_conv, ConvKind::Same, x, precision)
    }
}
