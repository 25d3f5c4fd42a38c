//! Codebook statistics, and resets of codes to latents.

use burn::tensor::{Tensor, TensorData};
use rand::distr::{Distribution, weighted::WeightedIndex};
use rand::{Rng, RngExt};

/// Usage counts of the codes, to detect a collapsed codebook.
#[derive(Clone, Debug)]
pub struct CodeUsage {
    counts: Vec<u64>,
    /// Training steps since each code was last used.
    unused_for: Vec<u32>,
}

impl CodeUsage {
    /// No code used yet.
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

    /// Number of uses of each code.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of codes used at least once.
    pub fn active(&self) -> usize {
        self.counts.iter().filter(|n| **n > 0).count()
    }

    /// Perplexity of the token distribution, exp(entropy): the effective number of codes.
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

    /// Codes unused for at least `steps` training steps. Their step counts start again at 0.
    pub(crate) fn take_dead(&mut self, steps: u32) -> Vec<usize> {
        let dead: Vec<usize> = (0..self.counts.len())
            .filter(|i| self.unused_for[*i] >= steps)
            .collect();
        dead.iter().for_each(|i| self.unused_for[*i] = 0);
        dead
    }
}

/// Resets the codes `which` to rows of `latents`, one after the other. A row is sampled with a probability proportional
/// to its squared distance to the nearest other code (k-means++ seeding, Arthur and Vassilvitskii 2007). With uniform
/// sampling most codes would land on the background. Which of many similar codes a background patch gets is noise that
/// a world model cannot predict.
///
/// # Shapes
///
/// - `codes`: `[vocabulary, embedding]` -> the same; `latents`: `[rows, embedding]`
pub(crate) fn reset_codes(
    codes: Tensor<2>,
    which: &[usize],
    latents: Tensor<2>,
    rng: &mut impl Rng,
) -> Tensor<2> {
    let device = codes.device();
    let [count, width] = latents.dims();
    let [vocabulary, _] = codes.dims();
    let rows = host_rows(&latents);
    let code_rows = host_rows(&codes);
    let mut distances = vec![f32::INFINITY; count];
    for (_, code) in code_rows
        .chunks_exact(width)
        .enumerate()
        .filter(|(i, _)| !which.contains(i))
    {
        update_distances(&mut distances, &rows, code);
    }

    let mut source: Vec<i64> = (0..vocabulary as i64).collect();
    for &code in which {
        let row = sample_index(&distances, rng);
        source[code] = (vocabulary + row) as i64;
        update_distances(&mut distances, &rows, &rows[row * width..][..width]);
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

/// Updates the squared distance of each row to its nearest code with one more code.
fn update_distances(distances: &mut [f32], rows: &[f32], code: &[f32]) {
    for (distance, row) in distances.iter_mut().zip(rows.chunks_exact(code.len())) {
        let squared: f32 = row.iter().zip(code).map(|(a, b)| (a - b) * (a - b)).sum();
        *distance = distance.min(squared);
    }
}

/// Samples an index with a probability proportional to its weight; uniformly if all weights are infinite (no code yet)
/// or zero (every row equals a code).
fn sample_index(weights: &[f32], rng: &mut impl Rng) -> usize {
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
    fn nearest_code_has_the_smallest_euclidean_distance() {
        let device = Device::flex();
        let codes = Tensor::from_floats([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]], &device);
        let rows = Tensor::from_floats([[0.6, 0.1], [0.1, 0.2], [0.0, 1.6], [0.4, 0.0]], &device);
        let found: Vec<i64> = rem_kernels::nearest(rows, codes).try_into_vec_as().unwrap();
        assert_eq!(found, [1, 0, 2, 0]);
    }

    #[test]
    fn usage_counts_active_and_dead_codes() {
        let mut used = CodeUsage::new(4);
        used.count(&[0, 0, 1, 1]);
        used.count(&[0, 1, 1, 0]);
        assert_eq!(used.active(), 2);
        assert!((used.perplexity() - 2.0).abs() < 1e-9);
        assert_eq!(used.take_dead(2), [2, 3]);
        assert!(used.take_dead(2).is_empty());
    }

    #[test]
    fn reset_codes_become_latents_and_others_stay() {
        let device = Device::flex();
        let codes = Tensor::from_floats([[0.0, 0.0], [1.0, 1.0]], &device);
        let latents = Tensor::from_floats([[5.0, 5.0], [5.0, 5.0]], &device);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let codes: Vec<f32> = reset_codes(codes, &[1], latents, &mut rng)
            .try_into_vec_as()
            .unwrap();
        assert_eq!(codes, [0.0, 0.0, 5.0, 5.0]);
    }

    #[test]
    fn reset_codes_cover_rare_latents() {
        let device = Device::flex();
        let mut rows = vec![[0.0f32, 0.0]; 60];
        rows.extend([[9.0, 0.0], [0.0, 9.0], [9.0, 9.0]]);
        let latents = TensorData::new(rows.concat(), [63, 2]);
        let latents = Tensor::from_data(latents, &device);
        let codes = Tensor::full([4, 2], 100.0, &device);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let codes = reset_codes(codes, &[0, 1, 2, 3], latents, &mut rng);
        let mut codes: Vec<f32> = codes.try_into_vec_as().unwrap();
        codes.sort_by(f32::total_cmp);
        assert_eq!(codes, [0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]);
    }
}
