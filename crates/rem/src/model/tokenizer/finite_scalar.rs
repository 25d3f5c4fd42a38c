//! Finite scalar quantization (Mentzer et al. 2023): each of a few numbers is rounded to one of a few levels, and every
//! combination is a code. There is no codebook that could collapse, and no commitment loss.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rem_kernels::{Activation, Precision};

use crate::model::linear::linear;

/// Keeps the outermost levels as wide as the others.
const MARGIN: f64 = 1e-3;

/// Projections between latents and the numbers that are quantized.
#[derive(Module, Debug)]
pub(super) struct FiniteScalar {
    down: Linear,
    up: Linear,
    /// Number of levels of each number.
    #[module(skip)]
    levels: Vec<usize>,
}

/// Quantized latents.
pub(super) struct Quantized {
    /// Indices of the codes, `[rows]`.
    pub(super) tokens: Tensor<1, Int>,
    /// The codes, `[rows, embedding]`, with a straight-through gradient to the latents.
    pub(super) codes: Tensor<2>,
}

impl FiniteScalar {
    pub(super) fn new(levels: &[usize], width: usize, device: &Device) -> Self {
        Self {
            down: LinearConfig::new(width, levels.len()).init(device),
            up: LinearConfig::new(levels.len(), width).init(device),
            levels: levels.to_vec(),
        }
    }

    /// Indices of codes, `[rows, embedding]` -> `[rows]`.
    pub(super) fn tokens(&self, latents: Tensor<2>) -> Tensor<1, Int> {
        self.indices(self.bounded(latents).round())
    }

    pub(super) fn quantize(&self, latents: Tensor<2>) -> Quantized {
        let bounded = self.bounded(latents);
        let rounded = bounded.clone().detach().round();
        let straight_through = bounded.clone() + (rounded.clone() - bounded.detach());
        Quantized {
            tokens: self.indices(rounded.inner()),
            codes: self.embed(straight_through),
        }
    }

    /// All codes in the order of their indices, `[vocabulary, embedding]`, with gradient.
    pub(super) fn codes(&self) -> Tensor<2> {
        let count: usize = self.levels.iter().product();
        let digits = (0..count).flat_map(|index| {
            let mut rest = index;
            self.levels.iter().map(move |level| {
                let digit = rest % level;
                rest /= level;
                digit as f32 - (level / 2) as f32
            })
        });
        let rows = TensorData::new(digits.collect::<Vec<f32>>(), [count, self.levels.len()]);
        let device = self.down.weight.device().without_autodiff();
        self.embed(Tensor::from_data(rows, &device))
    }

    /// Numbers that round to the levels, from `-(levels / 2)` on: `[rows, embedding]` -> `[rows, numbers]`. A latent of 0
    /// gives 0.
    fn bounded(&self, latents: Tensor<2>) -> Tensor<2> {
        let numbers = linear(&self.down, Activation::None, latents, Precision::F32);
        let half = |levels: &usize| (levels - 1) as f64 * (1.0 - MARGIN) / 2.0;
        // An even number of levels has no middle: they are 0.5 further down.
        let offset = |levels: &usize| f64::from(levels.is_multiple_of(2)) * 0.5;
        let row = |f: &dyn Fn(&usize) -> f64| self.row(f, &numbers);
        let shift = row(&|levels| (offset(levels) / half(levels)).atanh());
        (numbers.clone() + shift).tanh() * row(&half) - row(&offset)
    }

    /// Mixed-radix numbers of rounded rows, the first digit counting least: `[rows, numbers]` -> `[rows]`.
    fn indices(&self, rounded: Tensor<2>) -> Tensor<1, Int> {
        let [rows, _] = rounded.dims();
        let bases = self.levels.iter().scan(1.0, |base, levels| {
            let this = *base;
            *base *= *levels as f64;
            Some(this)
        });
        let bases: Vec<f64> = bases.collect();
        let lowest = self.row(&|levels| (levels / 2) as f64, &rounded);
        let bases = TensorData::new(bases, [1, self.levels.len()]);
        let bases = Tensor::from_data(bases, (&rounded.device(), rounded.dtype()));
        ((rounded + lowest) * bases)
            .sum_dim(1)
            .reshape([rows])
            .int()
    }

    /// The code vectors of rounded numbers, which are scaled to [-1, 1]: `[rows, numbers]` -> `[rows, embedding]`.
    fn embed(&self, rounded: Tensor<2>) -> Tensor<2> {
        let scale = self.row(&|levels| 1.0 / (levels / 2) as f64, &rounded);
        linear(&self.up, Activation::None, rounded * scale, Precision::F32)
    }

