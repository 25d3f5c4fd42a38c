//! A run directory: the only interface between training and whoever looks at it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::config::{self, Architecture, Config, Generation};
use crate::env::{self, Budget};
use crate::error::{Error, Result};
use crate::evaluate::{mean, test_env};
use crate::files;
use crate::pop_mode::Measured;
use crate::seeds::{Purpose, Seeds};

/// How long the random and the scripted player are measured. The steps are for Atari games: seconds of a run's start.
const BASELINE: Budget = Budget {
    episodes: 200,
    steps: 30_000,
};

#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held as long as the run is worked on; the system frees it when the process dies.
    _lock: File,
}

impl RunDir {
    /// A new run; the directory must not hold one already.
    pub fn create(path: &Path) -> Result<Self> {
        if path.join("config.toml").exists() {
            return Err(Error::Run {
                path: path.into(),
                reason: "there is a run in it already".into(),
                hint: format!(
                    "go on with it by `rem train --resume {}`, or name another one",
                    path.display()
                ),
            });
        }
        std::fs::create_dir_all(path).map_err(Error::io(path))?;
        let run = Self::lock(path)?;
        let checkpoints = path.join("checkpoints");
        if crate::checkpoint::epochs(path)
            .iter()
            .any(|epoch| *epoch > 0)
        {
            return Err(Error::Run {
                path: path.into(),
                reason: "it holds checkpoints of a run whose config.toml is gone".into(),
                hint: "put that file back, or name another directory".into(),
            });
        }
        if checkpoints.exists() {
            // A start that was cut off before it was a run.
            std::fs::remove_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        }
        // Made now, so that the directory's own entry is on the disk before a checkpoint counts on it.
        let replay = path.join("replay");
        std::fs::create_dir_all(&replay).map_err(Error::io(&replay))?;
        files::sync_dir(path).map_err(Error::File)?;
        files::sync_dir(files::parent(path)).map_err(Error::File)?;
        Ok(run)
    }

    /// A run that is there.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join("config.toml").exists() {
            return Err(Error::Run {
                path: path.into(),
                reason: "there is no run in it".into(),
                hint: "`rem train --run-dir DIR` starts one".into(),
            });
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self> {
        let file = path.join(".lock");
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .map_err(Error::io(&file))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::Run {
                path: path.into(),
                reason: "another process works on it".into(),
                hint: "wait for it, or stop it".into(),
            },
            TryLockError::Error(error) => Error::io(&file)(error),
        })?;
        Ok(Self {
            path: path.into(),
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The config of a run.
pub fn read_config(path: &Path) -> Result<Config> {
    let file = path.join("config.toml");
    if !file.exists() {
        return Err(Error::Run {
            path: path.into(),
            reason: "there is no run in it".into(),
            hint: "name the directory that `rem train` printed at its start".into(),
        });
    }
    let text = std::fs::read_to_string(&file).map_err(Error::io(&file))?;
    Config::from_toml(&text, &[])
}

/// What the scores of a run mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    pub rem_version: String,
    pub git_revision: String,
    pub burn_version: String,
    pub device: String,
    pub threads: usize,
    pub precision: String,
    pub game: String,
    pub actions: Vec<String>,
    pub frame_size: usize,
    pub frame_skip: u32,
    pub sticky_actions: f64,
    pub max_noops_train: u32,
    pub max_noops_test: u32,
    /// For Atari games.
    pub ale_version: Option<String>,
    pub end_on_life_loss_train: bool,
    pub end_on_life_loss_test: bool,
    pub max_steps_train: u32,
    pub max_steps_test: u32,
    pub rewards_in_scores: String,
    pub rewards_in_world_model: String,
    pub evaluation_temperature: f64,
    pub final_episodes: usize,
    pub environment_steps: u64,
    /// The world model's way to dream.
    pub dreams: String,
    /// Where that was chosen by a measurement.
    pub pop_mode_measured: Option<Measured>,
    pub perceptual_loss: bool,
    /// Checksum of the LPIPS weights, where they are used.
    pub perceptual_crc32: Option<u32>,
    /// Mean returns of players that need no learning, by the same test protocol.
    pub random_player: f64,
    pub scripted_player: Option<f64>,
    pub baseline_episodes: usize,
}

impl Protocol {
    pub fn new(config: &Config, threads: usize, perceptual_crc32: Option<u32>) -> Result<Self> {
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
        Ok(Self {
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
            rewards_in_scores: "as the game gives them".into(),
            rewards_in_world_model: format!("{:?}", config.world_model.rewards).to_lowercase(),
            evaluation_temperature: config.evaluate.temperature,
            final_episodes: config.evaluate.final_episodes,
            environment_steps: config.environment_steps(),
            dreams: dreams(&config.world_model),
            pop_mode_measured: None,
            perceptual_loss: perceptual_crc32.is_some(),
            perceptual_crc32,
            random_player: mean(&random),
            scripted_player: scripted.transpose()?,
            baseline_episodes: random.len(),
        })
    }

    /// With the times by which a way to dream was chosen, if it was.
    pub fn with_measured(self, pop_mode_measured: Option<Measured>) -> Self {
        Self {
            pop_mode_measured,
            ..self
        }
    }

    pub fn write(&self, run: &RunDir) -> Result<()> {
        write_json(&run.path().join("protocol.json"), self)
    }

    pub fn read(path: &Path) -> Result<Self> {
        let file = path.join("protocol.json");
        let bytes = std::fs::read(&file).map_err(Error::io(&file))?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Run {
            path: path.into(),
            reason: format!("protocol.json: {e}"),
            hint: "it belongs to the run and is written once, at its start".into(),
        })
    }
}

/// A world model's way to dream, in words.
fn dreams(config: &config::WorldModel) -> String {
    match (config.generation(), config.architecture) {
        (Generation::TwoCalls, _) => "POP, two calls a step",
        (Generation::OneCall, _) => "POP, one call a step",
        (Generation::TokenByToken, Architecture::Transformer) => "token by token, Transformer",
        (Generation::TokenByToken, _) => "token by token, RetNet",
    }
    .into()
}

/// One evaluation's returns, as `scores.json` and the checkpoints keep them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub epoch: u32,
    /// Environment steps that the agent had learned from.
    pub steps: u64,
    pub mean: f64,
    pub returns: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub game: String,
    pub seed: u64,
    pub evaluations: Vec<Score>,
    /// The last one, when the run is finished.
    #[serde(rename = "final")]
    pub final_score: Option<Score>,
}

pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text =
        serde_json::to_string_pretty(value).expect("plain data is representable in JSON");
    text.push('\n');
    files::write_atomic(path, text.as_bytes()).map_err(Error::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_was_cut_off_can_be_begun_again() {
        let dir = tempfile::tempdir().unwrap();
        let left = crate::checkpoint::directory(dir.path(), 0);
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join("manifest.json"), b"{}").unwrap();
        RunDir::create(dir.path()).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn checkpoints_whose_config_is_gone_are_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let kept = crate::checkpoint::directory(dir.path(), 3);
        std::fs::create_dir_all(&kept).unwrap();
        let error = RunDir::create(dir.path()).unwrap_err();
        assert!(error.to_string().contains("config.toml is gone"), "{error}");
        assert!(kept.exists());
    }

    #[test]
    fn one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunDir::create(dir.path()).unwrap();
        let error = RunDir::create(dir.path()).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        drop(first);
        RunDir::create(dir.path()).unwrap();
    }
}
