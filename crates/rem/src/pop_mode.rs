//! Which of POP's two ways to dream is the faster one here: measured at the start of a run that leaves it open.

use std::time::Instant;

use burn::tensor::{Distribution, Int, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::config::{Config, PopMode};
use crate::device;
use crate::error::Result;
use crate::imagination::Dream;
use crate::world_model::{WorldModel, WorldModelSizes};

/// Milliseconds of a dream's step in each mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub two_calls_ms: f64,
    pub one_call_ms: f64,
}

impl Measured {
    pub fn faster(&self) -> PopMode {
        if self.one_call_ms < self.two_calls_ms {
            PopMode::OneCall
        } else {
            PopMode::TwoCalls
        }
    }
}

/// Steps of each mode that are timed, by turns; the fastest counts.
const ROUNDS: usize = 3;
/// Their number changes no time.
const ACTIONS: usize = 4;

/// The config with `pop_mode = auto` replaced by the faster mode, and the times if they had to be measured. What
/// is dreamt is the same up to rounding, so the choice belongs into the config that a run keeps.
pub fn resolve(config: Config) -> Result<(Config, Option<Measured>)> {
    if config.world_model.pop_mode != PopMode::Auto {
        return Ok((config, None));
    }
    let measured = measure(&config)?;
    let mut resolved = config;
    resolved.world_model.pop_mode = measured.faster();
    Ok((resolved, Some(measured)))
}

/// Times steps of dreams of the size that the controller will learn from, with weights that know nothing.
fn measure(config: &Config) -> Result<Measured> {
    let device = device::of(config)?;
    let sizes = WorldModelSizes::of(config, ACTIONS);
    let batch = config.actor_critic.optimise.batch;
    let normal = Distribution::Normal(0.0, 1.0);
    let codes = Tensor::random([sizes.vocabulary, sizes.width], normal, &device);
    let precision = config.precision.into();
    let models = [PopMode::TwoCalls, PopMode::OneCall].map(|pop_mode| {
        let mut config = config.world_model.clone();
        config.pop_mode = pop_mode;
        WorldModel::new(&config, sizes, precision, &device)
    });
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let actions = || Tensor::<1, Int>::zeros([batch], &device);
    let mut dreams = models.each_ref().map(|model| {
        let seen = Tensor::zeros([batch, 1, sizes.tokens_per_obs], &device);
        let mut dream = Dream::start(model, &codes, seen, None);
        dream.step(actions(), &mut rng);
        dream
    });
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (dream, best) in dreams.iter_mut().zip(&mut best) {
            let start = Instant::now();
            dream.step(actions(), &mut rng);
            // A device may be behind with its work until its answer is read.
            crate::imagination::host_ints(dream.tokens());
            *best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Measured {
        two_calls_ms: best[0],
        one_call_ms: best[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_becomes_the_faster_mode_and_nothing_else_changes() {
        let auto = Config::load("debug", &["world_model.pop_mode=auto".into()]).unwrap();
        let (resolved, measured) = resolve(auto.clone()).unwrap();
        let measured = measured.expect("it was measured");
        assert!(measured.one_call_ms > 0.0 && measured.two_calls_ms > 0.0);
        assert_eq!(resolved.world_model.pop_mode, measured.faster());
        let back = ["world_model.pop_mode=auto".to_string()];
        assert_eq!(Config::from_toml(&resolved.to_toml(), &back).unwrap(), auto);
        for (one_call_ms, faster) in [(1.0, PopMode::OneCall), (3.0, PopMode::TwoCalls)] {
            let times = Measured {
                two_calls_ms: 2.0,
                one_call_ms,
            };
            assert_eq!(times.faster(), faster);
        }
    }

    #[test]
    fn a_mode_that_was_chosen_is_not_measured() {
        for mode in ["one_call", "two_calls"] {
            let set = [format!("world_model.pop_mode={mode}")];
            let config = Config::load("debug", &set).unwrap();
            assert_eq!(resolve(config.clone()).unwrap(), (config, None));
        }
    }
}
