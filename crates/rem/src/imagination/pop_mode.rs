//! Resolves [`PopMode::Auto`]: measures both modes of POP on this machine and picks the faster one.

use std::time::Instant;

use burn::tensor::{Distribution, Int, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem_run::PopModeTimes;

use super::dream::Dream;
use crate::config::{self, Architecture, Config, PopMode};
use crate::device;
use crate::error::Result;
use crate::host;
use crate::model::world_model::{WorldModel, WorldModelSizes};

/// Timed steps per mode. The modes alternate, and the fastest step counts.
const ROUNDS: usize = 3;
/// Number of actions of the measured models. It does not affect the times.
const ACTIONS: usize = 4;

/// Replaces [`PopMode::Auto`] by the faster mode, and returns the times if they were measured. Results depend on the
/// mode only by rounding, but a resumed run must use the same one, so a run stores the resolved config.
///
/// # Errors
///
/// Fails if the config's device is not available.
pub fn resolve(config: Config) -> Result<(Config, Option<PopModeTimes>)> {
    let Architecture::Pop {
        mode: PopMode::Auto,
        ..
    } = config.world_model.architecture
    else {
        return Ok((config, None));
    };
    let times = measure(&config)?;
    let mut resolved = config;
    set_mode(&mut resolved.world_model, faster(&times));
    Ok((resolved, Some(times)))
}

fn faster(times: &PopModeTimes) -> PopMode {
    if times.one_call_ms < times.two_calls_ms {
        PopMode::OneCall
    } else {
        PopMode::TwoCalls
    }
}

fn set_mode(config: &mut config::WorldModel, to: PopMode) {
    if let Architecture::Pop { mode, .. } = &mut config.architecture {
        *mode = to;
    }
}

/// Times imagined steps at the config's sizes and batch size, with random weights.
fn measure(config: &Config) -> Result<PopModeTimes> {
    let device = device::of(config)?;
    let sizes = WorldModelSizes::of(config, ACTIONS);
    let batch = config.actor_critic.optimizer.batch_size;
    let normal = Distribution::Normal(0.0, 1.0);
    let codes = Tensor::random([sizes.vocabulary, sizes.width], normal, &device);
    let precision = config.precision.into();
    let models = [PopMode::TwoCalls, PopMode::OneCall].map(|pop_mode| {
        let mut config = config.world_model.clone();
        set_mode(&mut config, pop_mode);
        WorldModel::new(&config, sizes, precision, &device)
    });
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let actions = || Tensor::<1, Int>::zeros([batch], &device);
    let mut dreams = models.each_ref().map(|model| {
        let tokens = Tensor::zeros([batch, 1, sizes.tokens_per_obs], &device);
        let mut dream = Dream::start(model, &codes, tokens, None);
        dream.step(actions(), &mut rng);
        dream
    });
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (dream, best) in dreams.iter_mut().zip(&mut best) {
            let start = Instant::now();
            dream.step(actions(), &mut rng);
            // Reading the tokens waits for asynchronous devices.
            host::ints(dream.tokens());
            *best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(PopModeTimes {
        two_calls_ms: best[0],
        one_call_ms: best[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_replaced_by_the_faster_mode_only() {
        let auto = Config::load("debug", &["world_model.architecture.mode=auto".into()]).unwrap();
        let (resolved, times) = resolve(auto.clone()).unwrap();
        let times = times.expect("auto is measured");
        assert!(times.one_call_ms > 0.0 && times.two_calls_ms > 0.0);
        let mut expected = auto.clone();
        set_mode(&mut expected.world_model, faster(&times));
        assert_eq!(resolved, expected);
        let back = ["world_model.architecture.mode=auto".to_string()];
        assert_eq!(Config::from_toml(&resolved.to_toml(), &back).unwrap(), auto);
        for (one_call_ms, mode) in [(1.0, PopMode::OneCall), (3.0, PopMode::TwoCalls)] {
            let times = PopModeTimes {
                two_calls_ms: 2.0,
                one_call_ms,
            };
            assert_eq!(faster(&times), mode);
        }
    }

    #[test]
    fn other_modes_are_not_measured() {
        for mode in ["one_call", "two_calls"] {
            let set = [format!("world_model.architecture.mode={mode}")];
            let config = Config::load("debug", &set).unwrap();
            assert_eq!(resolve(config.clone()).unwrap(), (config, None));
        }
    }
}
