//! [`Trainer`]: the epoch loop, exact resume, and the guard against divergence.
//!
//! Between two epochs a [`Trainer`] holds exactly what its last checkpoint holds. An epoch that diverges is undone by
//! loading that checkpoint.

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;

use super::collect::CollectEnv;
use super::env_snapshots;
use super::objective::ControllerObjective;
use super::phase::Diverged;
use super::state::{Optimizers, all_arrays, config_crc32};
use super::{Event, Listener};
use crate::config::Config;
use crate::data::replay::{ChunkInfo, Replay, SegmentLosses};
use crate::env::{EnvFactory, Spaces};
use crate::error::{Error, Result};
use crate::model::agent::Agent;
use crate::model::tokenizer::lpips::Lpips;
use crate::model::weights::{self, Array};
use crate::run::checkpoint::{Checkpoint, Manifest};
use crate::run::metrics::Metrics;
use crate::run::{RunDir, Score, Scores};
use crate::seeds::Seeds;
use rem_run::layout;

/// Attempts at an epoch before divergence stops the run with an error.
const MAX_ATTEMPTS: u32 = 3;

/// The name of the segments' losses in a checkpoint's training state.
pub(super) const SEGMENT_LOSSES: &str = "segment_losses";

/// Trains an agent in a run directory. Between epochs its state equals the last checkpoint.
pub struct Trainer {
    pub(super) run: RunDir,
    pub(super) config: Config,
    pub(super) seeds: Seeds,
    pub(super) device: Device,
    pub(super) agent: Agent,
    pub(super) optimizers: Optimizers,
    pub(super) objective: ControllerObjective,
    pub(super) envs: EnvFactory,
    pub(super) collect_envs: Vec<CollectEnv>,
    pub(super) spaces: Spaces,
    pub(super) replay: Replay,
    pub(super) segment_losses: SegmentLosses,
    pub(super) chunks: Vec<ChunkInfo>,
    pub(super) metrics: Metrics,
    pub(super) scores: Vec<Score>,
    pub(super) lpips: Option<Lpips>,
    pub(super) epoch: u32,
    /// What the listener is told when training starts.
    pub(super) notes: Vec<String>,
}

impl Trainer {
    /// Number of finished epochs.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The directory of the run.
    pub fn run_dir(&self) -> &Path {
        self.run.path()
    }

    /// The settings of the run.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Trains to the end of the run and returns its scores.
    ///
    /// # Errors
    ///
    /// If an epoch diverges three times, or a file cannot be written.
    pub fn train(self, listener: Listener) -> Result<Scores> {
        let scores = self.train_until(&|| false, listener)?;
        Ok(scores.expect("nothing stopped it"))
    }

    /// Like [`Trainer::train`], but returns `None` before an epoch if `stop` returns true. [`Trainer::resume`] continues the
    /// run.
    ///
    /// # Errors
    ///
    /// As [`Trainer::train`].
    pub fn train_until(
        mut self,
        stop: &(dyn Fn() -> bool + Sync),
        listener: Listener,
    ) -> Result<Option<Scores>> {
        for note in std::mem::take(&mut self.notes) {
            listener(Event::Note(&note));
        }
        let mut failures: Vec<String> = Vec::new();
        while self.epoch < self.config.train.epochs {
            if stop() {
                return Ok(None);
            }
            let diverged = match self.run_epoch(listener) {
                Ok(()) => {
                    failures.clear();
                    continue;
                }
                Err(EpochError::Failed(error)) => return Err(error),
                Err(EpochError::Diverged(diverged)) => diverged,
            };
            let epoch = self.epoch + 1;
            let attempts = failures.len() as u32 + 1;
            if attempts == MAX_ATTEMPTS {
                return Err(self.diverged_error(epoch, diverged));
            }
            let text = format!(
                "epoch {epoch}, {}: {}; reloaded the checkpoint of epoch {}, next seed (attempt {} of {MAX_ATTEMPTS})",
                diverged.phase,
                diverged.what,
                self.epoch,
                attempts + 1
            );
            listener(Event::Note(&text));
            failures.push(text);
            self.collect_envs.clear();
            self = Self::resume(
                self.run,
                self.config,
                self.envs,
                self.lpips,
                Some(self.epoch),
            )?;
            self.seeds.attempt = attempts;
            // The log was truncated to the checkpoint: repeat the notes of all attempts.
            for text in &failures {
                self.metrics.note(epoch, text).map_err(Error::Logs)?;
            }
        }
        self.write_scores().map(Some)
    }

