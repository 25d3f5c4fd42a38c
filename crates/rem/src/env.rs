//! Environments: the [`Env`] trait, wrappers, three built-in games and, with the feature `atari`, Atari games.
//!
//! [`make`] creates the environment of a config, with the wrappers [`TimeLimit`] and [`LifeLoss`] around the game.
//! The seed and the actions determine every frame, reward and outcome. A [`snapshot`](Env::snapshot) holds the complete
//! state, including random number generators, so that a resumed run continues exactly.
//!
//! ```
//! use rem::config::{Config, EnvMode};
//! use rem::env::{self, Env, Outcome};
//!
//! let config = Config::load("quick", &["env.game=catch".into()])?;
//! let mut env = env::make(&config.env, EnvMode::Test, 7)?;
//! assert_eq!(env.reset().len(), config.frame_bytes());
//! let mut total = 0.0;
//! loop {
//!     let action = env.scripted_action().expect("built-in games have a scripted policy");
//!     let step = env.step(action);
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
mod error;
mod games;
mod life_loss;
mod snapshot;
mod time_limit;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::config::{EnvConfig, EnvMode, FRAME_SIZES};
pub use error::EnvError;
use games::canvas::BoardGame;
use games::{catch, crossing, paddle};
pub use life_loss::LifeLoss;
use snapshot::{pack, unpack};
pub use time_limit::TimeLimit;

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

/// The result of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The next frame: `size * size * 3` bytes, RGB, row by row.
    pub frame: Vec<u8>,
    /// The reward.
    pub reward: f32,
    /// Whether the episode continues.
    pub outcome: Outcome,
}

/// An environment with discrete actions and square RGB frames.
pub trait Env: Send {
    /// Names of the actions. Action 0 is `noop`.
    fn actions(&self) -> &[&'static str];
    /// Height and width of a frame in pixels.
    fn frame_size(&self) -> usize;
    /// Starts a new episode and returns its first frame.
    fn reset(&mut self) -> Vec<u8>;
    /// Takes an action.
    ///
    /// # Panics
    /// If the action does not exist, or the episode is over.
    fn step(&mut self, action: usize) -> Step;
    /// Remaining lives; 1 if the game has no lives.
    fn lives(&self) -> u32;
    /// The action of the scripted policy in the current state; `None` if there is no such policy.
    fn scripted_action(&self) -> Option<usize>;
    /// The current frame.
    fn render(&self) -> Vec<u8>;
    /// The complete state, including random number generators.
    fn snapshot(&self) -> Vec<u8>;
    /// Restores the state of a snapshot.
    ///
    /// # Errors
    /// If the snapshot is damaged or of another environment. The state is then unchanged.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError>;
}

impl Env for Box<dyn Env> {
    fn actions(&self) -> &[&'static str] {
        (**self).actions()
    }
    fn frame_size(&self) -> usize {
        (**self).frame_size()
    }
    fn reset(&mut self) -> Vec<u8> {
        (**self).reset()
    }
    fn step(&mut self, action: usize) -> Step {
        (**self).step(action)
    }
    fn lives(&self) -> u32 {
        (**self).lives()
    }
    fn scripted_action(&self) -> Option<usize> {
        (**self).scripted_action()
    }
    fn render(&self) -> Vec<u8> {
        (**self).render()
    }
    fn snapshot(&self) -> Vec<u8> {
        (**self).snapshot()
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError> {
        (**self).restore(snapshot)
    }
}

/// Creates the environment of a config.
///
/// # Errors
/// If the game is unknown, its ROM is missing, the program was built without Atari games, or a setting is invalid.
pub fn make(settings: &EnvConfig, mode: EnvMode, seed: u64) -> Result<Box<dyn Env>, EnvError> {
    let end_on_life_loss = settings.end_on_life_loss.of(mode);
    let max_steps = settings.max_steps.of(mode);
    let game = &settings.game;
    if is_built_in(game) {
        return built_in(game, settings.frame_size, seed, end_on_life_loss, max_steps);
    }
    let known = rem_ale::Game::named(game).map_err(|_| unknown(game))?;
    #[cfg(feature = "atari")]
    {
        let atari = atari::Atari::new(
            &atari::rom(known)?,
            atari::AtariSettings {
                size: settings.frame_size,
                frame_skip: settings.atari.frame_skip,
                noops: match settings.atari.max_noops.of(mode) {
                    0 => (0, 0),
                    max => (1, max),
                },
                max_frames: max_steps,
                sticky: settings.atari.sticky_actions,
            },
            seed,
        )?;
        Ok(if end_on_life_loss {
            Box::new(LifeLoss::new(atari))
        } else {
            Box::new(atari)
        })
    }
    #[cfg(not(feature = "atari"))]
    Err(EnvError::WithoutAtari { game: known.name })
}

/// Whether a game is one of [`GAMES`].
pub(crate) fn is_built_in(game: &str) -> bool {
    GAMES.contains(&game)
}

/// Names of the 26 games of the Atari 100K benchmark.
pub fn atari_names() -> Vec<&'static str> {
    rem_ale::Game::benchmark().map(|game| game.name).collect()
}

/// The name of a game as in configs: `MsPacman` is `ms_pacman`. Does not need the emulator.
///
/// # Errors
/// If there is no such game.
pub fn game_name(game: &str) -> Result<&'static str, EnvError> {
    let built_in = GAMES.iter().copied().find(|name| *name == game);
    let atari = || rem_ale::Game::named(game).ok().map(|game| game.name);
    built_in.or_else(atari).ok_or_else(|| unknown(game))
}

