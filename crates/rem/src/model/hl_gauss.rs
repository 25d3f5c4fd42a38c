//! Regression as classification: a number is a histogram of a normal distribution around it (HL-Gauss, Imani and White
//! 2018; Farebrother et al. 2024), over bins in symlog space (Hafner et al. 2023), with the sizes of Simulus.
//!
//! The cross-entropy of bins gives gradients of the same size for small and large numbers. A head of [`BINS`] logits with
//! zero weights stands for 0.

use burn::module::Initializer;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Device, Tensor, TensorData};

/// Number of bins, odd so that one has its center at 0.
pub(crate) const BINS: usize = 129;
/// The bins cover [-LIMIT, LIMIT], in symlog space.
const LIMIT: f64 = 15.0;
const BIN_WIDTH: f64 = 2.0 * LIMIT / BINS as f64;
/// Standard deviation of the normal distribution.
const SIGMA: f64 = 0.75 * BIN_WIDTH;

/// A layer of [`BINS`] logits that starts at zero, so that its first numbers are 0.
pub(crate) fn zero_layer(inputs: usize, device: &Device) -> Linear {
    LinearConfig::new(inputs, BINS)
        .with_initializer(Initializer::Zeros)
        .init(device)
}

/// sign(x) ln(1 + |x|), limited to the bins.
fn symlog(x: Tensor<1>) -> Tensor<1> {
    (x.clone().sign() * x.abs().log1p()).clamp(-LIMIT, LIMIT)
}

/// The inverse of [`symlog`]: sign(x) (exp|x| - 1).
fn symexp(x: Tensor<1>) -> Tensor<1> {
    x.clone().sign() * (x.abs().exp() - 1.0)
}

/// Equally spaced numbers from `first` on, `[1, count]`; type and device, without autodiff, are those of `like`.
fn spaced<const D: usize>(first: f64, count: usize, like: &Tensor<D>) -> Tensor<2> {
    let row: Vec<f64> = (0..count).map(|i| first + i as f64 * BIN_WIDTH).collect();
    Tensor::from_data(
        TensorData::new(row, [1, count]),
        (&like.device().without_autodiff(), like.dtype()),
    )
}

/// The probabilities of the bins for each number: `[rows]` -> `[rows, BINS]`.
fn histograms(x: Tensor<1>) -> Tensor<2> {
    let [rows] = x.dims();
    let edges = spaced(-LIMIT, BINS + 1, &x);
    let distances: Tensor<2> = edges - symlog(x).reshape([rows, 1]);
    // Twice the distribution function, up to a constant; the sum of a row cancels the factor.
    let cumulative = distances.div_scalar(SIGMA * std::f64::consts::SQRT_2).erf();
    let bins = cumulative.clone().narrow(1, 1, BINS) - cumulative.narrow(1, 0, BINS);
    bins.clone() / bins.sum_dim(1)
}

/// The cross-entropy between logits and the histograms of numbers: `[rows, BINS]`, `[rows]` -> `[rows]`.
pub(crate) fn losses(logits: Tensor<2>, x: Tensor<1>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    let losses = (histograms(x) * log_softmax(logits, 1)).sum_dim(1).neg();
    losses.reshape([rows])
}

/// The numbers that logits stand for, the mean of the bins in symlog space: `[rows, BINS]` -> `[rows]`.
pub(crate) fn decode(logits: Tensor<2>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    let centers = spaced(0.5 * BIN_WIDTH - LIMIT, BINS, &logits);
    symexp((softmax(logits, 1) * centers).sum_dim(1).reshape([rows]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    fn numbers(x: &[f32]) -> Tensor<1> {
        Tensor::from_floats(x, &Device::flex())
    }

    /// Rows of `sin(i / period)`.
    fn sines(rows: usize, period: f32) -> Tensor<2> {
        let row: Vec<f32> = (0..BINS).map(|i| (i as f32 / period).sin()).collect();
        numbers(&row).reshape([1, BINS]).repeat_dim(0, rows)
    }

    fn assert_close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let close = (found - expected).abs() <= 2e-5 * expected.abs().max(1.0);
            assert!(close, "{found} is not {expected}");
        }
    }

    /// ```python
    /// import numpy as np
    /// from math import erf
    /// edges = np.linspace(-15, 15, 130)
    /// sigma = 0.75 * 30 / 129
    /// symlog = lambda x: np.sign(x) * np.log1p(abs(x))
    /// def target(x):
    ///     p = np.diff([0.5 * (1 + erf((e - symlog(x)) / (sigma * 2**0.5))) for e in edges])
    ///     return p / p.sum()
    /// print(target(0.7)[64:69], target(-20)[49:54])
    /// ```
    #[test]
    fn histograms_match_numpy() {
        let found = host::floats(histograms(numbers(&[0.7, -20.0])));
        let expected = [0.008656, 0.139883, 0.465856, 0.333355, 0.050596];
        assert_close(&found[64..69], &expected);
        let expected = [0.029525, 0.262781, 0.491859, 0.198252, 0.016647];
        assert_close(&found[BINS + 49..BINS + 54], &expected);
    }

    /// ```python
    /// logits = np.sin(np.arange(129))
    /// logp = logits - np.log(np.exp(logits).sum())
    /// print([-(target(x) * logp).sum() for x in [0.7, -20, 0]])
    /// ```
    #[test]
    fn losses_match_numpy() {
        let found = host::floats(losses(sines(3, 1.0), numbers(&[0.7, -20.0, 0.0])));
        assert_close(&found, &[5.32803, 4.67442, 4.44254]);
    }

    /// ```python
    /// p = np.exp(np.sin(np.arange(129) / 20))
    /// m = (p / p.sum() * (edges[1:] + edges[:-1]) / 2).sum()
    /// print(np.sign(m) * np.expm1(abs(m)))
    /// ```
    #[test]
    fn decoded_numbers_match_numpy() {
        assert_close(&host::floats(decode(sines(1, 20.0))), &[-56.1628]);
    }

    /// Bins next to a number make up for each other.
    #[test]
    fn histograms_decode_to_their_numbers() {
        let x = [0.0, 0.5, 1.0, -1.0, 3.0, 100.0, -10_000.0];
        let logits = (histograms(numbers(&x)) + 1e-30).log();
        assert_close(&host::floats(decode(logits)), &x);
    }

    #[test]
    fn numbers_beyond_the_bins_have_finite_losses() {
        let found = host::floats(losses(sines(3, 1.0), numbers(&[1e9, -1e30, f32::MAX])));
        assert!(found.iter().all(|loss| loss.is_finite()), "{found:?}");
    }

    #[test]
    fn a_new_layer_decodes_to_zero_and_learns_its_number() {
        let device = Device::flex().autodiff();
        let layer = zero_layer(3, &device);
        let x = Tensor::<2>::from_floats([[1.0, -1.0, 2.0]], &device);
        assert_eq!(
            host::floats(decode(layer.forward(x.clone()).inner())),
            [0.0]
        );
        let mut weight = layer.weight.val();
        for _ in 0..500 {
            let loss = losses(x.clone().matmul(weight.clone()), numbers(&[5.0])).sum();
            let gradient = weight.grad(&loss.backward()).expect("a gradient");
            let next = weight.inner() - gradient.mul_scalar(0.5);
            weight = next.autodiff().require_grad();
        }
        let learned = host::floats(decode(x.matmul(weight).inner()));
        assert!((learned[0] - 5.0).abs() < 0.05, "{learned:?}");
    }
}
