//! The controller's observation encoders.

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

use super::ControllerSizes;
use crate::model::conv::{conv, conv3};
use crate::model::linear::linear;
use crate::model::tokenizer::{Tokenizer, code_grid};

/// From observations to inputs of the LSTM.
#[derive(Module, Debug)]
pub(super) enum ObsEncoder {
    Codes(CodeEncoder),
    Pixels(PixelEncoder),
}

/// Encodes the grid of code vectors (Table 8).
#[derive(Module, Debug)]
pub(super) struct CodeEncoder {
    convs: Vec<Conv2d>,
    dense: Linear,
}

/// Encodes the decoded frame (IRIS).
#[derive(Module, Debug)]
pub(super) struct PixelEncoder {
    convs: Vec<Conv2d>,
}

/// Output channels of IRIS's convolutions. A 2x2 max-pooling follows each.
const PIXEL_CHANNELS: [usize; 4] = [32, 32, 64, 64];

/// Frames decoded at once. Limits the memory of the decoder's largest layers.
pub(super) const DECODE_BATCH: usize = 128;

impl ObsEncoder {
    /// A [`CodeEncoder`] with outputs of size `lstm`.
    pub(super) fn codes(lstm: usize, sizes: ControllerSizes, device: &Device) -> Self {
        let ControllerSizes { width, grid, .. } = sizes;
        Self::Codes(CodeEncoder {
            convs: vec![
                conv3(width, width / 2, device),
                conv3(width / 2, width / 4, device),
            ],
            dense: LinearConfig::new(width / 4 * grid * grid, lstm).init(device),
        })
    }

    /// A [`PixelEncoder`] and the size of its outputs.
    pub(super) fn pixels(sizes: ControllerSizes, device: &Device) -> (Self, usize) {
        let mut from = 3;
        let convs = PIXEL_CHANNELS.map(|to| conv3(std::mem::replace(&mut from, to), to, device));
        let side = sizes.frame_size >> PIXEL_CHANNELS.len();
        let encoder = PixelEncoder {
            convs: convs.into(),
        };
        (Self::Pixels(encoder), from * side * side)
    }

    /// The encoder's input: `[n, K]` -> `[n, side, side, channels]`.
    pub(super) fn input(&self, tokenizer: &Tokenizer, tokens: Tensor<2, Int>) -> Tensor<4> {
        match self {
            Self::Codes(_) => code_grid(tokenizer.codes(), tokens),
            Self::Pixels(_) => {
                let batches = tokens.split(DECODE_BATCH, 0);
                let frames = batches
                    .into_iter()
                    .map(|t| tokenizer.decode_channels_last(t).clamp(-1.0, 1.0));
                Tensor::cat(frames.collect(), 0)
            }
        }
    }

    /// The LSTM's input, `[n, outputs]`, and the activation that is still to be applied to it.
    pub(super) fn encode(
        &self,
        inputs: Tensor<4>,
        precision: Precision,
    ) -> (Tensor<2>, Activation) {
        match self {
            Self::Codes(encoder) => (encoder.encode(inputs, precision), Activation::Silu),
            Self::Pixels(encoder) => (encoder.encode(inputs, precision), Activation::None),
        }
    }
}

impl CodeEncoder {
    /// `[n, grid, grid, width]` -> `[n, lstm]`, before its activation
    fn encode(&self, codes: Tensor<4>, precision: Precision) -> Tensor<2> {
        let mut x = codes;
        for (i, layer) in self.convs.iter().enumerate() {
            let activation = if i == 0 {
                Activation::None
            } else {
                Activation::Silu
            };
            x = conv(layer, ConvKind::Same, activation, x, precision);
        }
        // The dense layer's inputs are in the order channel, row, column.
        let x: Tensor<2> = x.permute([0, 3, 1, 2]).flatten(1, 3);
        linear(&self.dense, Activation::Silu, x, precision)
    }
}

impl PixelEncoder {
    /// `[n, size, size, 3]` -> `[n, 64 * (size / 16)²]`
    fn encode(&self, frames: Tensor<4>, precision: Precision) -> Tensor<2> {
        let mut x = frames;
        for layer in &self.convs {
            x = conv(layer, ConvKind::Same, Activation::None, x, precision);
            x = rem_kernels::max_pool_relu(x);
        }
        x.permute([0, 3, 1, 2]).flatten(1, 3)
    }
}