/// A built-in game, truncated after `max_steps` steps, optionally with one episode per life.
fn built_in(
    game: &str,
    size: usize,
    seed: u64,
    end_on_life_loss: bool,
    max_steps: u32,
) -> Result<Box<dyn Env>, EnvError> {
    if !FRAME_SIZES.contains(&size) {
        return Err(EnvError::BadSize { size });
    }
    if max_steps == 0 {
        return Err(EnvError::NoSteps);
    }
    let game: Box<dyn Env> = match game {
        "catch" => Box::new(BoardGame::<catch::Catch>::new(size, seed)),
        "paddle" => Box::new(BoardGame::<paddle::Paddle>::new(size, seed)),
        "crossing" => Box::new(BoardGame::<crossing::Crossing>::new(size, seed)),
        _ => return Err(unknown(game)),
    };
    // Inside `LifeLoss`: the limit applies to the game, not to a life.
    let limited = TimeLimit::new(game, max_steps);
    Ok(if end_on_life_loss {
        Box::new(LifeLoss::new(limited))
    } else {
        Box::new(limited)
    })
}

/// The error for an unknown game, with the most similar known one.
fn unknown(game: &str) -> EnvError {
    let name = game.to_lowercase();
    let distance = |game: &&str| strsim::levenshtein(&name, game);
    let built_in = GAMES.iter().copied().min_by_key(distance);
    let closest =
        built_in
            .filter(|game| distance(game) <= 2)
            .or_else(|| match rem_ale::Game::named(game) {
                Err(rem_ale::AleError::UnknownGame { closest, .. }) => closest.first().copied(),
                known => known.ok().map(|game| game.name),
            });
    EnvError::UnknownGame {
        game: game.to_owned(),
        closest,
    }
}

/// How long to play.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Maximum number of episodes.
    pub(crate) episodes: usize,
    /// Number of steps after which no further episode starts.
    pub(crate) steps: usize,
}

/// The returns of the scripted policy.
///
/// # Panics
/// If the environment has no scripted policy.
pub(crate) fn play_scripted(env: &mut dyn Env, budget: Budget) -> Vec<f32> {
    play(env, budget, |env| {
        env.scripted_action()
            .expect("this environment has no scripted policy")
    })
}

/// The returns of the uniformly random policy.
pub(crate) fn play_random(env: &mut dyn Env, budget: Budget, rng: &mut impl Rng) -> Vec<f32> {
    play(env, budget, |env| rng.random_range(0..env.actions().len()))
}

fn play(env: &mut dyn Env, budget: Budget, mut choose: impl FnMut(&dyn Env) -> usize) -> Vec<f32> {
    let (mut returns, mut steps) = (Vec::new(), 0);
    while returns.len() < budget.episodes && steps < budget.steps {
        env.reset();
        let mut total = 0.0;
        loop {
            let step = env.step(choose(env));
            total += step.reward;
            steps += 1;
            if step.outcome != Outcome::Running {
                break;
            }
        }
        returns.push(total);
    }
    returns
}

#[cfg(test)]
mod tests;
