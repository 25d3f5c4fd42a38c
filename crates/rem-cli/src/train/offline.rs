//! `rem train --offline`: recorded episodes instead of collection.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rem::config::{Config, ConfigError};
use rem::data::dataset::DatasetInfo;
use rem::env::EnvFactory;
use rem::run::{read_config, recorded_episodes};
use rem::{EnvError, Error, Replay};
use rem_run::DataDetails;

use crate::ConfigSource;

/// The recorded episodes of `--offline`.
pub struct Offline {
    dir: PathBuf,
    info: DatasetInfo,
}

impl Offline {
    pub fn open(dir: &Path) -> Result<Self> {
        let info = recorded_episodes(dir).map_err(Error::from)?;
        let dir = dir.into();
        Ok(Self { dir, info })
    }

    /// The user's config, with the frames and the environment of the data. A run has the settings of its environment.
    pub fn config(&self, source: &ConfigSource) -> Result<Config> {
        let own = [
            format!("env.game={}", self.info.game),
            format!("env.frame_size={}", self.info.frame_size),
            "collect.epochs=0".into(),
        ];
        let mut config = source.load_over(own.into())?;
        if source.game.is_none()
            && let Ok(run) = read_config(&self.dir)
        {
            config.env = run.env;
        }
        if config.collect.epochs > 0 || config.env.frame_size != self.info.frame_size {
            let size = self.info.frame_size;
            return Err(Error::Config(ConfigError::new(
                format!("the episodes have frames of {size} pixels, and nothing can be collected"),
                format!(
                    "leave `collect.epochs` at 0 and `env.frame_size` at {size} with `--offline`"
                ),
            ))
            .into());
        }
        Ok(config)
    }

    /// The environment that the agent is evaluated in; none if the name is that of no environment.
    pub fn envs(&self, config: &Config) -> Result<EnvFactory> {
        let envs = match EnvFactory::named(&config.env) {
            Ok(envs) => envs,
            Err(EnvError::UnknownGame { .. }) => {
                return Ok(EnvFactory::data(&config.env, self.info.spaces()));
            }
            Err(error) => return Err(Error::from(error).into()),
        };
        let (found, recorded) = (
            envs.spaces().map_err(Error::from)?.action.count(),
            self.info.actions.len(),
        );
        if found != recorded {
            return Err(Error::Config(ConfigError::new(
                format!(
                    "`{}` has {found} actions, but the episodes have {recorded}",
                    config.env.game
                ),
                "import the episodes with `--actions N`, or name their environment with `--env`",
            ))
            .into());
        }
        Ok(envs)
    }

    pub fn details(&self, envs: &EnvFactory) -> DataDetails {
        DataDetails {
            source: self.dir.display().to_string(),
            episodes: self.info.episodes,
            steps: self.info.steps,
            evaluated: envs.can_play(),
        }
    }

    pub fn load(self, config: &Config) -> Result<Replay> {
        let replay = self.info.load(&self.dir, config.tokens_per_obs());
        Ok(replay.map_err(Error::from)?)
    }
}
