//! The tokenizer V: frames to K tokens and back (Section 2.1, Appendix A.1.1).

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Distribution, Int, Tensor};

use rem_kernels::{Activation, ConvKind, Precision};

use crate::config;
use crate::model::conv::{conv, conv1};

mod codebook;
mod conv_nets;
mod finite_scalar;
pub mod lpips;
mod patch_nets;

pub use codebook::CodeUsage;
pub(crate) use codebook::reset_codes;
use conv_nets::{ConvDecoder, ConvEncoder};
use finite_scalar::FiniteScalar;
use lpips::Lpips;
pub use patch_nets::patch_width;
use patch_nets::{PatchDecoder, PatchEncoder};

/// A VQ-VAE over frames in [-1, 1].
#[derive(Module, Debug)]
pub struct Tokenizer {
    encoder: Encoder,
    pre_quant_conv: Option<Conv2d>,
    /// The codes C, `[vocabulary, embedding]`; `None` with finite scalar quantization.
    codebook: Option<Param<Tensor<2>>>,
    finite_scalar: Option<FiniteScalar>,
    post_quant_conv: Option<Conv2d>,
    decoder: Decoder,
    #[module(skip)]
    precision: Precision,
}

/// The variants of [`config::Encoder`].
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per agent")]
enum Encoder {
    Cnn(ConvEncoder),
    WhitenedPatches(PatchEncoder),
}

/// The decoder of each [`Encoder`].
#[derive(Module, Debug)]
enum Decoder {
    Cnn(ConvDecoder),
    WhitenedPatches(PatchDecoder),
}

/// The terms of the tokenizer's objective, Equation (8), and by-products of the forward pass.
pub struct TokenizerLosses {
    /// Reconstruction loss without its weight.
    pub reconstruction: Tensor<1>,
    /// Weight of the reconstruction loss.
    pub reconstruction_weight: f64,
    /// Sum of the codebook and the commitment loss, each with weight 1.
    pub commitment: Tensor<1>,
    /// LPIPS loss, if it is on.
    pub perceptual: Option<Tensor<1>>,
    /// Tokens of the frames, `[frames, K]`.
    pub tokens: Tensor<2, Int>,
    /// Latents before quantization, `[frames * K, embedding]`, without gradient.
    pub latents: Tensor<2>,
}

impl TokenizerLosses {
    /// The minimized sum, Equation (8).
    pub fn total(&self) -> Tensor<1> {
        let reconstruction = self.reconstruction.clone();
        let total = reconstruction.mul_scalar(self.reconstruction_weight) + self.commitment.clone();
        match &self.perceptual {
            Some(perceptual) => total + perceptual.clone(),
            None => total,
        }
    }
}

impl Tokenizer {
    /// A tokenizer with initial weights.
    pub fn new(config: &config::Tokenizer, precision: Precision, device: &Device) -> Self {
        let (vocabulary, width) = (config.vocabulary, config.embedding);
        let bound = 1.0 / vocabulary as f64;
        let codes = || {
            let uniform = Distribution::Uniform(-bound, bound);
            Param::from_tensor(Tensor::random([vocabulary, width], uniform, device))
        };
        let (codebook, finite_scalar) = match &config.quantizer {
            config::Quantizer::Codebook {} => (Some(codes()), None),
            config::Quantizer::FiniteScalar { levels } => {
                (None, Some(FiniteScalar::new(levels, width, device)))
            }
        };
        let quantizer_conv = || {
            let convs = config::Encoder::Cnn {
                quantizer_convs: true,
            };
            (config.encoder == convs).then(|| conv1(width, width, device))
        };
        Self {
            encoder: match config.encoder {
                config::Encoder::Cnn { .. } => Encoder::Cnn(ConvEncoder::new(config, device)),
                config::Encoder::WhitenedPatches {} => {
                    Encoder::WhitenedPatches(PatchEncoder::new(config, device))
                }
            },
            pre_quant_conv: quantizer_conv(),
            codebook,
            finite_scalar,
            post_quant_conv: quantizer_conv(),
            decoder: match config.encoder {
                config::Encoder::Cnn { .. } => Decoder::Cnn(ConvDecoder::new(config, device)),
                config::Encoder::WhitenedPatches {} => {
                    Decoder::WhitenedPatches(PatchDecoder::new(config, device))
                }
            },
            precision,
        }
    }

    /// The codes, `[vocabulary, embedding]`, without gradient.
    pub fn codes(&self) -> Tensor<2> {
        self.code_table().inner()
    }

