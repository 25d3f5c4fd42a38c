//! [`Setup`]: what a run needs before it starts.

use std::path::Path;

use super::protocol::protocol;
use super::trainer::Trainer;
use crate::config::{Config, EnvMode};
use crate::env::{Env, EnvError, EnvFactory};
use crate::error::Result;
use crate::imagination::pop_mode;
use crate::run::{RunDir, read_config};
use crate::threads;

/// A config and its environments: the start of a run as a library. `rem train` does the same, with the LPIPS weights of the
/// user and a progress display.
///
/// Start one run at a time: the initial weights come from the device's generator, which the whole process shares. If
/// another run starts at the same moment, the seed does not determine them.
pub struct Setup {
    config: Config,
    envs: EnvFactory,
}

impl Trainer {
    /// A run with your own environments. `make` gets the mode and a seed, which must determine the environment; the config's
    /// wrappers and time limit apply. `config.env.game` is only a name.
    ///
    /// ```no_run
    /// # use rem::{Config, Env, Trainer};
    /// # fn train<MyGame: Env + 'static>(new: fn(u64) -> MyGame) -> rem::Result<()> {
    /// let config = Config::load("quick", &["env.game=my-game".into()])?;
    /// let trainer = Trainer::new(config, move |_mode, seed| Ok(new(seed)))?.start("runs/my-game")?;
    /// let scores = trainer.train(&mut |_event| ())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If a setting is invalid.
    #[allow(clippy::new_ret_no_self)] // `Setup::start` returns the trainer
    pub fn new<E, F>(config: Config, make: F) -> Result<Setup>
    where
        E: Env + 'static,
        F: Fn(EnvMode, u64) -> Result<E, EnvError> + Send + Sync + 'static,
    {
        let envs = EnvFactory::new(&config.env, make)?;
        Ok(Setup { config, envs })
    }

    /// A run with the environment that the config names.
    ///
    /// # Errors
    ///
    /// If there is no such environment, or a setting is invalid.
    pub fn named(config: Config) -> Result<Setup> {
        let envs = EnvFactory::named(&config.env)?;
        Ok(Setup { config, envs })
    }
}

impl Setup {
    /// Starts a new run in this directory. Starts the threads of the config, and plays the random policy for the protocol.
    ///
    /// # Errors
    ///
    /// If the device or the environment cannot be used, or the directory already contains a run.
    pub fn start(self, dir: impl AsRef<Path>) -> Result<Trainer> {
        let Self { mut config, envs } = self;
        config.threads = threads::set_once(config.threads)?;
        let (config, measured) = threads::on_worker(|| pop_mode::resolve(config))?;
        let protocol = protocol(&config, &envs, config.threads, None, measured)?;
        let run = RunDir::create(dir.as_ref())?;
        protocol.write(run.path())?;
        Trainer::start(run, config, envs, None)
    }

    /// Continues the run in this directory, with its own config; the config of the setup is not used.
    ///
    /// # Errors
    ///
    /// If the directory does not contain a run, or its checkpoint is damaged.
    pub fn resume(self, dir: impl AsRef<Path>) -> Result<Trainer> {
        let config = read_config(dir.as_ref())?;
        threads::set_once(config.threads)?;
        Trainer::resume(RunDir::open(dir.as_ref())?, config, self.envs, None, None)
    }
}
