//! Starting a run from a checkpoint of another.

use std::path::Path;

use super::env_snapshots;
use super::objective::ControllerObjective;
use super::state::{collect_envs, config_crc32s, restore, write_config};
use super::trainer::{SEGMENT_LOSSES, Trainer};
use crate::config::{Config, ConfigError};
use crate::data::replay::{ChunkInfo, Replay, SegmentLosses};
use crate::device;
use crate::env::EnvFactory;
use crate::error::{Error, Result};
use crate::model::agent::Agent;
use crate::model::tokenizer::lpips::Lpips;
use crate::run::checkpoint::{Checkpoint, Part};
use crate::run::metrics::{LogLengths, Metrics};
use crate::run::{RunDir, read_config, read_protocol};
use crate::seeds::Seeds;
use rem_run::layout;

impl Trainer {
    /// Starts a run from the last checkpoint of the run in `origin`, or from that of `epoch`, with any settings. It has the
    /// weights, the optimizers, the replay and the epoch of that checkpoint, and no logs or scores. Without a change of
    /// settings it continues as the other run would.
    ///
    /// # Errors
    ///
    /// If the checkpoint is damaged, the models of the settings have other sizes, or no epoch is left.
    pub fn fork(
        origin: &Path,
        epoch: Option<u32>,
        run: RunDir,
        config: Config,
        envs: EnvFactory,
        lpips: Option<Lpips>,
    ) -> Result<Self> {
        let before = read_config(origin)?;
        let configs = config_crc32s(origin, &before);
        let checkpoint = Checkpoint::read(origin, epoch, &configs, Part::All)?;
        let (manifest, mut arrays) = (checkpoint.manifest, checkpoint.arrays);
        check_epochs(&config, manifest.epoch)?;
        let device = device::of(&config)?;
        let (mut collect_envs, spaces) = collect_envs(&config, &envs)?;
        check_sizes(origin, &before, &config, spaces.action.count())?;
        let seeds = Seeds::new(config.seed);
        let autodiff = device.clone().autodiff();
        let initialized = Agent::new(&config, spaces.action.count(), &seeds, &autodiff);
        let state = arrays.remove(layout::TRAINING_STATE).unwrap_or_default();
        let (agent, optimizers) = restore(initialized, arrays, &manifest, &config, &device)
            .map_err(|reason| other_sizes(origin, &reason))?;
        // What new settings keep besides starts anew.
        let mut objective = ControllerObjective::new(&config.actor_critic, &agent.actor_critic);
        let mut restored = objective.clone();
        if restored.restore(&state).is_ok() {
            objective = restored;
        }
        let mut replay = share_replay(origin, run.path(), &manifest.replay, &config)?;
        if before.env == config.env && before.collect.envs == config.collect.envs {
            env_snapshots::restore(&mut collect_envs, &checkpoint.environment, &mut replay)?;
        } else {
            (0..before.collect.envs as u32).for_each(|stream| replay.abandon_episode(stream));
        }
        let losses = state.get(SEGMENT_LOSSES).map(|array| array.data.clone());
        let losses = SegmentLosses::restored(losses.unwrap_or_default(), replay.steps());
        let mut trainer = Self {
            metrics: Metrics::open(
                run.path(),
                run.has_tensorboard(),
                LogLengths::default(),
                manifest.epoch,
            )
            .map_err(Error::Logs)?,
            segment_losses: losses.unwrap_or_default(),
            chunks: manifest.replay,
            scores: Vec::new(),
            epoch: manifest.epoch,
            notes: Vec::new(),
            agent,
            optimizers,
            objective,
            replay,
            run,
            config,
            seeds,
            device,
            envs,
            collect_envs,
            spaces,
            lpips,
        };
        trainer.checkpoint()?;
        write_config(&trainer.run, &trainer.config)?;
        Ok(trainer)
    }
}

fn check_epochs(config: &Config, epoch: u32) -> Result<()> {
    if config.train.epochs > epoch {
        return Ok(());
    }
    Err(Error::Config(ConfigError::new(
        format!(
            "the checkpoint is of epoch {epoch}, and `train.epochs = {}`: no epoch is left",
            config.train.epochs
        ),
        format!("set it to {} or more, or pass `--from-epoch`", epoch + 1),
    )))
}

/// Checks the sizes that show before the weights are compared.
fn check_sizes(origin: &Path, before: &Config, config: &Config, actions: usize) -> Result<()> {
    let frames = [before, config].map(|c| c.env.frame_size);
    if frames[0] != frames[1] {
        let reason = format!("its frames have {} pixels, not {}", frames[0], frames[1]);
        return Err(other_sizes(origin, &reason));
    }
    let had = read_protocol(origin)?.actions.len();
    if had != actions {
        let game = &config.env.game;
        let reason = format!("its agent has {had} actions, but `{game}` has {actions}");
        return Err(other_sizes(origin, &reason));
    }
    Ok(())
}

fn other_sizes(origin: &Path, reason: &str) -> Error {
    Error::Run {
        path: origin.into(),
        reason: format!("its models do not fit these settings: {reason}"),
        hint: "leave the settings that determine sizes as they are, or start with new weights: `rem train` without \
               `--resume`"
            .into(),
    }
}

/// Brings the chunks of a replay into another run. Chunks never change, so both runs share the files if their file system
/// can.
fn share_replay(
    origin: &Path,
    run: &Path,
    chunks: &[ChunkInfo],
    config: &Config,
) -> Result<Replay> {
    let [from, to] = [origin, run].map(|run| run.join(layout::REPLAY));
    // Checks every chunk.
    let replay = Replay::load(&from, chunks, config.frame_bytes(), config.tokens_per_obs())?;
    for chunk in chunks {
        let (from, to) = (from.join(&chunk.file), to.join(&chunk.file));
        // A leftover of a start that was interrupted.
        let _ = std::fs::remove_file(&to);
        if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to).map_err(Error::io(&to))?;
            let file = std::fs::File::open(&to);
            file.and_then(|file| file.sync_all())
                .map_err(Error::io(&to))?;
        }
    }
    rem_run::files::sync_dir(&to).map_err(Error::File)?;
    Ok(replay)
}
