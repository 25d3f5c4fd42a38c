//! How a dream that is looked at draws: by a temperature, and with a note of all chances.

use burn::tensor::{Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rem::imagination::{Draw, Drawn};
use rem::sampling::sample;

use super::probabilities;

/// Below this temperature the likeliest token is taken.
const COLD: f32 = 0.01;

/// Above it nearly every token is as likely as any other.
const HOT: f32 = 100.0;

/// What a world model held to be how likely, at its own temperature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Odds {
    /// Of the rewards -1, 0 and 1; none where rewards are continuous.
    pub rewards: Vec<f32>,
    /// That the episode ends.
    pub end: f32,
    /// Of every code at every place: `[K * vocabulary]`.
    pub tokens: Vec<f32>,
}

impl Odds {
    /// The likeliest codes at a place, with their chances.
    pub fn likeliest(&self, place: usize, vocabulary: usize, count: usize) -> Vec<(u16, f32)> {
        let row = &self.tokens[place * vocabulary..][..vocabulary];
        let mut codes: Vec<(u16, f32)> = (0..).zip(row.iter().copied()).collect();
        codes.sort_by(|a, b| b.1.total_cmp(&a.1));
        codes.truncate(count);
        codes
    }

    /// The chance that each of these tokens had.
    pub fn of(&self, tokens: &[u16], vocabulary: usize) -> Vec<f32> {
        let chance =
            |(place, token): (usize, &u16)| self.tokens[place * vocabulary + usize::from(*token)];
        tokens.iter().enumerate().map(chance).collect()
    }
}

/// Draws for one dream.
pub struct Drawing<'a> {
    /// Of tokens; rewards and ends are drawn as they are.
    temperature: f32,
    rng: &'a mut ChaCha8Rng,
    pub odds: Odds,
}

impl<'a> Drawing<'a> {
    /// A temperature that makes no sense becomes the nearest that does.
    pub fn new(temperature: f32, rng: &'a mut ChaCha8Rng) -> Self {
        Self {
            temperature: match temperature > 0.0 {
                true => temperature.min(HOT),
                false => 0.0,
            },
            rng,
            odds: Odds::default(),
        }
    }

    /// Lets a step draw: `drawing.through(|draw| dream.step_by(action, draw))`.
    pub fn through<R>(&mut self, step: impl FnOnce(Draw) -> R) -> R {
        step(&mut |what, logits| self.draw(what, logits))
    }

    fn draw(&mut self, what: Drawn, logits: Tensor<2>) -> Tensor<1, Int> {
        let chances = probabilities(logits.clone());
        match what {
            Drawn::Reward => self.odds.rewards = chances,
            Drawn::End => self.odds.end = chances[1],
            Drawn::Token => {
                self.odds.tokens.extend(chances);
                if self.temperature < COLD {
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
    use rem::imagination::host_ints;

    fn drawn(temperature: f32) -> (Vec<i64>, Odds) {
        let row =
            Tensor::<1>::from_floats([0.6f32.ln(), 0.3f32.ln(), 0.1f32.ln()], &Device::flex());
        let logits = row.reshape([1, 3]).repeat_dim(0, 4000);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut drawing = Drawing::new(temperature, &mut rng);
        let tokens = drawing.through(|draw| draw(Drawn::Token, logits));
        (host_ints(tokens), drawing.odds)
    }

    fn share(tokens: &[i64], code: i64) -> f64 {
        tokens.iter().filter(|token| **token == code).count() as f64 / tokens.len() as f64
    }

    #[test]
    fn cold_is_certain_and_hot_is_even() {
        assert_eq!(share(&drawn(0.0).0, 0), 1.0);
        assert!((share(&drawn(1.0).0, 0) - 0.6).abs() < 0.03);
        assert!((share(&drawn(100.0).0, 2) - 1.0 / 3.0).abs() < 0.03);
    }

    #[test]
    fn nonsense_is_no_temperature() {
        assert_eq!(share(&drawn(-3.0).0, 0), 1.0);
        assert_eq!(drawn(f32::NAN).0.len(), 4000);
        assert_eq!(drawn(f32::INFINITY).0.len(), 4000);
    }

    #[test]
    fn the_chances_are_the_models_own_whatever_the_temperature() {
        let (_, odds) = drawn(100.0);
        let likeliest = odds.likeliest(7, 3, 2);
        assert_eq!((likeliest[0].0, likeliest[1].0), (0, 1));
        assert!((likeliest[1].1 - 0.3).abs() < 1e-5);
        assert!((odds.of(&[2, 0], 3)[0] - 0.1).abs() < 1e-5);
    }
}
