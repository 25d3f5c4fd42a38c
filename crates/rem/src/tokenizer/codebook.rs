//! The quantiser: nearest codes, how many of them live, and two ways to keep them alive.

use burn::tensor::{Tensor, TensorData};
use rand::distr::{Distribution, weighted::WeightedIndex};
use rand::{Rng, RngExt};

/// Which codes were used lately: the watch against a collapsed codebook.
#[derive(Clone, Debug)]
pub struct CodeUse {
    counts: Vec<u64>,
    unused_for: Vec<u32>,
}

impl CodeUse {
    pub fn new(vocabulary: usize) -> Self {
        Self {
            counts: vec![0; vocabulary],
            unused_for: vec![0; vocabulary],
        }
    }

    /// Counts the tokens of one training step.
    pub fn count(&mut self, tokens: &[u16]) {
        self.unused_for.iter_mut().for_each(|n| *n += 1);
        for &token in tokens {
            self.counts[token as usize] += 1;
            self.unused_for[token as usize] = 0;
        }
    }

    /// How often each code was used.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Codes used at least once since the start of the count.
    pub fn alive(&self) -> usize {
        self.counts.iter().filter(|n| **n > 0).count()
    }

    /// exp of the entropy of the tokens' distribution: how many codes carry the load.
    pub fn perplexity(&self) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let entropy: f64 = self
            .counts
            .iter()
            .filter(|n| **n > 0)
            .map(|n| *n as f64 / total.max(1) as f64)
            .map(|p| -p * p.ln())
            .sum();
        entropy.exp()
    }

    /// Codes that no token chose for at least `steps` steps; they count as fresh afterwards.
    pub fn take_dead(&mut self, steps: u32) -> Vec<usize> {
        let dead: Vec<usize> = (0..self.counts.len())
            .filter(|i| self.unused_for[*i] >= steps)
            .collect();
        dead.iter().for_each(|i| self.unused_for[*i] = 0);
        dead
    }
}

/// Moves the codes `which` onto rows of `latents` (`[rows, embedding]`), one after the other. A row is drawn with a
/// probability proportional to its squared distance to the nearest code that is settled already (the seeding of
/// k-means++, Arthur and Vassilvitskii 2007): codes go where the others draw worst. Drawn without preference, most
/// would land on the background, and which of many codes next to each other a patch of it gets is noise that a world
/// model can never predict.
pub fn move_codes(
    codes: Tensor<2>,
    which: &[usize],
    latents: Tensor<2>,
    rng: &mut impl Rng,
) -> Tensor<2> {
    let device = codes.device();
    let [count, width] = latents.dims();
    let [vocabulary, _] = codes.dims();
    let rows = host_rows(&latents);
    let settled = host_rows(&codes);
    let mut far = vec![f32::INFINITY; count];
    for (_, code) in settled
        .chunks_exact(width)
        .enumerate()
        .filter(|(i, _)| !which.contains(i))
    {
        shorten(&mut far, &rows, code);
    }

    let mut source: Vec<i64> = (0..vocabulary as i64).collect();
    for &code in which {
        let row = draw(&far, rng);
        source[code] = (vocabulary + row) as i64;
        shorten(&mut far, &rows, &rows[row * width..][..width]);
    }
    let index = Tensor::from_data(TensorData::new(source, [vocabulary]), &device);
    Tensor::cat(vec![codes, latents], 0).select(0, index)
}

fn host_rows(tensor: &Tensor<2>) -> Vec<f32> {
    tensor
        .clone()
        .try_into_vec_as()
        .expect("latents and codes are f32")
}

/// Lets `far` know of one more code: the squared distance of each row to its nearest one.
fn shorten(far: &mut [f32], rows: &[f32], code: &[f32]) {
    for (far, row) in far.iter_mut().zip(rows.chunks_exact(code.len())) {
        let squared: f32 = row.iter().zip(code).map(|(a, b)| (a - b) * (a - b)).sum();
        *far = far.min(squared);
    }
}

/// An index with a probability proportional to its weight; any, before the first code (all infinite) and where the
/// codes leave nothing to be drawn better (all zero).
fn draw(weights: &[f32], rng: &mut impl Rng) -> usize {
    let total: f32 = weights.iter().sum();
    match WeightedIndex::new(weights) {
        Ok(by_weight) if total.is_finite() => by_weight.sample(rng),
        _ => rng.random_range(0..weights.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn nearest_code_by_euclidean_distance() {
        let device = Device::flex();
        let codes = Tensor::from_floats([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]], &device);
        let rows = Tensor::from_floats([[0.6, 0.1], [0.1, 0.2], [0.0, 1.6], [0.4, 0.0]], &device);
        let found: Vec<i64> = rem_kernels::nearest(rows, codes).try_into_vec_as().unwrap();
        assert_eq!(found, [1, 0, 2, 0]);
    }

    #[test]
    fn use_of_codes() {
        let mut used = CodeUse::new(4);
        used.count(&[0, 0, 1, 1]);
        used.count(&[0, 1, 1, 0]);
        assert_eq!(used.alive(), 2);
        assert!((used.perplexity() - 2.0).abs() < 1e-9);
        assert_eq!(used.take_dead(2), [2, 3]);
        assert!(used.take_dead(2).is_empty());
    }

    #[test]
    fn dead_codes_move_onto_latents_and_the_others_stay() {
        let device = Device::flex();
        let codes = Tensor::from_floats([[0.0, 0.0], [1.0, 1.0]], &device);
        let latents = Tensor::from_floats([[5.0, 5.0], [5.0, 5.0]], &device);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let moved: Vec<f32> = move_codes(codes, &[1], latents, &mut rng)
            .try_into_vec_as()
            .unwrap();
        assert_eq!(moved, [0.0, 0.0, 5.0, 5.0]);
    }

    #[test]
    fn codes_spread_over_what_differs_however_rare_it_is() {
        let device = Device::flex();
        let mut rows = vec![[0.0f32, 0.0]; 60];
        rows.extend([[9.0, 0.0], [0.0, 9.0], [9.0, 9.0]]);
        let latents = TensorData::new(rows.concat(), [63, 2]);
        let latents = Tensor::from_data(latents, &device);
        let codes = Tensor::full([4, 2], 100.0, &device);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let moved = move_codes(codes, &[0, 1, 2, 3], latents, &mut rng);
        let mut moved: Vec<f32> = moved.try_into_vec_as().unwrap();
        moved.sort_by(f32::total_cmp);
        assert_eq!(moved, [0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]);
    }
}
