//! The protocol of a run: what its scores mean.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem_run::{PopModeTimes, Protocol};

use super::evaluate::mean;
use crate::config::{self, Architecture, Config, EnvMode, Generation};
use crate::env::{self, Budget, EnvFactory};
use crate::error::{Error, Result};
use crate::seeds::{Purpose, Seeds};

/// Limits for the random and the scripted policy; `steps` is for slow Atari games.
const BASELINE: Budget = Budget {
    episodes: 200,
    steps: 30_000,
};

/// The same for environments that may be slower.
const BASELINE_OF_OTHERS: Budget = Budget {
    episodes: 50,
    steps: 5_000,
};

/// The protocol of a new run. Plays the random and the scripted policy to get their returns.
///
/// # Errors
///
/// If the environment cannot be created, or fails.
pub fn protocol(
    config: &Config,
    envs: &EnvFactory,
    threads: usize,
    perceptual_crc32: Option<u32>,
    measured: Option<PopModeTimes>,
) -> Result<Protocol> {
    let baseline = Baseline::play(config, envs)?;
    let atari = envs.is_atari().then_some(&config.env.atari);
    // The built-in games repeat no action and start without no-ops.
    let frame_skip = config.env.wrappers.frame_skip;
    Ok(Protocol {
        format: rem_run::FORMAT,
        rem_version: env!("CARGO_PKG_VERSION").into(),
        git_revision: crate::GIT_REVISION.into(),
        burn_version: "0.22.1".into(),
        device: config.device.clone(),
        threads,
        precision: config.precision.name().into(),
        game: config.env.game.clone(),
        actions: envs.spaces()?.action.names().to_vec(),
        frame_size: config.env.frame_size,
        frame_skip: atari.map_or(frame_skip, |a| a.frame_skip),
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
        random_player: mean(&baseline.random),
        scripted_player: baseline.scripted,
        baseline_episodes: baseline.random.len(),
        collect_envs: config.collect.envs,
        environment: envs.details()?,
        data: None,
        preset: None,
        origin: None,
        segments: Vec::new(),
        exported: None,
    })
}

/// The returns of policies that do not learn.
#[derive(Default)]
struct Baseline {
    random: Vec<f32>,
    scripted: Option<f64>,
}

impl Baseline {
    fn play(config: &Config, envs: &EnvFactory) -> Result<Self> {
        if !envs.can_play() {
            return Ok(Self::default());
        }
        let budget = match envs.is_fast() {
            true => BASELINE,
            false => BASELINE_OF_OTHERS,
        };
        let seeds = Seeds::new(config.seed);
        let make = |index| envs.make(EnvMode::Test, seeds.derive(0, Purpose::Baseline, index));
        let mut env = make(0)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seeds.derive(0, Purpose::Baseline, 2));
        let random = env::play_random(&mut *env, budget, &mut rng)?;
        env.reset()?;
        let scripted = env.scripted_action().is_some();
        drop(env);
        let scripted = scripted.then(|| {
            let mut env = make(1)?;
            Ok::<f64, Error>(mean(&env::play_scripted(&mut *env, budget)?))
        });
        Ok(Self {
            random,
            scripted: scripted.transpose()?,
        })
    }
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