    /// As [`Self::codes`] with gradient.
    fn code_table(&self) -> Tensor<2> {
        match (&self.codebook, &self.finite_scalar) {
            (Some(codes), _) => codes.val(),
            (None, Some(quantizer)) => quantizer.codes(),
            (None, None) => unreachable!("a tokenizer has a quantizer"),
        }
    }

    /// Frames to latents before quantization.
    ///
    /// # Shapes
    ///
    /// - `frames`: `[frames, 3, size, size]` in [-1, 1] -> `[frames, grid, grid, embedding]`
    pub fn latents(&self, frames: Tensor<4>) -> Tensor<4> {
        self.latents_channels_last(frames.permute(CHANNELS_LAST))
    }

    /// As [`Self::latents`] for `[frames, size, size, 3]`.
    fn latents_channels_last(&self, images: Tensor<4>) -> Tensor<4> {
        let z = match &self.encoder {
            Encoder::Cnn(encoder) => encoder.forward(images, self.precision),
            Encoder::WhitenedPatches(encoder) => encoder.forward(images),
        };
        self.pointwise(&self.pre_quant_conv, z)
    }

    /// A 1x1 convolution, or the identity if there is none.
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
    pub(crate) fn latent_rows(&self, frames: Tensor<4>) -> Tensor<2> {
        rows(self.latents(frames))
    }

    /// Frames in [-1, 1] to tokens, the indices of the nearest codes: `[frames, 3, size, size]` -> `[frames, K]`.
    pub fn encode(&self, frames: Tensor<4>) -> Tensor<2, Int> {
        let z = self.latents(frames);
        let [n, h, w, _] = z.dims();
        let tokens = match &self.finite_scalar {
            Some(quantizer) => quantizer.tokens(rows(z)),
            None => rem_kernels::nearest(rows(z), self.code_table()),
        };
        tokens.reshape([n, h * w])
    }

    /// Tokens to frames: `[frames, K]` -> `[frames, 3, size, size]`. Values are about [-1, 1], not clamped.
    pub fn decode(&self, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.decode_channels_last(tokens).permute(CHANNELS_FIRST)
    }

    /// As [`Self::decode`], channels last: `[frames, K]` -> `[frames, size, size, 3]`.
    pub(crate) fn decode_channels_last(&self, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.decode_latents(code_grid(self.code_table(), tokens))
    }

    /// `[frames, grid, grid, embedding]` -> `[frames, size, size, 3]`
    fn decode_latents(&self, q: Tensor<4>) -> Tensor<4> {
        let q = self.pointwise(&self.post_quant_conv, q);
        match &self.decoder {
            Decoder::Cnn(decoder) => decoder.forward(q, self.precision),
            Decoder::WhitenedPatches(decoder) => decoder.forward(q, self.precision),
        }
    }

    /// The training forward pass on `[frames, 3, size, size]` in [-1, 1], with a straight-through gradient at the
    /// quantizer.
    pub fn losses(
        &self,
        frames: Tensor<4>,
        config: &config::Tokenizer,
        perceptual: Option<&Lpips>,
    ) -> TokenizerLosses {
        let images = frames.permute(CHANNELS_LAST);
        let z = self.latents_channels_last(images.clone());
        let latents = rows(z.clone()).inner();
        let (tokens, straight_through, commitment) = match &self.finite_scalar {
            Some(quantizer) => {
                let [n, h, w, width] = z.dims();
                let quantized = quantizer.quantize(rows(z));
                let nothing = quantized.codes.clone().inner().sum().mul_scalar(0.0);
                let tokens = quantized.tokens.reshape([n, h * w]);
                (tokens, quantized.codes.reshape([n, h, w, width]), nothing)
            }
            None => self.nearest_codes(z, latents.clone()),
        };
        let output = self.decode_latents(straight_through);
        let difference = output.clone() - images.clone();
        let reconstruction = match config.reconstruction {
            config::Reconstruction::Mse => difference.square().mean(),
            config::Reconstruction::L1 => difference.abs().mean(),
        };
        TokenizerLosses {
            reconstruction,
            reconstruction_weight: config.reconstruction_weight,
            commitment,
            perceptual: perceptual.map(|lpips| lpips.distance(images, output).mean()),
            tokens,
            latents,
        }
    }

    /// The nearest codes of latents, `[frames, grid, grid, embedding]`: their tokens, the codes with a straight-through
    /// gradient, and the codebook and commitment loss. `rows` are the latents without gradient.
    fn nearest_codes(
        &self,
        z: Tensor<4>,
        rows: Tensor<2>,
    ) -> (Tensor<2, Int>, Tensor<4>, Tensor<1>) {
        let [n, h, w, width] = z.dims();
        let tokens = rem_kernels::nearest(rows, self.codes()).reshape([n, h * w]);
        let q = code_grid(self.code_table(), tokens.clone());
        assert_eq!(q.dims(), [n, h, w, width]);
        let commitment = (z.clone().detach() - q.clone()).square().mean()
            + (q.clone().detach() - z.clone()).square().mean();
        (tokens, z.clone() + (q - z).detach(), commitment)
    }

