//! [`EnvFactory`]: creates the environments of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use rem_run::EnvDetails;

use super::games::canvas::BoardGame;
use super::games::{catch, crossing, paddle};
use super::python::PythonEnvs;
use super::wrappers::Checked;
use super::{Env, EnvError, EnvName, LifeLoss, ObservationSpace, Preprocess, Spaces, TimeLimit};
use crate::config::{EnvConfig, EnvMode, FRAME_SIZES, RewardTransform, TrainTest};

type Make = dyn Fn(EnvMode, u64) -> Result<Box<dyn Env>, EnvError> + Send + Sync;

/// Creates environments for training and evaluation, with the wrappers of a config.
#[derive(Clone)]
pub struct EnvFactory {
    settings: EnvConfig,
    source: Source,
}

#[derive(Clone)]
enum Source {
    BuiltIn(&'static str),
    Atari(&'static rem_ale::Game),
    Python(Arc<PythonEnvs>),
    Own(Arc<Make>),
    /// Recorded episodes only.
    Data(Spaces),
}

impl EnvFactory {
    /// The factory of the environment that `settings.game` names.
    ///
    /// # Errors
    /// If the name is unknown, or a setting is invalid. Whether a ROM or a Python environment exists shows when an
    /// environment is created.
    pub fn named(settings: &EnvConfig) -> Result<Self, EnvError> {
        let source = match EnvName::parse(&settings.game)? {
            EnvName::BuiltIn(game) => Source::BuiltIn(game),
            EnvName::Atari(game) => Source::Atari(game),
            name => Source::Python(Arc::new(PythonEnvs::new(name, settings.python.clone()))),
        };
        Self::checked(settings, source)
    }

    /// A factory of your own environments. `make` gets the mode and a seed, which must determine the environment.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new<E, F>(settings: &EnvConfig, make: F) -> Result<Self, EnvError>
    where
        E: Env + 'static,
        F: Fn(EnvMode, u64) -> Result<E, EnvError> + Send + Sync + 'static,
    {
        let make = move |mode, seed| Ok(Box::new(make(mode, seed)?) as Box<dyn Env>);
        Self::checked(settings, Source::Own(Arc::new(make)))
    }

    /// No environment: training on recorded episodes with these spaces.
    pub fn data(settings: &EnvConfig, spaces: Spaces) -> Self {
        Self {
            settings: settings.clone(),
            source: Source::Data(spaces),
        }
    }

    fn checked(settings: &EnvConfig, source: Source) -> Result<Self, EnvError> {
        let size = settings.frame_size;
        if !FRAME_SIZES.contains(&size) {
            return Err(EnvError::BadSize { size });
        }
        if settings.max_steps.train == 0 || settings.max_steps.test == 0 {
            return Err(EnvError::NoSteps);
        }
        Ok(Self {
            settings: settings.clone(),
            source,
        })
    }

    /// The same environments without a time limit.
    pub(crate) fn without_time_limit(&self) -> Self {
        let mut endless = self.clone();
        let steps = u32::MAX;
        endless.settings.max_steps = TrainTest {
            train: steps,
            test: steps,
        };
        endless
    }

    /// Whether environments can be created: not if there are only recorded episodes.
    pub fn can_play(&self) -> bool {
        !matches!(self.source, Source::Data(_))
    }

    /// Whether the environments are native Atari games.
    pub(crate) fn is_atari(&self) -> bool {
        matches!(self.source, Source::Atari(_))
    }

    /// Whether thousands of steps take seconds.
    pub(crate) fn is_fast(&self) -> bool {
        matches!(self.source, Source::Atari(_) | Source::BuiltIn(_))
    }

    /// What the protocol of a run records of an environment that is not built in. Creates one.
    ///
    /// # Errors
    /// If the environment cannot be created, or fails.
    pub fn details(&self) -> Result<Option<EnvDetails>, EnvError> {
        let (mut env, packages): (Box<dyn Env>, _) = match &self.source {
            Source::Python(envs) => {
                let env = envs.make(0)?;
                let packages = env.packages().clone();
                (Box::new(env), packages)
            }
            Source::Own(make) => (make(EnvMode::Train, 0)?, BTreeMap::new()),
            Source::BuiltIn(_) | Source::Atari(_) | Source::Data(_) => return Ok(None),
        };
        env.reset()?;
        Ok(Some(EnvDetails {
            observation_space: env.spaces().observation.to_string(),
            action_space: env.spaces().action.to_string(),
            wrappers: self.wrappers(&env.spaces()),
            snapshots: env.snapshot()?.is_some(),
            packages,
        }))
    }

    /// The wrappers around an environment with these spaces, from the inside out, in words.
    fn wrappers(&self, spaces: &Spaces) -> Vec<String> {
        let (settings, size) = (&self.settings, self.settings.frame_size);
        let wrappers = settings.wrappers;
        let mut list = Vec::new();
        if let Source::Python(_) = self.source {
            list.push(format!(
                "observation: {}",
                settings.python.observation.name()
            ));
            if !settings.python.kwargs.is_empty() {
                let kwargs = serde_json::to_string(&settings.python.kwargs);
                list.push(format!("kwargs {}", kwargs.unwrap_or_default()));
            }
        }
        if wrappers.frame_skip > 1 {
            list.push(format!("frame skip {}", wrappers.frame_skip));
        }
        if wrappers.max_of_two && wrappers.frame_skip > 1 {
            list.push("maximum of the last two frames".into());
        }
        if wrappers.grayscale {
            list.push("gray scale".into());
        }
        let ObservationSpace::Image { height, width, .. } = spaces.observation;
        if (height, width) != (size, size) {
            let filter = wrappers.resize.name();
            list.push(format!(
                "resize {height}x{width} to {size}x{size}, {filter}"
            ));
        }
        let limit = settings.max_steps;
        list.push(format!(
            "time limit {} steps, {} in evaluation",
            limit.train, limit.test
        ));
        if settings.end_on_life_loss.train || settings.end_on_life_loss.test {
            let modes = [
                ("training", settings.end_on_life_loss.train),
                ("evaluation", settings.end_on_life_loss.test),
            ];
            let modes: Vec<&str> = modes
                .iter()
                .filter(|(_, on)| *on)
                .map(|(mode, _)| *mode)
                .collect();
            list.push(format!(
                "a lost life ends an episode in {}",
                modes.join(" and ")
            ));
        }
        if wrappers.rewards != RewardTransform::Raw {
            list.push(format!("rewards in training: {}", wrappers.rewards.name()));
        }
        list
    }

    /// The settings of the environments.
    pub fn settings(&self) -> &EnvConfig {
        &self.settings
    }

    /// The spaces of an environment as the agent sees it. Creates one.
    ///
    /// # Errors
    /// If the environment cannot be created.
    pub fn spaces(&self) -> Result<Spaces, EnvError> {
        match &self.source {
            Source::Data(spaces) => Ok(spaces.clone()),
            _ => Ok(self.make(EnvMode::Train, 0)?.spaces()),
        }
    }

    /// Creates an environment with its wrappers. Its observations are RGB frames of the configured size.
    ///
    /// # Errors
    /// If a ROM or a Python package is missing, the program was built without Atari games, or the environment fails or
    /// has spaces that the agent cannot play with.
    pub fn make(&self, mode: EnvMode, seed: u64) -> Result<Box<dyn Env>, EnvError> {
        let size = self.settings.frame_size;
        match &self.source {
            Source::BuiltIn(game) => {
                let game: Box<dyn Env> = match *game {
                    "catch" => Box::new(BoardGame::<catch::Catch>::new(size, seed)),
                    "paddle" => Box::new(BoardGame::<paddle::Paddle>::new(size, seed)),
                    _ => Box::new(BoardGame::<crossing::Crossing>::new(size, seed)),
                };
                Ok(self.wrapped(game, mode))
            }
            Source::Atari(game) => self.atari(game, mode, seed),
            Source::Python(envs) => Ok(self.wrapped(Checked::new(envs.make(seed)?)?, mode)),
            Source::Own(make) => Ok(self.wrapped(Checked::new(make(mode, seed)?)?, mode)),
            Source::Data(_) => Err(EnvError::DataOnly {
                game: self.settings.game.clone(),
            }),
        }
    }

    /// The time limit is inside [`LifeLoss`]: it applies to the game, not to a life.
    fn wrapped(&self, env: impl Env + 'static, mode: EnvMode) -> Box<dyn Env> {
        let settings = &self.settings;
        let (wrappers, size) = (settings.wrappers, settings.frame_size);
        if Preprocess::<Box<dyn Env>>::is_identity(&env.spaces(), &wrappers, size) {
            self.limited(env, mode)
        } else {
            self.limited(Preprocess::new(env, wrappers, size), mode)
        }
    }

    fn limited(&self, env: impl Env + 'static, mode: EnvMode) -> Box<dyn Env> {
        let limited = TimeLimit::new(env, self.settings.max_steps.of(mode));
        match self.settings.end_on_life_loss.of(mode) {
            true => Box::new(LifeLoss::new(limited)),
            false => Box::new(limited),
        }
    }

    /// Atari games skip frames, take no-ops and limit the length of an episode themselves, in raw frames.
    #[cfg(feature = "atari")]
    fn atari(
        &self,
        game: &'static rem_ale::Game,
        mode: EnvMode,
        seed: u64,
    ) -> Result<Box<dyn Env>, EnvError> {
        use super::atari::{Atari, AtariSettings, rom};
        let settings = &self.settings;
        let atari = Atari::new(
            &rom(game)?,
            AtariSettings {
                size: settings.frame_size,
                frame_skip: settings.atari.frame_skip,
                noops: match settings.atari.max_noops.of(mode) {
                    0 => (0, 0),
                    max => (1, max),
                },
                max_frames: settings.max_steps.of(mode),
                sticky: settings.atari.sticky_actions,
            },
            seed,
        )?;
        Ok(match settings.end_on_life_loss.of(mode) {
            true => Box::new(LifeLoss::new(atari)),
            false => Box::new(atari),
        })
    }

    #[cfg(not(feature = "atari"))]
    fn atari(
        &self,
        game: &'static rem_ale::Game,
        _: EnvMode,
        _: u64,
    ) -> Result<Box<dyn Env>, EnvError> {
        Err(EnvError::WithoutAtari { game: game.name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::env::testing::act;
    use crate::env::{Action, ActionSpace, Observation, ObservationSpace, Outcome, Step};

    /// Shows gray images of 3x5 pixels.
    struct Flat {
        seed: u64,
        bytes: usize,
        reward: f32,
    }

    impl Env for Flat {
        fn spaces(&self) -> Spaces {
            Spaces {
                observation: ObservationSpace::gray(3, 5),
                action: ActionSpace::discrete(2),
            }
        }
        fn reset(&mut self) -> Result<Observation, EnvError> {
            Ok(vec![self.seed as u8; 15].into())
        }
        fn step(&mut self, _: &Action) -> Result<Step, EnvError> {
            Ok(Step {
                observation: vec![9; self.bytes].into(),
                reward: self.reward,
                outcome: Outcome::Running,
            })
        }
    }

    fn made(bytes: usize, reward: f32) -> Box<dyn Env> {
        let set = ["env.game=flat", "env.max_steps.train=2"].map(String::from);
        let config = Config::load("debug", &set).unwrap();
        let make = move |_, seed| {
            Ok(Flat {
                seed,
                bytes,
                reward,
            })
        };
        let factory = EnvFactory::new(&config.env, make).unwrap();
        factory.make(EnvMode::Train, 7).unwrap()
    }

    #[test]
    fn own_environments_become_square_rgb_with_a_time_limit() {
        let mut env = made(15, 0.5);
        assert_eq!(env.spaces().observation, ObservationSpace::rgb(32, 32));
        assert_eq!(env.reset().unwrap().into_image(), vec![7; 32 * 32 * 3]);
        assert_eq!(act(&mut env, 0).outcome, Outcome::Running);
        assert_eq!(act(&mut env, 0).outcome, Outcome::Truncated);
        assert_eq!((env.lives(), env.scripted_action()), (1, None));
        assert_eq!(env.snapshot().unwrap(), None, "no snapshot by default");
        assert!(env.restore(b"{}").is_err());
    }

    #[test]
    fn wrong_frames_and_rewards_are_errors() {
        let error = |bytes, reward| {
            let mut env = made(bytes, reward);
            env.reset().unwrap();
            env.step(&Action::Discrete(0)).unwrap_err().to_string()
        };
        let wrong = error(14, 0.0);
        assert!(
            wrong.contains("14 bytes") && wrong.contains("3x5x1"),
            "{wrong}"
        );
        assert!(error(15, f32::NAN).contains("NaN"));
    }

    #[test]
    fn recorded_episodes_have_spaces_but_cannot_be_played() {
        let config = Config::load("debug", &[]).unwrap();
        let spaces = made(15, 0.0).spaces();
        let factory = EnvFactory::data(&config.env, spaces.clone());
        assert!(!factory.can_play());
        assert_eq!(factory.spaces().unwrap(), spaces);
        let error = factory.make(EnvMode::Test, 0).err().unwrap();
        assert!(matches!(error, EnvError::DataOnly { .. }));
    }
}
