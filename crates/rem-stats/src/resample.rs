//! A selection of runs from a matrix: all of them for a statistic itself, a random draw for a bootstrap replicate.

use rand::{Rng, RngExt};

use crate::matrix::Matrix;

/// A weight for each run of a matrix. The matrix is sorted once, so a replicate takes linear time and no allocation.
pub(crate) struct Resample<'a> {
    matrix: &'a Matrix,
    /// The mean of each game, in any order.
    pub means: Vec<f64>,
    /// For each run in ascending order of scores, its weight times the number of times it was drawn.
    pub weights: Vec<f64>,
}

impl<'a> Resample<'a> {
    /// Every run once.
    pub fn all(matrix: &'a Matrix) -> Self {
        let mut resample = Self {
            matrix,
            means: vec![0.0; matrix.games().len()],
            weights: vec![0.0; matrix.values().len()],
        };
        resample.choose(|run, _| run);
        resample
    }

    /// Draws from each game as many runs as it has, with replacement.
    pub fn draw(&mut self, rng: &mut impl Rng) {
        self.choose(|_, runs| rng.random_range(0..runs));
    }

    /// `pick(i, runs)` selects the run for draw `i` out of `runs`.
    fn choose(&mut self, mut pick: impl FnMut(usize, usize) -> usize) {
        let (values, ranks) = (self.matrix.values(), self.matrix.ranks());
        self.weights.fill(0.0);
        for (mean, column) in self.means.iter_mut().zip(self.matrix.column_ranges()) {
            let runs = column.len();
            let weight = self.matrix.weight(runs);
            let mut sum = 0.0;
            for choice in 0..runs {
                let run = column.start + pick(choice, runs);
                sum += values[run];
                self.weights[ranks[run]] += weight;
            }
            *mean = sum / runs as f64;
        }
    }

    /// The scores of the matrix in ascending order, with their weights.
    pub fn weighted(&self) -> impl Iterator<Item = (f64, f64)> {
        let scores = self.matrix.sorted().iter().copied();
        scores.zip(self.weights.iter().copied())
    }

    pub fn total_weight(&self) -> f64 {
        self.matrix.total_weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn a_draw_stays_within_each_game() {
        let matrix = matrix::of([&[1.0, 2.0, 3.0], &[10.0, 20.0]]);
        let mut resample = Resample::all(&matrix);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..100 {
            resample.draw(&mut rng);
            assert!((1.0..=3.0).contains(&resample.means[0]));
            assert!((10.0..=20.0).contains(&resample.means[1]));
            let weights = &resample.weights;
            assert!((weights[..3].iter().sum::<f64>() - 2.5).abs() < 1e-12);
            assert!((weights[3..].iter().sum::<f64>() - 2.5).abs() < 1e-12);
        }
    }

    #[test]
    fn every_run_is_drawn_equally_often() {
        let matrix = matrix::of([&[0.0, 1.0, 2.0, 3.0, 4.0]]);
        let mut resample = Resample::all(&matrix);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut drawn = [0.0; 5];
        for _ in 0..20_000 {
            resample.draw(&mut rng);
            for (count, weight) in drawn.iter_mut().zip(&resample.weights) {
                *count += weight;
            }
        }
        // 100,000 draws: 20,000 of each, with a standard deviation of 126.
        assert!(
            drawn.iter().all(|count| (count - 20_000.0).abs() < 600.0),
            "{drawn:?}"
        );
    }
}
