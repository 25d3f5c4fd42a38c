//! Environments: the [`Env`] trait, wrappers, three built-in games, Atari games with the feature `atari`, and Gymnasium and
//! other Python environments in worker processes.
//!
//! [`EnvFactory`] creates environments: by name ([`EnvFactory::named`]), or of your own type ([`EnvFactory::new`]). It adds
//! the wrappers of a config: [`Preprocess`], [`TimeLimit`] and [`LifeLoss`]. The seed and the actions determine every
//! frame, reward and outcome. A [`snapshot`](Env::snapshot) holds the complete state, including random number generators,
//! so that a resumed run continues exactly.
//!
//! ```
//! use rem::config::{Config, EnvMode};
//! use rem::env::{Env, EnvFactory, Outcome};
//!
//! let config = Config::load("quick", &["env.game=catch".into()])?;
//! let mut env = EnvFactory::named(&config.env)?.make(EnvMode::Test, 7)?;
//! assert_eq!(env.reset()?.image().len(), config.frame_bytes());
//! let mut total = 0.0;
//! loop {
//!     let action = env.scripted_action().expect("built-in games have a scripted policy");
//!     let step = env.step(&action)?;
//!     total += step.reward;
//!     if step.outcome != Outcome::Running {
//!         break;
//!     }
//! }
//! assert_eq!(total, 1.0);
//! # Ok::<(), rem::Error>(())
//! ```

#[cfg(feature = "atari")]
pub mod atari;
mod baseline;
mod error;
mod factory;
mod games;
mod name;
pub mod python;
mod snapshot;
mod spaces;
mod wrappers;

use serde::{Deserialize, Serialize};

pub(crate) use baseline::{Budget, play_random, play_scripted};
pub use error::EnvError;
pub use factory::EnvFactory;
pub use name::EnvName;
pub use spaces::{Action, ActionSpace, MAX_ACTIONS, Observation, ObservationSpace, Spaces};
pub(crate) use wrappers::Scale;
pub use wrappers::{LifeLoss, Preprocess, TimeLimit};

/// Names of the built-in games.
pub const GAMES: &[&str] = &["catch", "paddle", "crossing"];

/// The state of the episode after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The episode continues.
    Running,
    /// The episode reached a terminal state, whose value is zero.
    Terminated,
    /// The episode was cut off in a state that is not terminal.
    Truncated,
}

impl Outcome {
    /// Terminated if `over`, or else running.
    pub fn terminated_if(over: bool) -> Self {
        match over {
            true => Self::Terminated,
            false => Self::Running,
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The next observation.
    pub observation: Observation,
    /// The reward.
    pub reward: f32,
    /// Whether the episode continues.
    pub outcome: Outcome,
}

impl Step {
    /// The observation after an action, its reward, and whether the episode continues.
    pub fn new(observation: impl Into<Observation>, reward: f32, outcome: Outcome) -> Self {
        Self {
            observation: observation.into(),
            reward,
            outcome,
        }
    }
}

/// An environment. Three methods are required; the others have defaults.
pub trait Env: Send {
    /// What it shows and which actions it takes. They do not change.
    fn spaces(&self) -> Spaces;

    /// Starts a new episode and returns its first observation.
    ///
    /// # Errors
    /// If the environment fails.
    fn reset(&mut self) -> Result<Observation, EnvError>;

    /// Takes an action.
    ///
    /// # Errors
    /// If the environment fails.
    ///
    /// # Panics
    /// If the action does not exist, or the episode is over.
    fn step(&mut self, action: &Action) -> Result<Step, EnvError>;

    /// Remaining lives; 1 if there are no lives.
    fn lives(&self) -> u32 {
        1
    }

    /// The action of a scripted policy in the current state; `None` if there is no such policy.
    fn scripted_action(&self) -> Option<Action> {
        None
    }

    /// The complete state, including random number generators; `None` if it cannot be saved. A resumed run then starts a
    /// new episode.
    ///
    /// # Errors
    /// If the environment fails.
    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        Ok(None)
    }

    /// Restores the state of a snapshot and returns its current observation.
    ///
    /// # Errors
    /// If the snapshot is damaged or of another environment. The state is then unchanged.
    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let _ = snapshot;
        Err(snapshot::invalid("it has no snapshots".into()))
    }
}

impl Env for Box<dyn Env> {
    fn spaces(&self) -> Spaces {
        (**self).spaces()
    }
    fn reset(&mut self) -> Result<Observation, EnvError> {
        (**self).reset()
    }
    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        (**self).step(action)
    }
    fn lives(&self) -> u32 {
        (**self).lives()
    }
    fn scripted_action(&self) -> Option<Action> {
        (**self).scripted_action()
    }
    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        (**self).snapshot()
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        (**self).restore(snapshot)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
