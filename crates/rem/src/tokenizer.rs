//! The tokenizer V: frames to K tokens and back (paper, section tokenizer-details).

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Distribution, Int, Tensor};

use rem_kernels::{Activation, ConvKind, Precision};

use crate::config::{self, Sight};
use crate::conv::{conv, conv1};

mod cell_nets;
mod codebook;
mod conv_nets;
pub mod lpips;

pub(crate) use cell_nets::cell_width;
use cell_nets::{CellDecoder, CellEncoder};
pub use codebook::{CodeUse, move_codes};
use conv_nets::{ConvDecoder, ConvEncoder};
use lpips::Lpips;

/// A VQ-VAE over frames in [-1, 1].
#[derive(Module, Debug)]
pub struct Tokenizer {
    encoder: Encoder,
    pre_quant_conv: Option<Conv2d>,
    /// The codes C, `[vocabulary, embedding]`.
    codebook: Param<Tensor<2>>,
    post_quant_conv: Option<Conv2d>,
    decoder: Decoder,
    #[module(skip)]
    precision: Precision,
}

/// By what of a frame a code sees ([`config::Sight`]).
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "an agent has one of it")]
enum Encoder {
    Wide(ConvEncoder),
    Narrow(CellEncoder),
}

#[derive(Module, Debug)]
enum Decoder {
    Wide(ConvDecoder),
    Narrow(CellDecoder),
}

/// The terms of the tokenizer's objective (Eq. tokenizer-objective-loss), unweighted.
pub struct TokenizerLosses {
    pub reconstruction: Tensor<1>,
    /// Both codebook terms, each with weight 1.
    pub commitment: Tensor<1>,
    pub perceptual: Option<Tensor<1>>,
    /// The nearest codes, `[frames, K]`.
    pub tokens: Tensor<2, Int>,
    /// What the codes stand for, `[frames * K, embedding]`, without gradient.
    pub latents: Tensor<2>,
}

impl Tokenizer {
    pub fn new(config: &config::Tokenizer, precision: Precision, device: &Device) -> Self {
        let (vocabulary, width) = (config.vocabulary, config.embedding);
        let bound = 1.0 / vocabulary as f64;
        let codes = Tensor::random(
            [vocabulary, width],
            Distribution::Uniform(-bound, bound),
            device,
        );
        let one_by_one = || {
            let convs = config.quantiser_convs;
            convs.then(|| conv1(width, width, device))
        };
        Self {
            encoder: match config.sight {
                Sight::Wide => Encoder::Wide(ConvEncoder::new(config, device)),
                Sight::Narrow => Encoder::Narrow(CellEncoder::new(config, device)),
            },
            pre_quant_conv: one_by_one(),
            codebook: Param::from_tensor(codes),
            post_quant_conv: one_by_one(),
            decoder: match config.sight {
                Sight::Wide => Decoder::Wide(ConvDecoder::new(config, device)),
                Sight::Narrow => Decoder::Narrow(CellDecoder::new(config, device)),
            },
            precision,
        }
    }

    /// The codes, `[vocabulary, embedding]`, without gradient: what the others see of them.
    pub fn codes(&self) -> Tensor<2> {
        self.codebook.val().inner()
    }

    /// Frames to latents before quantisation.
    /// # Shapes
    /// - `frames`: `[frames, 3, size, size]` in [-1, 1] -> `[frames, grid, grid, embedding]`
    pub fn latents(&self, frames: Tensor<4>) -> Tensor<4> {
        self.latents_of(frames.permute(CHANNELS_LAST))
    }

    fn latents_of(&self, images: Tensor<4>) -> Tensor<4> {
        let z = match &self.encoder {
            Encoder::Wide(encoder) => encoder.forward(images, self.precision),
            Encoder::Narrow(encoder) => encoder.forward(images),
        };
        self.pointwise(&self.pre_quant_conv, z)
    }

    fn pointwise(&self, layer: &Option<Conv2d>, x: Tensor<4>) -> Tensor<4> {
        match layer {
            Some(layer) => {
                let kind = ConvKind::Pointwise;
                conv(layer, kind, Activation::None, x, self.precision)
            }
            None => x,
        }
    }

    /// Latents as rows: `[frames, 3, size, size]` -> `[frames * K, embedding]`.
    pub fn latent_rows(&self, frames: Tensor<4>) -> Tensor<2> {
        rows(self.latents(frames))
    }

    /// Frames to tokens: `[frames, 3, size, size]` -> `[frames, K]`.
    pub fn encode(&self, frames: Tensor<4>) -> Tensor<2, Int> {
        let z = self.latents(frames);
        let [n, h, w, _] = z.dims();
        rem_kernels::nearest(rows(z), self.codebook.val()).reshape([n, h * w])
    }

    /// Tokens to frames: `[frames, K]` -> `[frames, 3, size, size]`, in [-1, 1] but not clamped.
    pub fn decode(&self, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.draw(tokens).permute(CHANNELS_FIRST)
    }

    /// As [`Self::decode`] with the channels last: `[frames, K]` -> `[frames, size, size, 3]`.
    pub fn draw(&self, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.decode_latents(code_grid(self.codebook.val(), tokens))
    }

    /// `[frames, grid, grid, embedding]` -> `[frames, size, size, 3]`
    fn decode_latents(&self, q: Tensor<4>) -> Tensor<4> {
        let q = self.pointwise(&self.post_quant_conv, q);
        match &self.decoder {
            Decoder::Wide(decoder) => decoder.forward(q, self.precision),
            Decoder::Narrow(decoder) => decoder.forward(q, self.precision),
        }
    }