    /// One epoch (paper, Algorithm 3): collect, train the three components, evaluate, write a checkpoint.
    fn run_epoch(&mut self, listener: Listener) -> Result<(), EpochError> {
        let epoch = self.epoch + 1;
        let started = Instant::now();
        listener(Event::Epoch);
        let steps_before = self.replay.steps();
        if epoch <= self.config.collect.epochs && !self.collect_envs.is_empty() {
            self.collect(epoch, listener)?;
        }
        self.learn(epoch, steps_before, listener)?;
        if self.evaluates(epoch) {
            self.evaluate(epoch, listener)?;
        }
        let name = layout::replay_name(epoch);
        let chunk =
            self.replay
                .write_chunk(&self.run.path().join(layout::REPLAY), steps_before, &name);
        self.chunks.extend(chunk.map_err(Error::from)?);
        self.epoch = epoch;
        self.seeds.attempt = 0;
        self.checkpoint()?;
        if self.evaluates(epoch) {
            self.write_scores()?;
        }
        listener(Event::EpochDone {
            epoch,
            seconds: started.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    pub(super) fn is_final(&self, epoch: u32) -> bool {
        epoch == self.config.train.epochs
    }

    fn evaluates(&self, epoch: u32) -> bool {
        if !self.envs.can_play() {
            return false;
        }
        let every = self.config.evaluate.every;
        self.is_final(epoch) || (every > 0 && epoch.is_multiple_of(every))
    }

    /// Logs the metrics and the duration of a phase, and reports them to the listener.
    pub(super) fn phase_done(
        &mut self,
        epoch: u32,
        phase: &'static str,
        steps: usize,
        started: Instant,
        values: &[(&'static str, f64)],
        listener: Listener,
    ) -> Result<()> {
        let seconds = started.elapsed().as_secs_f64();
        (self.metrics.phase(epoch, phase, steps, seconds, values)).map_err(Error::Logs)?;
        listener(Event::PhaseDone {
            epoch,
            phase,
            steps,
            seconds,
            values,
        });
        Ok(())
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
        let mut manifest = Manifest::new(self.epoch, config_crc32(&self.config));
        manifest.replay = self.chunks.clone();
        manifest.scores = self.scores.clone();
        manifest.logs = self.metrics.sync().map_err(Error::Logs)?;
        let mut arrays = all_arrays(&self.agent, &mut self.optimizers, &mut manifest);
        let mut state = self.objective.to_arrays();
        if self.config.world_model.prioritized_fraction > 0.0 {
            let losses = Array::flat(self.segment_losses.as_slice().to_vec());
            state.insert(SEGMENT_LOSSES.into(), losses);
        }
        if !state.is_empty() {
            arrays.insert(layout::TRAINING_STATE.into(), state);
        }
        let environment = env_snapshots::take(&mut self.collect_envs)?;
        Checkpoint {
            manifest,
            arrays,
            environment,
        }
        .write(self.run.path())
    }

    /// Writes `scores.json` from the evaluations in the last checkpoint.
    pub(super) fn write_scores(&self) -> Result<Scores> {
        let last = self.scores.last().filter(|s| self.is_final(s.epoch));
        let scores = Scores {
            game: self.config.env.game.clone(),
            seed: self.config.seed,
            evaluations: self.scores.clone(),
            final_score: last.cloned(),
        };
        scores.write(self.run.path())?;
        Ok(scores)
    }

    /// Writes the batch that diverged, for inspection.
    fn diverged_error(&self, epoch: u32, diverged: Diverged) -> Error {
        let dump = self.run.path().join(layout::diverged_name(epoch));
        if let Err(error) =
            rem_run::files::write_atomic(&dump, &weights::to_safetensors(&diverged.batch))
        {
            return Error::File(error);
        }
        Error::Diverged {
            phase: diverged.phase,
            epoch,
            times: MAX_ATTEMPTS,
            what: diverged.what,
            dump,
        }
    }
}

/// Why an epoch was not finished.
pub(super) enum EpochError {
    Diverged(Diverged),
    Failed(Error),
}

impl From<Diverged> for EpochError {
    fn from(diverged: Diverged) -> Self {
        Self::Diverged(diverged)
    }
}

impl From<Error> for EpochError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
