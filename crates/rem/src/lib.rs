//! REM: a reinforcement-learning agent that learns games inside its own world model.
//!
//! An implementation of *Improving Token-Based World Models with Parallel Observation Prediction* (ICML 2024) on
//! [Burn](https://burn.dev). A [`Tokenizer`] turns frames into tokens, a [`WorldModel`] predicts the next frame's tokens, the
//! reward and the end of the episode, and an [`ActorCritic`], the controller, is trained on imagined trajectories.
//!
//! # Train
//!
//! A [`Trainer`] writes a run directory and repeats epochs: collect experience, train the three components, evaluate,
//! write a checkpoint. Progress arrives as [`Event`]s.
//!
//! ```
//! use rem::{Config, Event, Trainer};
//!
//! # let temporary = tempfile::tempdir()?;
//! # let dir = temporary.path().join("run");
//! // `debug` runs every phase in seconds. `quick` learns `catch` in minutes.
//! let config = Config::load("debug", &["env.game=catch".into(), "threads=1".into()])?;
//!
//! let mut epochs = 0;
//! let scores = Trainer::named(config.clone())?.start(&dir)?.train(&mut |event| {
//!     if let Event::EpochDone { .. } = event {
//!         epochs += 1;
//!     }
//! })?;
//! assert_eq!(epochs, config.train.epochs);
//! let score = scores.final_score.expect("a finished run is evaluated");
//! assert_eq!(score.returns.len(), config.evaluate.final_episodes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Trainer::new`] trains on your own type that implements [`Env`]; `examples/custom_env.rs` shows it.
//!
//! # Imagine
//!
//! A [`Dream`] continues a trajectory with a world model alone. Recurrent state is a value inside it, and a dream can be
//! cloned to branch.
//!
//! ```
//! use burn::module::Module;
//! use burn::tensor::{Device, Int, Tensor};
//! use rand::SeedableRng;
//! use rem::{Agent, Config, Dream, seeds::Seeds};
//!
//! let config = Config::load("debug", &[])?;
//! let device = Device::flex();
//! let agent = Agent::new(&config, 3, &Seeds::new(1), &device.clone().autodiff());
//! let (tokenizer, world_model) = (agent.tokenizer.valid(), agent.world_model.valid());
//!
//! let size = config.env.frame_size;
//! let frames = Tensor::<4>::zeros([1, 3, size, size], &device); // one frame, values in [-1, 1]
//! let tokens = tokenizer.encode(frames).unsqueeze_dim(0); // [batch, observations, K]
//! let codes = tokenizer.codes();
//! let mut dream = Dream::start(&world_model, &codes, tokens, None);
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
//! let step = dream.step(Tensor::<1, Int>::zeros([1], &device), &mut rng);
//! assert_eq!((step.rewards.len(), step.ends.len()), (1, 1));
//! assert_eq!(dream.tokens().dims(), [1, config.tokens_per_obs()]);
//! # Ok::<(), rem::Error>(())
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! | --- | --- |
//! | [`config`] | settings, presets, overrides |
//! | [`mod@env`] | the environment trait, wrappers, built-in games, Atari |
//! | [`data`] | replay buffer, episodes, batches |
//! | [`model`] | tokenizer, world model with its networks, actor-critic |
//! | [`imagination`] | dreams, rollouts, λ-returns |
//! | [`train`] | the epoch loop, its phases, optimizer, collection, evaluation |
//! | [`diagnose`] | which component limits an agent |
//! | [`run`] | run directories: checkpoints, logs, imported weights |
//! | [`media`] | images and animations of episodes and dreams |
//! | [`device`], [`host`], [`threads`], [`seeds`] | compute device, copies on the host, CPU threads, random numbers |
//! | [`suggest`] | words for messages |
//!
//! `docs/paper-map.md` in the repository leads from the paper's equations and algorithms to functions.

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod config;
pub mod data;
pub mod device;
pub mod diagnose;
pub mod env;
mod error;
pub mod host;
pub mod imagination;
pub mod media;
pub mod model;
pub mod run;
pub mod seeds;
pub mod suggest;
pub mod threads;
pub mod train;

/// The git revision of the sources; `unknown` without git.
pub const GIT_REVISION: &str = env!("REM_GIT_REVISION");

pub use config::Config;
pub use data::episode::Episode;
pub use data::replay::Replay;
pub use env::{
    Action, ActionSpace, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces, Step,
};
pub use error::{Error, Result};
pub use imagination::{Dream, Rollout};
pub use model::actor_critic::ActorCritic;
pub use model::agent::{Agent, Player};
pub use model::tokenizer::Tokenizer;
pub use model::world_model::WorldModel;
pub use run::{RunDir, Scores};
pub use train::{Event, Setup, Trainer};