    /// `f` of each number's levels, `[1, numbers]`; type and device, without autodiff, are those of `like`.
    fn row(&self, f: &dyn Fn(&usize) -> f64, like: &Tensor<2>) -> Tensor<2> {
        let row: Vec<f64> = self.levels.iter().map(f).collect();
        let data = TensorData::new(row, [1, self.levels.len()]);
        Tensor::from_data(data, (&like.device().without_autodiff(), like.dtype()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::host;
    use crate::model::tokenizer::Tokenizer;
    use crate::model::weights;
    use crate::train::optimizer::{AdamW, DecayGroup};
    use burn::module::Param;
    use burn::tensor::Distribution;

    /// Levels 8, 5 and 4 of the latents themselves.
    fn quantizer(device: &Device) -> FiniteScalar {
        let identity = || Linear {
            weight: Param::from_tensor(Tensor::eye(3, device)),
            bias: Some(Param::from_tensor(Tensor::zeros([3], device))),
        };
        let quantizer = FiniteScalar::new(&[8, 5, 4], 3, device);
        FiniteScalar {
            down: identity(),
            up: identity(),
            ..quantizer
        }
    }

    /// ```python
    /// import numpy as np
    /// levels = np.array([8, 5, 4])
    /// half, offset = (levels - 1) * 0.999 / 2, (levels % 2 == 0) * 0.5
    /// z = np.array([[0.3, -0.4, 0.9], [-9, -9, -9], [9, 9, 9], [0, 0, 0.01]])
    /// q = np.round(np.tanh(z + np.arctanh(offset / half)) * half - offset)
    /// print(q / (levels // 2), (q + levels // 2) @ [1, 8, 40])
    /// ```
    #[test]
    fn codes_and_tokens_match_numpy() {
        let device = Device::flex();
        let z = [[0.3, -0.4, 0.9], [-9.0; 3], [9.0; 3], [0.0, 0.0, 0.01]];
        let z = Tensor::<2>::from_floats(z, &device);
        let quantized = quantizer(&device).quantize(z.clone());
        let expected = [
            0.25, -0.5, 0.5, -1.0, -1.0, -1.0, 0.75, 1.0, 0.5, 0.0, 0.0, 0.0,
        ];
        let found = host::floats(quantized.codes);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
        assert_eq!(host::ints(quantized.tokens), [133, 0, 159, 100]);
        assert_eq!(host::ints(quantizer(&device).tokens(z)), [133, 0, 159, 100]);
    }

    #[test]
    fn a_token_is_the_index_of_its_code() {
        let device = Device::flex();
        let z = Tensor::<2>::random([200, 3], Distribution::Normal(0.0, 2.0), &device);
        let quantizer = quantizer(&device);
        let quantized = quantizer.quantize(z);
        assert_eq!(quantizer.codes().dims(), [160, 3]);
        let rows = quantizer.codes().select(0, quantized.tokens.clone());
        let difference = (rows - quantized.codes).abs().max().into_scalar::<f32>();
        assert!(difference < 1e-6, "{difference}");
        let mut used = host::ints(quantized.tokens);
        used.sort_unstable();
        used.dedup();
        assert!(used.len() > 60 && used[0] >= 0 && *used.last().unwrap() < 160);
    }

    /// The gradient passes the rounding, but not the tanh, unchanged.
    #[test]
    fn gradients_pass_the_rounding() {
        let device = Device::flex().autodiff();
        let z = Tensor::<2>::from_floats([[0.3, -0.4, 0.9]], &device).require_grad();
        let quantizer = quantizer(&device);
        let gradients = quantizer.quantize(z.clone()).codes.sum().backward();
        let found = host::floats(z.grad(&gradients).unwrap());
        // (half / (levels / 2)) (1 - tanh²) by the formula of the test above.
        let levels = [8.0f64, 5.0, 4.0];
        for ((found, z), levels) in found.into_iter().zip([0.3f64, -0.4, 0.9]).zip(levels) {
            let half = (levels - 1.0) * 0.999 / 2.0;
            let offset = if levels % 2.0 == 0.0 { 0.5 } else { 0.0 };
            let t = (z + (offset / half).atanh()).tanh();
            let expected = half / (levels / 2.0).floor() * (1.0 - t * t);
            assert!(
                (f64::from(found) - expected).abs() < 1e-5,
                "{found} {expected}"
            );
        }
    }

    /// Tokens of the training pass are those of [`Tokenizer::encode`], and every parameter gets a gradient.
    #[test]
    fn finite_scalar_quantization_trains_encoder_and_decoder() {
        let set = [
            "tokenizer.vocabulary=512",
            "tokenizer.quantizer=finite_scalar",
        ];
        let config = Config::load("debug", &set.map(String::from)).unwrap();
        let config = config.tokenizer;
        let device = Device::flex().autodiff();
        let tokenizer = Tokenizer::new(&config, Precision::F32, &device);
        let uniform = Distribution::Uniform(-1.0, 1.0);
        let frames = Tensor::random([2, 3, 32, 32], uniform, &Device::flex());
        let losses = tokenizer.losses(frames.clone(), &config, None);
        let encoded = tokenizer.valid().encode(frames);
        assert_eq!(
            host::ints(losses.tokens.clone()),
            host::ints(encoded.clone())
        );
        assert_eq!(losses.commitment.clone().into_scalar::<f32>(), 0.0);
        assert_eq!(tokenizer.codes().dims(), [512, config.embedding]);
        assert_eq!(tokenizer.valid().decode(encoded).dims(), [2, 3, 32, 32]);

        let optimizer = &config.optimizer;
        let train = Config::load("debug", &[]).unwrap().train;
        let mut adamw = AdamW::new(optimizer, &train, DecayGroup::All);
        adamw.step(tokenizer.clone(), &losses.total()).unwrap();
        let parameters = weights::collect(&tokenizer).len();
        assert_eq!(adamw.to_arrays().len(), 2 * parameters);
    }
}
