//! The encoder and the decoder (paper, table tokenizer-arch).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, GroupNormConfig, PaddingConfig2d};
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor};

use crate::config;

const GROUPS: usize = 8;
const NORM_EPSILON: f64 = 1e-6;

#[derive(Module, Debug)]
pub(super) struct Encoder {
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

fn conv3(from: usize, to: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new([from, to], [3, 3])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .init(device)
}

fn norm(channels: usize, device: &Device) -> GroupNorm {
    GroupNormConfig::new(GROUPS, channels)
        .with_epsilon(NORM_EPSILON)
        .init(device)
}

impl Encoder {
    pub(super) fn new(config: &config::Tokenizer, device: &Device) -> Self {
        let width = |level: usize| config.channels << level;
        let levels = config.downsamplings;
        Self {
            in_conv: conv3(3, width(0), device),
            blocks: (0..levels)
                .map(|l| EncoderBlock {
                    norm: norm(width(l), device),
                    // Padded on the right and at the bottom only.
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

    /// `[frames, 3, size, size]` -> `[frames, embedding, grid, grid]`
    pub(super) fn forward(&self, frames: Tensor<4>) -> Tensor<4> {
        let mut x = self.in_conv.forward(frames);
        for block in &self.blocks {
            x = block.down.forward(silu(block.norm.forward(x)));
            x = block.conv.forward(x);
        }
        self.out_conv.forward(silu(self.out_norm.forward(x)))
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

    /// `[frames, embedding, grid, grid]` -> `[frames, 3, size, size]`
    pub(super) fn forward(&self, latents: Tensor<4>) -> Tensor<4> {
        let mut x = self.in_conv.forward(latents);
        for block in &self.blocks {
            x = block
                .up
                .forward(twice_as_large(silu(block.norm.forward(x))));
            x = block.conv.forward(x);
        }
        self.out_conv.forward(silu(self.out_norm.forward(x)))
    }
}

/// Nearest-neighbour interpolation by two: `[n, c, h, w]` -> `[n, c, 2h, 2w]`.
fn twice_as_large(x: Tensor<4>) -> Tensor<4> {
    let [n, c, h, w] = x.dims();
    let cells: Tensor<6> = x.reshape([n, c, h, 1, w, 1]);
    // [n, c, h, 2, w, 2]
    let cells: Tensor<6> = cells.expand([n, c, h, 2, w, 2]);
    cells.reshape([n, c, 2 * h, 2 * w])
}
