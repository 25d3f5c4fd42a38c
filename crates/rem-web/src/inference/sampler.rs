//! Samples a dream at a temperature and records the predicted probabilities.

use burn::tensor::{Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rem::imagination::{SampleFn, Sampled};
use rem::model::sampling::sample;

use super::softmax;

/// Below this temperature tokens are taken greedily.
const GREEDY_BELOW: f32 = 0.01;

/// Highest temperature. Sampling is practically uniform there.
const MAX_TEMPERATURE: f32 = 100.0;

/// What the world model predicted for one step, at temperature 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Predictions {
    /// Probabilities of the rewards -1, 0 and 1. Empty if rewards are continuous.
    pub rewards: Vec<f32>,
    /// The probability that the episode terminates.
    pub termination: f32,
    /// The probability of every code at every position: `[K * vocabulary]`.
    pub tokens: Vec<f32>,
}

impl Predictions {
    /// The most likely codes at a position, with their probabilities.
    pub fn top_codes(&self, position: usize, vocabulary: usize, count: usize) -> Vec<(u16, f32)> {
        let row = &self.tokens[position * vocabulary..][..vocabulary];
        let mut codes: Vec<(u16, f32)> = (0..).zip(row.iter().copied()).collect();
        codes.sort_by(|a, b| b.1.total_cmp(&a.1));
        codes.truncate(count);
        codes
    }

    /// The entropy at each position, in nats.
    pub fn token_entropies(&self, vocabulary: usize) -> Vec<f32> {
        let entropy = |row: &[f32]| -> f32 {
            let positive = row.iter().filter(|p| **p > 0.0);
            positive.map(|p| -p * p.ln()).sum()
        };
        self.tokens.chunks(vocabulary).map(entropy).collect()
    }
}

/// Samples the steps of one dream.
pub(crate) struct Sampler<'a> {
    /// The temperature of tokens. Rewards and ends are sampled at temperature 1.
    temperature: f32,
    rng: &'a mut ChaCha8Rng,
    pub predictions: Predictions,
}

impl<'a> Sampler<'a> {
    /// Temperatures out of range, and NaN, are clamped.
    pub fn new(temperature: f32, rng: &'a mut ChaCha8Rng) -> Self {
        Self {
            temperature: match temperature > 0.0 {
                true => temperature.min(MAX_TEMPERATURE),
                false => 0.0,
            },
            rng,
            predictions: Predictions::default(),
        }
    }

    /// Runs a step that samples: `sampler.run(|sample| dream.step_by(action, sample))`.
    pub fn run<R>(&mut self, step: impl FnOnce(SampleFn) -> R) -> R {
        step(&mut |what, logits| self.sample(what, logits))
    }

    fn sample(&mut self, what: Sampled, logits: Tensor<2>) -> Tensor<1, Int> {
        let probabilities = softmax(logits.clone());
        match what {
            Sampled::Reward => self.predictions.rewards = probabilities,
            Sampled::End => self.predictions.termination = probabilities[1],
            Sampled::Token => {
                self.predictions.tokens.extend(probabilities);
                if self.temperature < GREEDY_BELOW {
                    let [rows, _] = logits.dims();
                    return logits.argmax(1).reshape([rows]);
                }
                return sample(logits.div_scalar(self.temperature), self.rng);
            }
        }
        sample(logits, self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use rand::SeedableRng;
    use rem::host;

    /// 4000 samples of p = (0.6, 0.3, 0.1).
    fn samples(temperature: f32) -> (Vec<i64>, Predictions) {
        let row =
            Tensor::<1>::from_floats([0.6f32.ln(), 0.3f32.ln(), 0.1f32.ln()], &Device::flex());
        let logits = row.reshape([1, 3]).repeat_dim(0, 4000);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut sampler = Sampler::new(temperature, &mut rng);
        let tokens = sampler.run(|sample| sample(Sampled::Token, logits));
        (host::ints(tokens), sampler.predictions)
    }

    fn frequency(tokens: &[i64], code: i64) -> f64 {
        tokens.iter().filter(|token| **token == code).count() as f64 / tokens.len() as f64
    }

    #[test]
    fn temperature_goes_from_greedy_to_uniform() {
        assert_eq!(frequency(&samples(0.0).0, 0), 1.0);
        assert!((frequency(&samples(1.0).0, 0) - 0.6).abs() < 0.03);
        assert!((frequency(&samples(100.0).0, 2) - 1.0 / 3.0).abs() < 0.03);
    }

    #[test]
    fn invalid_temperatures_are_clamped() {
        assert_eq!(frequency(&samples(-3.0).0, 0), 1.0);
        assert_eq!(samples(f32::NAN).0.len(), 4000);
        assert_eq!(samples(f32::INFINITY).0.len(), 4000);
    }

    #[test]
    fn predictions_do_not_depend_on_the_temperature() {
        let (_, predictions) = samples(100.0);
        let top = predictions.top_codes(7, 3, 2);
        assert_eq!((top[0].0, top[1].0), (0, 1));
        assert!((top[1].1 - 0.3).abs() < 1e-5);
    }

    #[test]
    fn entropy_is_zero_for_a_certain_code_and_ln_n_for_a_uniform_row() {
        let predictions = Predictions {
            tokens: vec![0.0, 1.0, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25],
            ..Predictions::default()
        };
        let entropies = predictions.token_entropies(4);
        assert_eq!(entropies[0], 0.0);
        assert!((entropies[1] - 4f32.ln()).abs() < 1e-6);
    }
}
