//! How the controller looks at an observation.

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

use super::ControllerSizes;
use crate::conv::{conv, conv3};
use crate::linear::linear;
use crate::tokenizer::{Tokenizer, code_grid};

#[derive(Module, Debug)]
pub(super) enum Sight {
    Codes(CodeSight),
    Pixels(PixelSight),
}

/// At its code vectors (paper, table actor-critic-obs-repr-arch).
#[derive(Module, Debug)]
pub(super) struct CodeSight {
    convs: Vec<Conv2d>,
    dense: Linear,
}

/// At the frame that the tokenizer draws of it (IRIS).
#[derive(Module, Debug)]
pub(super) struct PixelSight {
    convs: Vec<Conv2d>,
}

/// Channels after each of IRIS's convolutions, each followed by a 2x2 max-pooling.
const PIXEL_CHANNELS: [usize; 4] = [32, 32, 64, 64];

/// Frames drawn at once: the decoder's largest layers take much memory.
pub(super) const DRAWN_AT_ONCE: usize = 128;

impl Sight {
    pub(super) fn codes(lstm: usize, sizes: ControllerSizes, device: &Device) -> Self {
        let ControllerSizes { width, grid, .. } = sizes;
        Self::Codes(CodeSight {
            convs: vec![
                conv3(width, width / 2, device),
                conv3(width / 2, width / 4, device),
            ],
            dense: LinearConfig::new(width / 4 * grid * grid, lstm).init(device),
        })
    }

    /// With how many numbers it gives.
    pub(super) fn pixels(sizes: ControllerSizes, device: &Device) -> (Self, usize) {
        let mut from = 3;
        let convs = PIXEL_CHANNELS.map(|to| conv3(std::mem::replace(&mut from, to), to, device));
        let side = sizes.frame_size >> PIXEL_CHANNELS.len();
        let sight = PixelSight {
            convs: convs.into(),
        };
        (Self::Pixels(sight), from * side * side)
    }
}

impl Sight {
    /// What it is shown: `[n, K]` -> `[n, side, side, channels]`.
    pub(super) fn view(&self, tokenizer: &Tokenizer, tokens: Tensor<2, Int>) -> Tensor<4> {
        match self {
            Sight::Codes(_) => code_grid(tokenizer.codes(), tokens),
            Sight::Pixels(_) => {
                let drawn = tokens.split(DRAWN_AT_ONCE, 0);
                let drawn = drawn
                    .into_iter()
                    .map(|t| tokenizer.draw(t).clamp(-1.0, 1.0));
                Tensor::cat(drawn.collect(), 0)
            }
        }
    }

    /// What it makes of that, `[n, inputs of the LSTM]`, before an activation.
    pub(super) fn look(&self, views: Tensor<4>, precision: Precision) -> (Tensor<2>, Activation) {
        match self {
            Self::Codes(sight) => (sight.look(views, precision), Activation::Silu),
            Self::Pixels(sight) => (sight.look(views, precision), Activation::None),
        }
    }
}

impl CodeSight {
    /// `[n, grid, grid, width]` -> `[n, lstm]`, before its activation
    fn look(&self, codes: Tensor<4>, precision: Precision) -> Tensor<2> {
        let mut x = codes;
        for (i, layer) in self.convs.iter().enumerate() {
            let before = if i == 0 {
                Activation::None
            } else {
                Activation::Silu
            };
            x = conv(layer, ConvKind::Same, before, x, precision);
        }
        // The dense layer's inputs are in the order channel, row, column.
        let x: Tensor<2> = x.permute([0, 3, 1, 2]).flatten(1, 3);
        linear(&self.dense, Activation::Silu, x, precision)
    }
}

impl PixelSight {
    /// `[n, size, size, 3]` -> `[n, 64 * (size / 16)²]`
    fn look(&self, frames: Tensor<4>, precision: Precision) -> Tensor<2> {
        let mut x = frames;
        for layer in &self.convs {
            x = conv(layer, ConvKind::Same, Activation::None, x, precision);
            x = rem_kernels::max_pool_relu(x);
        }
        x.permute([0, 3, 1, 2]).flatten(1, 3)
    }
}