    /// Fits the whitening of [`config::Encoder::WhitenedPatches`] to frames, `[frames, 3, size, size]`. Other encoders
    /// stay unchanged.
    pub(crate) fn fit_whitening(mut self, frames: Tensor<4>) -> Self {
        self.encoder = match self.encoder {
            Encoder::WhitenedPatches(encoder) => {
                Encoder::WhitenedPatches(encoder.fit_whitening(frames.permute(CHANNELS_LAST)))
            }
            cnn => cnn,
        };
        self
    }

    /// Replaces the codes, `[vocabulary, embedding]`.
    ///
    /// # Panics
    ///
    /// Panics without a codebook.
    pub(crate) fn with_codes(mut self, codes: Tensor<2>) -> Self {
        let codebook = self.codebook.take().expect("a codebook");
        assert_eq!(codes.dims(), codebook.dims());
        let codebook = codebook.map(|old| codes.autodiff().set_require_grad(old.is_require_grad()));
        self.codebook = Some(codebook);
        self
    }
}

/// Permutation `[n, c, h, w]` -> `[n, h, w, c]`.
const CHANNELS_LAST: [isize; 4] = [0, 2, 3, 1];
/// Permutation `[n, h, w, c]` -> `[n, c, h, w]`.
const CHANNELS_FIRST: [isize; 4] = [0, 3, 1, 2];

/// Latents as rows: `[frames, grid, grid, embedding]` -> `[frames * K, embedding]`.
fn rows(latents: Tensor<4>) -> Tensor<2> {
    let [n, h, w, width] = latents.dims();
    latents.reshape([n * h * w, width])
}

/// The code vectors of tokens as a spatial grid.
///
/// # Shapes
///
/// - `codes`: `[vocabulary, embedding]`, `tokens`: `[frames, K]` -> `[frames, grid, grid, embedding]`
pub fn code_grid(codes: Tensor<2>, tokens: Tensor<2, Int>) -> Tensor<4> {
    let [n, k] = tokens.dims();
    let [_, width] = codes.dims();
    let side = k.isqrt();
    assert_eq!(side * side, k, "the tokens of a frame form a square");
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
    fn codes_and_encoder_both_get_commitment_gradients() {
        let (tokenizer, config) = small();
        let frames = Tensor::random(
            [2, 3, 32, 32],
            Distribution::Uniform(-1.0, 1.0),
            &Device::flex(),
        );
        let losses = tokenizer.losses(frames, &config, None);
        let grads = losses.commitment.backward();
        assert!(tokenizer.code_table().grad(&grads).is_some());
        let conv = tokenizer.pre_quant_conv.as_ref().unwrap();
        assert!(conv.weight.val().grad(&grads).is_some());
    }

    /// Changes the pixels of one cell. Returns the change of all other cells' latents relative to that of its own
    /// latent.
    fn effect_on_other_cells(encoder: config::Encoder) -> f32 {
        let mut config = Config::load("debug", &[]).unwrap().tokenizer;
        config.encoder = encoder;
        let device = Device::flex();
        device.seed(3);
        let tokenizer = Tokenizer::new(&config, Precision::F32, &device);
        let range = Distribution::Uniform(-1.0, 1.0);
        let before: Tensor<4> = Tensor::random([1, 3, 32, 32], range, &device);
        let cell = Tensor::random([1, 3, 8, 8], range, &device);
        let after = before
            .clone()
            .slice_assign([0..1, 0..3, 16..24, 16..24], cell);
        let change = (tokenizer.latents(after) - tokenizer.latents(before)).abs();
        let own = change.clone().slice([0..1, 2..3, 2..3]);
        let others = change.slice_assign([0..1, 2..3, 2..3], own.zeros_like());
        others.sum().into_scalar::<f32>() / own.sum().into_scalar::<f32>()
    }

    #[test]
    fn whitened_patches_depend_on_their_own_cell_only() {
        let patches = effect_on_other_cells(config::Encoder::WhitenedPatches {});
        let cnn = effect_on_other_cells(config::Encoder::Cnn {
            quantizer_convs: false,
        });
        assert!(patches == 0.0 && cnn > 0.1, "{patches} {cnn}");
    }
}
