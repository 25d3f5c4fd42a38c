//! The protocol of a run: what its scores mean.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem_run::{PopModeTimes, Protocol};

use super::evaluate::{mean, test_env};
use crate::config::{self, Architecture, Config, Generation};
use crate::env::{self, Budget};
use crate::error::{Error, Result};
use crate::seeds::{Purpose, Seeds};

/// Limits for the random and the scripted policy; `steps` is for slow Atari games.
const BASELINE: Budget = Budget {
    episodes: 200,
    steps: 30_000,
};

/// The protocol of a new run. Plays the random and the scripted policy to get their returns.
pub fn protocol(
    config: &Config,
    threads: usize,
    perceptual_crc32: Option<u32>,
    measured: Option<PopModeTimes>,
) -> Result<Protocol> {
    let seeds = Seeds::new(config.seed);
    let mut env = test_env(&config.env, seeds.derive(0, Purpose::Baseline, 0))?;
    let mut rng = ChaCha8Rng::seed_from_u64(seeds.derive(0, Purpose::Baseline, 2));
    let random = env::play_random(&mut *env, BASELINE, &mut rng);
    env.reset();
    let scripted = env.scripted_action().is_some();
    let scripted = scripted.then(|| {
        let mut env = test_env(&config.env, seeds.derive(0, Purpose::Baseline, 1))?;
        Ok::<f64, Error>(mean(&env::play_scripted(&mut *env, BASELINE)))
    });
    // The built-in games repeat no action and start without no-ops.
    let atari = (!env::is_built_in(&config.env.game)).then_some(&config.env.atari);
    Ok(Protocol {
        format: rem_run::FORMAT,
        rem_version: env!("CARGO_PKG_VERSION").into(),
        git_revision: env!("REM_GIT_REVISION").into(),
        burn_version: "0.22.1".into(),
        device: config.device.clone(),
        threads,
        precision: config.precision.name().into(),
        game: config.env.game.clone(),
        actions: env.actions().iter().map(|a| a.to_string()).collect(),
        frame_size: config.env.frame_size,
        frame_skip: atari.map_or(1, |a| a.frame_skip),
        sticky_actions: atari.map_or(0.0, |a| a.sticky_actions),
        max_noops_train: atari.map_or(0, |a| a.max_noops.train),
        max_noops_test: atari.map_or(0, |a| a.max_noops.test),
        ale_version: atari.map(|_| rem_ale::ALE_VERSION.into()),
        end_on_life_loss_train: config.env.end_on_life_loss.train,
        end_on_life_loss_test: config.env.end_on_life_loss.test,
        max_steps_train: config.env.max_steps.train,
        max_steps_test: config.env.max_steps.test,
        rewards_in_scores: "unclipped".into(),
        rewards_in_world_model: format!("{:?}", config.world_model.rewards).to_lowercase(),
        evaluation_temperature: config.evaluate.temperature,
        final_episodes: config.evaluate.final_episodes,
        environment_steps: config.environment_steps(),
        imagination_mode: imagination_mode(&config.world_model),
        pop_mode_measured: measured,
        perceptual_loss: perceptual_crc32.is_some(),
        perceptual_crc32,
        random_player: mean(&random),
        scripted_player: scripted.transpose()?,
        baseline_episodes: random.len(),
    })
}

/// The imagination mode in words.
fn imagination_mode(config: &config::WorldModel) -> String {
    match (config.architecture.generation(), config.architecture) {
        (Generation::TwoCalls, Architecture::PopAttention { .. }) => "POP on attention",
        (Generation::TwoCalls, _) => "POP, two calls per step",
        (Generation::OneCall, _) => "POP, one call per step",
        (Generation::TokenByToken, Architecture::Transformer {}) => "token by token, Transformer",
        (Generation::TokenByToken, _) => "token by token, RetNet",
    }
    .into()
}
