//! Constants of retention: powers of the heads' decay rates, and rotations by position (Section 2.2, Appendix A.3).
//! Retention itself is in `rem_kernels`.

use burn::tensor::{Tensor, TensorCreationOptions, TensorData};

use crate::config;

/// Decay rate η of each head.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decay(Vec<f64>);

impl Decay {
    /// The decay rates of `heads` heads.
    pub(crate) fn new(rates: config::Decay, heads: usize) -> Self {
        let rate = |i: usize| match rates {
            config::Decay::LogSpaced { timescales } => {
                let [first, last] = timescales.map(|tokens| (1.0 / tokens).ln());
                let step = (last - first) / (heads.max(2) - 1) as f64;
                1.0 - (first + step * i as f64).exp()
            }
            config::Decay::PowersOfTwo {} => 1.0 - (-5.0 - i as f64).exp2(),
        };
        Self((0..heads).map(rate).collect())
    }
}

/// Powers of η for chunks of up to `tokens` tokens.
#[derive(Clone, Debug)]
pub(crate) struct DecayTables {
    /// D: η^(n-m) on and below the diagonal, 0 above, `[heads, tokens, tokens]`.
    pub(crate) mask: Tensor<3>,
    /// η^i for i from 0 to `tokens`, `[heads, tokens + 1]`. Holds ξ and ζ.
    pub(crate) powers: Tensor<2>,
}

impl DecayTables {
    pub(crate) fn new(decay: &Decay, tokens: usize, like: &TensorCreationOptions) -> Self {
        let heads = decay.0.len();
        let power = |eta: &f64, i: usize| eta.powi(i as i32) as f32;
        let powers: Vec<f32> = (decay.0.iter())
            .flat_map(|eta| (0..=tokens).map(move |i| power(eta, i)))
            .collect();
        let mut mask = Vec::with_capacity(heads * tokens * tokens);
        for powers in powers.chunks_exact(tokens + 1) {
            for n in 0..tokens {
                mask.extend((0..tokens).map(|m| if m <= n { powers[n - m] } else { 0.0 }));
            }
        }
        let tensor = |values: Vec<f32>, shape: &[usize]| TensorData::new(values, shape.to_vec());
        Self {
            mask: Tensor::from_data(tensor(mask, &[heads, tokens, tokens]), like.clone()),
            powers: Tensor::from_data(tensor(powers, &[heads, tokens + 1]), like.clone()),
        }
    }
}

/// Rotary position encoding Θ: each pair of neighboring channels is rotated by the angle `position * θ`.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    /// `[positions, head_dim]`
    pub(crate) cos: Tensor<2>,
    /// `[positions, head_dim]`
    pub(crate) sin: Tensor<2>,
}

impl Rotation {
    /// Rotations for the given positions.
    pub(crate) fn new(
        positions: impl ExactSizeIterator<Item = usize>,
        head_dim: usize,
        rope_theta: f64,
        like: &TensorCreationOptions,
    ) -> Self {
        let tokens = positions.len();
        let pairs = head_dim / 2;
        // θ = rope_theta^(-linspace(0, 1, pairs)), rounded to f32 at each step as in the published agents. After
        // hundreds of positions, other rounding changes outputs in the fourth decimal.
        let step = 1.0 / (pairs.max(2) - 1) as f32;
        let theta = |pair: usize| {
            let fraction = if pair < pairs / 2 {
                step * pair as f32
            } else {
                1.0 - step * (pairs - 1 - pair) as f32
            };
            1.0 / (rope_theta.powf(f64::from(fraction)) as f32)
        };
        let angles: Vec<f32> = positions
            .flat_map(|p| (0..head_dim).map(move |c| p as f32 * theta(c / 2)))
            .collect();
        let table = |f: fn(f32) -> f32| {
            let values: Vec<f32> = angles.iter().map(|a| f(*a)).collect();
            Tensor::from_data(TensorData::new(values, [tokens, head_dim]), like.clone())
        };
        Self {
            cos: table(f32::cos),
            sin: table(f32::sin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn decay_rates_match_the_paper_and_the_published_code() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        let paper = Decay::new(config::Decay::PowersOfTwo {}, 3);
        assert!(close(&paper.0, &[31.0 / 32.0, 63.0 / 64.0, 127.0 / 128.0]));
        let code = Decay::new(config::Decay::default(), 3);
        assert!(close(
            &code.0,
            &[31.0 / 32.0, 1.0 - 1.0 / 128.0, 511.0 / 512.0]
        ));
        let short = Decay::new(
            config::Decay::LogSpaced {
                timescales: [16.0, 64.0],
            },
            3,
        );
        assert!(close(&short.0, &[15.0 / 16.0, 31.0 / 32.0, 63.0 / 64.0]));
    }

    #[test]
    fn mask_is_lower_triangular_and_powers_start_at_one() {
        let like = TensorCreationOptions::new(Device::flex());
        let tables = DecayTables::new(&Decay(vec![0.5, 0.25]), 3, &like);
        let powers: Vec<f32> = tables.powers.try_into_vec_as().unwrap();
        assert_eq!(powers, [1.0, 0.5, 0.25, 0.125, 1.0, 0.25, 0.0625, 0.015625]);
        let mask: Vec<f32> = tables.mask.narrow(0, 0, 1).try_into_vec_as().unwrap();
        assert_eq!(mask, [1.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn neighboring_channels_share_an_angle() {
        let like = TensorCreationOptions::new(Device::flex());
        for (rope_theta, last) in [(1e4, 2e-4f32), (100.0, 2e-2)] {
            let rotation = Rotation::new(2..3, 4, rope_theta, &like);
            let cos: Vec<f32> = rotation.cos.try_into_vec_as().unwrap();
            let sin: Vec<f32> = rotation.sin.try_into_vec_as().unwrap();
            for (i, angle) in [2.0, 2.0, last, last].into_iter().enumerate() {
                assert!((cos[i] - angle.cos()).abs() < 1e-6 && (sin[i] - angle.sin()).abs() < 1e-6);
            }
        }
    }
}
