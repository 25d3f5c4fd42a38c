//! Categorical sampling on the device with random numbers from the host.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};

/// Samples one class per row: `[rows, classes]` logits -> `[rows]`.
pub fn sample(logits: Tensor<2>, rng: &mut impl Rng) -> Tensor<1, Int> {
    let [rows, _] = logits.dims();
    let draws = uniform(rows, &logits.device(), rng);
    rem_kernels::sample(logits, draws)
}

/// Uniform random numbers in [0, 1), `[count]`.
fn uniform(count: usize, device: &Device, rng: &mut impl Rng) -> Tensor<1> {
    let draws: Vec<f32> = (0..count).map(|_| rng.random::<f32>()).collect();
    Tensor::from_data(TensorData::new(draws, [count]), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn frequencies_match_the_probabilities() {
        let device = Device::flex();
        let p = [0.1f32, 0.0, 0.6, 0.3];
        let logits = Tensor::<1>::from_floats(p.map(|p| p.ln().max(-1e30)), &device);
        let logits = logits.reshape([1, 4]).repeat_dim(0, 20_000);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let drawn: Vec<i64> = sample(logits, &mut rng).try_into_vec_as().unwrap();
        for (class, p) in p.iter().enumerate() {
            let share = drawn.iter().filter(|d| **d == class as i64).count() as f32 / 20_000.0;
            assert!((share - p).abs() < 0.015, "class {class}: {share} for {p}");
        }
        assert!(!drawn.contains(&1), "an impossible class was drawn");
    }

    #[test]
    fn extreme_random_numbers_never_pick_an_impossible_class() {
        let device = Device::flex();
        let logits = Tensor::<2>::from_floats([[-1e30, 0.0, 0.0], [0.0, 0.0, -1e30]], &device);
        let draws = Tensor::from_floats([0.0, 1.0 - f32::EPSILON / 2.0], &device);
        let drawn: Vec<i64> = rem_kernels::sample(logits, draws)
            .try_into_vec_as()
            .unwrap();
        assert_eq!(drawn, [1, 1]);
    }
}