    /// The training forward. The gradient passes the quantiser straight through.
    pub fn losses(
        &self,
        frames: Tensor<4>,
        kind: config::Reconstruction,
        perceptual: Option<&Lpips>,
    ) -> TokenizerLosses {
        let images = frames.permute(CHANNELS_LAST);
        let z = self.latents_of(images.clone());
        let [n, h, w, width] = z.dims();
        let latents = rows(z.clone()).inner();
        let tokens = rem_kernels::nearest(latents.clone(), self.codes()).reshape([n, h * w]);
        let q = code_grid(self.codebook.val(), tokens.clone());
        assert_eq!(q.dims(), [n, h, w, width]);

        let commitment = (z.clone().detach() - q.clone()).square().mean()
            + (q.clone().detach() - z.clone()).square().mean();
        let straight_through = z.clone() + (q - z).detach();
        let output = self.decode_latents(straight_through);
        let difference = output.clone() - images.clone();
        let reconstruction = match kind {
            config::Reconstruction::Mse => difference.square().mean(),
            config::Reconstruction::L1 => difference.abs().mean(),
        };
        TokenizerLosses {
            reconstruction,
            commitment,
            perceptual: perceptual.map(|lpips| lpips.distance(images, output).mean()),
            tokens,
            latents,
        }
    }

    /// Fits to frames what must be fitted before learning starts: `[frames, 3, size, size]`.
    pub fn fitted_to(mut self, frames: Tensor<4>) -> Self {
        self.encoder = match self.encoder {
            Encoder::Narrow(encoder) => {
                Encoder::Narrow(encoder.whitening(frames.permute(CHANNELS_LAST)))
            }
            wide => wide,
        };
        self
    }

    /// The same tokenizer with other codes, for the ways to start and revive a codebook.
    pub fn with_codes(mut self, codes: Tensor<2>) -> Self {
        assert_eq!(codes.dims(), self.codebook.dims());
        self.codebook = self
            .codebook
            .map(|old| codes.autodiff().set_require_grad(old.is_require_grad()));
        self
    }
}

/// The order of axes that puts the channels of `[n, c, h, w]` last, and the one that puts them back.
const CHANNELS_LAST: [isize; 4] = [0, 2, 3, 1];
const CHANNELS_FIRST: [isize; 4] = [0, 3, 1, 2];

/// Latents as rows: `[frames, grid, grid, embedding]` -> `[frames * K, embedding]`.
fn rows(latents: Tensor<4>) -> Tensor<2> {
    let [n, h, w, width] = latents.dims();
    latents.reshape([n * h * w, width])
}

/// Code vectors in their spatial order.
/// # Shapes
/// - `codes`: `[vocabulary, embedding]`, `tokens`: `[frames, K]` -> `[frames, grid, grid, embedding]`
pub fn code_grid(codes: Tensor<2>, tokens: Tensor<2, Int>) -> Tensor<4> {
    let [n, k] = tokens.dims();
    let [_, width] = codes.dims();
    let side = k.isqrt();
    assert_eq!(side * side, k, "tokens of a frame form a square");
    let rows = codes.select(0, tokens.reshape([n * k]));
    rows.reshape([n, side, side, width])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn small() -> (Tokenizer, config::Tokenizer) {
        let config = Config::load("debug", &[]).unwrap().tokenizer;
        let device = Device::flex().autodiff();
        (Tokenizer::new(&config, Precision::F32, &device), config)
    }

    #[test]
    fn shapes_follow_from_the_config() {
        let (tokenizer, config) = small();
        let frames = Tensor::zeros([2, 3, 32, 32], &Device::flex());
        let tokens = tokenizer.valid().encode(frames);
        assert_eq!(tokens.dims(), [2, 16]);
        assert_eq!(tokenizer.valid().decode(tokens).dims(), [2, 3, 32, 32]);
        assert_eq!(
            tokenizer.codes().dims(),
            [config.vocabulary, config.embedding]
        );
    }

    #[test]
    fn both_codebook_terms_reach_their_side() {
        let (tokenizer, _) = small();
        let frames = Tensor::random(
            [2, 3, 32, 32],
            Distribution::Uniform(-1.0, 1.0),
            &Device::flex(),
        );
        let losses = tokenizer.losses(frames, config::Reconstruction::L1, None);
        let grads = losses.commitment.backward();
        assert!(tokenizer.codebook.val().grad(&grads).is_some());
        let conv = tokenizer.pre_quant_conv.as_ref().unwrap();
        assert!(conv.weight.val().grad(&grads).is_some());
    }

    /// How much the latents of all other cells move, relative to that of one whose pixels do.
    fn effect_beside(sight: &str) -> f32 {
        let keys = [
            format!("tokenizer.sight={sight}"),
            "tokenizer.quantiser_convs=false".into(),
        ];
        let config = Config::load("debug", &keys).unwrap().tokenizer;
        let device = Device::flex();
        device.seed(3);
        let tokenizer = Tokenizer::new(&config, Precision::F32, &device);
        let range = Distribution::Uniform(-1.0, 1.0);
        let before: Tensor<4> = Tensor::random([1, 3, 32, 32], range, &device);
        let cell = Tensor::random([1, 3, 8, 8], range, &device);
        let after = before
            .clone()
            .slice_assign([0..1, 0..3, 16..24, 16..24], cell);
        let moved = (tokenizer.latents(after) - tokenizer.latents(before)).abs();
        let own = moved.clone().slice([0..1, 2..3, 2..3]);
        let others = moved.slice_assign([0..1, 2..3, 2..3], own.zeros_like());
        others.sum().into_scalar::<f32>() / own.sum().into_scalar::<f32>()
    }

    #[test]
    fn a_narrow_code_sees_its_own_cell_only() {
        let (narrow, wide) = (effect_beside("narrow"), effect_beside("wide"));
        assert!(narrow == 0.0 && wide > 0.1, "{narrow} {wide}");
    }
}
