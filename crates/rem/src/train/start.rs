//! Starting and resuming a [`Trainer`].

use crate::config::Config;
use crate::data::replay::{ChunkInfo, Replay, SegmentLosses};
use crate::device;
use crate::env::EnvFactory;
use crate::error::{Error, Result};
use crate::model::agent::Agent;
use crate::model::tokenizer::lpips::Lpips;
use crate::run::RunDir;
use crate::run::checkpoint::{self, Checkpoint, Part};
use crate::run::metrics::{LogLengths, Metrics};
use crate::seeds::Seeds;
use rem_run::layout;

use super::continuation::Continuation;
use super::env_snapshots;
use super::objective::ControllerObjective;
use super::state::{Optimizers, collect_envs, other_weights, restore, write_config};
use super::trainer::{SEGMENT_LOSSES, Trainer};

impl Trainer {
    /// Starts a new run: initializes the agent and writes the first checkpoint.
    ///
    /// # Errors
    ///
    /// If the device, the environment or the run directory cannot be used.
    pub fn start(
        run: RunDir,
        config: Config,
        envs: EnvFactory,
        lpips: Option<Lpips>,
    ) -> Result<Self> {
        let replay = Replay::new(config.frame_bytes(), config.tokens_per_obs());
        Self::begin(run, config, envs, lpips, (replay, Vec::new()))
    }

    fn begin(
        run: RunDir,
        config: Config,
        envs: EnvFactory,
        lpips: Option<Lpips>,
        (replay, chunks): (Replay, Vec<ChunkInfo>),
    ) -> Result<Self> {
        let device = device::of(&config)?;
        let (collect_envs, spaces) = collect_envs(&config, &envs)?;
        let seeds = Seeds::new(config.seed);
        let agent = Agent::new(
            &config,
            spaces.action.count(),
            &seeds,
            &device.clone().autodiff(),
        );
        let mut trainer = Self {
            optimizers: Optimizers::new(&config),
            objective: ControllerObjective::new(&config.actor_critic, &agent.actor_critic),
            agent,
            replay,
            segment_losses: SegmentLosses::default(),
            metrics: Metrics::open(run.path(), run.has_tensorboard(), LogLengths::default(), 0)
                .map_err(Error::Logs)?,
            chunks,
            scores: Vec::new(),
            epoch: 0,
            notes: Vec::new(),
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

    /// Starts a run that trains on recorded episodes: the replay becomes its first chunk, and nothing is collected.
    ///
    /// # Errors
    ///
    /// As [`Trainer::start`].
    pub fn start_offline(
        run: RunDir,
        config: Config,
        envs: EnvFactory,
        lpips: Option<Lpips>,
        replay: Replay,
    ) -> Result<Self> {
        let dir = run.path().join(layout::REPLAY);
        let chunk = replay.write_chunk(&dir, 0, &layout::replay_name(0))?;
        Self::begin(
            run,
            config,
            envs,
            lpips,
            (replay, chunk.into_iter().collect()),
        )
    }

    /// Continues a run from its last checkpoint, or from that of `epoch`. A resumed run is bit-identical to
    /// an uninterrupted one.
    ///
    /// `config` may differ from that of the run in settings that did not affect the epochs so far, such as the number of
    /// epochs. Config and protocol are then replaced.
    ///
    /// # Errors
    ///
    /// If the checkpoint, the replay or the logs are damaged, or the config is another in other settings. The run is then
    /// unchanged.
    pub fn resume(
        run: RunDir,
        config: Config,
        envs: EnvFactory,
        lpips: Option<Lpips>,
        epoch: Option<u32>,
    ) -> Result<Self> {
        let continuation = Continuation::new(run.path(), &config)?;
        let configs = continuation.configs(run.path());
        let checkpoint = Checkpoint::read(run.path(), epoch, &configs, Part::All)?;
        continuation.check(&config, checkpoint.manifest.epoch)?;
        let device = device::of(&config)?;
        let (mut collect_envs, spaces) = collect_envs(&config, &envs)?;
        let seeds = Seeds::new(config.seed);
        let initialized = Agent::new(
            &config,
            spaces.action.count(),
            &seeds,
            &device.clone().autodiff(),
        );
        let (manifest, mut arrays) = (checkpoint.manifest, checkpoint.arrays);
        let state = arrays.remove(layout::TRAINING_STATE).unwrap_or_default();
        let other_weights = |reason| other_weights(run.path(), manifest.epoch, reason);
        let (agent, optimizers) =
            restore(initialized, arrays, &manifest, &config, &device).map_err(other_weights)?;
        let mut objective = ControllerObjective::new(&config.actor_critic, &agent.actor_critic);
        objective.restore(&state).map_err(other_weights)?;
        let mut replay = Replay::load(
            &run.path().join(layout::REPLAY),
            &manifest.replay,
            config.frame_bytes(),
            config.tokens_per_obs(),
        )?;
        let abandoned =
            env_snapshots::restore(&mut collect_envs, &checkpoint.environment, &mut replay)?;
        let segment_losses = (state.get(SEGMENT_LOSSES)).map_or_else(Vec::new, |a| a.data.clone());
        let segment_losses =
            SegmentLosses::restored(segment_losses, replay.steps()).map_err(other_weights)?;
        // Delete only after everything was read and checked.
        Metrics::check(run.path(), run.has_tensorboard(), manifest.logs).map_err(Error::Logs)?;
        checkpoint::remove_after(run.path(), manifest.epoch)?;
        let mut metrics = Metrics::open(
            run.path(),
            run.has_tensorboard(),
            manifest.logs,
            manifest.epoch,
        )
        .map_err(Error::Logs)?;
        let mut notes = Vec::new();
        if abandoned > 0 {
            notes.push(format!(
                "resumed after epoch {} with a new episode in {abandoned} of {} environments, whose state cannot be saved",
                manifest.epoch,
                collect_envs.len()
            ));
        }
        for note in &notes {
            metrics
                .note(manifest.epoch + 1, note)
                .map_err(Error::Logs)?;
        }
        let trainer = Self {
            notes,
            metrics,
            chunks: manifest.replay,
            scores: manifest.scores,
            epoch: manifest.epoch,
            agent,
            optimizers,
            objective,
            replay,
            segment_losses,
            run,
            config,
            seeds,
            device,
            envs,
            collect_envs,
            spaces,
            lpips,
        };
        continuation.record(&trainer)?;
        Ok(trainer)
    }
}
