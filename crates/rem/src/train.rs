//! The training cycle (paper, Alg. overview): collect, learn to see, learn the world, learn to act.
//!
//! A [`Trainer`] is always at the end of an epoch, and what it holds is exactly what the last checkpoint
//! holds. An epoch that diverges is undone by going back to that checkpoint.

use std::time::Instant;

use burn::tensor::Device;

use crate::agent::Agent;
use crate::checkpoint::{self, Checkpoint, Manifest, Part};
use crate::collect::collect;
use crate::config::Config;
use crate::device;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::evaluate::{evaluate, mean};
use crate::metrics::{LogLengths, Metrics};
use crate::replay::{ChunkInfo, Replay};
use crate::run::{RunDir, Score, Scores, write_json};
use crate::seeds::{Purpose, Seeds};
use crate::showcase::Showcase;
use crate::tokenizer::lpips::Lpips;
use crate::weights;

mod phases;
mod state;

use phases::{Diverged, Phase};
use state::{
    Optimisers, all_arrays, config_crc32, other_weights, restore, training_env, write_config,
};
pub use state::{imported, load_agent, write_imported};

/// Tries of an epoch before the run gives up.
const TRIES: u32 = 3;

/// What happens in a run, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// An epoch begins, or begins again.
    Epoch,
    /// A phase of an epoch begins.
    Phase {
        epoch: u32,
        phase: &'static str,
        steps: usize,
    },
    /// So many of its steps are done.
    Step {
        done: usize,
    },
    /// It is over.
    PhaseDone {
        epoch: u32,
        phase: &'static str,
        steps: usize,
        seconds: f64,
        values: &'a [(&'static str, f64)],
    },
    Evaluated {
        epoch: u32,
        score: &'a Score,
        is_final: bool,
    },
    EpochDone {
        epoch: u32,
        seconds: f64,
    },
    /// Something the user should know.
    Note(&'a str),
}

/// Whoever is told of events.
pub type Listener<'a> = &'a mut dyn FnMut(Event);

/// A run at the end of an epoch.
pub struct Trainer {
    run: RunDir,
    config: Config,
    seeds: Seeds,
    device: Device,
    agent: Agent,
    optimisers: Optimisers,
    env: Box<dyn Env>,
    replay: Replay,
    chunks: Vec<ChunkInfo>,
    metrics: Metrics,
    scores: Vec<Score>,
    lpips: Option<Lpips>,
    epoch: u32,
}

impl Trainer {
    /// Begins a run: a newborn agent, and its first checkpoint.
    pub fn start(run: RunDir, config: Config, lpips: Option<Lpips>) -> Result<Self> {
        let device = device::of(&config)?;
        let env = training_env(&config)?;
        let seeds = Seeds::new(config.seed);
        let mut trainer = Self {
            agent: Agent::new(
                &config,
                env.actions().len(),
                &seeds,
                &device.clone().autodiff(),
            ),
            optimisers: Optimisers::new(&config),
            replay: Replay::new(config.frame_bytes(), config.tokens_per_obs()),
            metrics: Metrics::open(run.path(), LogLengths::default(), 0).map_err(Error::Logs)?,
            chunks: Vec::new(),
            scores: Vec::new(),
            epoch: 0,
            run,
            config,
            seeds,
            device,
            env,
            lpips,
        };
        trainer.checkpoint()?;
        write_config(&trainer.run, &trainer.config)?;
        Ok(trainer)
    }

    /// Goes on from a checkpoint: the last one, or that of `epoch`.
    pub fn resume(
        run: RunDir,
        config: Config,
        lpips: Option<Lpips>,
        epoch: Option<u32>,
    ) -> Result<Self> {
        let checkpoint = Checkpoint::read(run.path(), epoch, config_crc32(&config), Part::Whole)?;
        let device = device::of(&config)?;
        let mut env = training_env(&config)?;
        env.restore(&checkpoint.environment)?;
        let seeds = Seeds::new(config.seed);
        let newborn = Agent::new(
            &config,
            env.actions().len(),
            &seeds,
            &device.clone().autodiff(),
        );
        let manifest = checkpoint.manifest;
        let (agent, optimisers) = restore(newborn, checkpoint.arrays, &manifest, &config, &device)
            .map_err(|reason| other_weights(run.path(), manifest.epoch, reason))?;
        let replay = Replay::load(
            &run.path().join("replay"),
            &manifest.replay,
            config.frame_bytes(),
            config.tokens_per_obs(),
        )?;
        // Everything was read and checked: only now is anything dropped.
        Metrics::check(run.path(), manifest.logs).map_err(Error::Logs)?;
        checkpoint::drop_others(run.path(), manifest.epoch)?;
        Ok(Self {
            metrics: Metrics::open(run.path(), manifest.logs, manifest.epoch)
                .map_err(Error::Logs)?,
            chunks: manifest.replay,
            scores: manifest.scores,
            epoch: manifest.epoch,
            agent,
            optimisers,
            replay,
            run,
            config,
            seeds,
            device,
            env,
            lpips,
        })
    }

    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Trains to the end of the run.
    pub fn train(mut self, listener: Listener) -> Result<Scores> {
        let mut failures: Vec<String> = Vec::new();
        while self.epoch < self.config.train.epochs {
            let diverged = match self.run_epoch(listener) {
                Ok(()) => {
                    failures.clear();
                    continue;
                }
                Err(EpochError::Failed(error)) => return Err(error),
                Err(EpochError::Diverged(diverged)) => diverged,
            };
            let epoch = self.epoch + 1;
            let tries = failures.len() as u32 + 1;
            if tries == TRIES {
                return Err(self.give_up(epoch, diverged));
            }
            let text = format!(
                "epoch {epoch}, {}: {}; back to the checkpoint of epoch {}, next seed (try {} of {TRIES})",
                diverged.phase,
                diverged.what,
                self.epoch,
                tries + 1
            );
            listener(Event::Note(&text));
            failures.push(text);
            self = Self::resume(self.run, self.config, self.lpips, Some(self.epoch))?;
            self.seeds.attempt = tries;
            // The log went back with the rest: tell it again of every try.
            for text in &failures {
                self.metrics.note(epoch, text).map_err(Error::Logs)?;
            }
        }
        self.write_scores()
    }

    /// The loop of an epoch on one screen.
    fn run_epoch(&mut self, listener: Listener) -> Result<(), EpochError> {
        let epoch = self.epoch + 1;
        let started = Instant::now();
        listener(Event::Epoch);
        let steps_before = self.replay.steps();
        if epoch <= self.config.collect.epochs {
            self.collect(epoch, listener)?;
        }
        for phase in Phase::ALL {
            if phase.settings(&self.config).learns_in(epoch) {
                self.learn(phase, epoch, steps_before, listener)?;
            }
        }
        if self.evaluates(epoch) {
            self.evaluate(epoch, listener)?;
        }
        let name = format!("epoch-{epoch:06}.chunk");
        let chunk = self
            .replay
            .write_chunk(&self.run.path().join("replay"), steps_before, &name);
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

    fn is_final(&self, epoch: u32) -> bool {
        epoch == self.config.train.epochs
    }

    fn evaluates(&self, epoch: u32) -> bool {
        let every = self.config.evaluate.every;
        self.is_final(epoch) || (every > 0 && epoch.is_multiple_of(every))
    }

    fn collect(&mut self, epoch: u32, listener: Listener) -> Result<()> {
        let steps = self.config.collect.steps_per_epoch;
        listener(Event::Phase {
            epoch,
            phase: "collect",
            steps,
        });
        let started = Instant::now();
        let collected = collect(
            &mut *self.env,
            &self.agent.valid(),
            &mut self.replay,
            &self.config,
            &self.device,
            &mut self.seeds.rng(epoch, Purpose::Collect),
            |done| listener(Event::Step { done }),
        );
        let mut values = vec![
            ("steps", self.replay.steps() as f64),
            ("episodes", collected.returns.len() as f64),
        ];
        if !collected.returns.is_empty() {
            let lengths = collected.lengths.iter().sum::<usize>() as f64;
            values.push(("mean_return", mean(&collected.returns)));
            values.push(("mean_length", lengths / collected.lengths.len() as f64));
        }
        self.phase_done(epoch, "collect", steps, started, &values, listener)
    }

    fn learn(
        &mut self,
        phase: Phase,
        epoch: u32,
        first_new: usize,
        listener: Listener,
    ) -> Result<(), EpochError> {
        let settings = phase.settings(&self.config);
        let steps = settings.steps_per_epoch;
        let rate = settings.rate_in(epoch, self.config.train.epochs);
        self.optimisers.of(phase).set_learning_rate(rate);
        listener(Event::Phase {
            epoch,
            phase: phase.name(),
            steps,
        });
        let started = Instant::now();
        let learned = match phase {
            Phase::Tokenizer => self.train_tokenizer(epoch, listener),
            Phase::WorldModel => self.train_world_model(epoch, first_new, listener),
            Phase::ActorCritic => self.train_actor_critic(epoch, listener),
        };
        let learned = learned.map_err(EpochError::Diverged)?;
        for warning in &learned.warnings {
            listener(Event::Note(warning));
            self.metrics.note(epoch, warning).map_err(Error::Logs)?;
        }
        self.phase_done(
            epoch,
            phase.name(),
            steps,
            started,
            &learned.values,
            listener,
        )?;
        Ok(())
    }

    fn phase_done(
        &mut self,
        epoch: u32,
        phase: &'static str,
        steps: usize,
        started: Instant,
        values: &[(&'static str, f64)],
        listener: Listener,
    ) -> Result<()> {
        let seconds = started.elapsed().as_secs_f64();
        self.metrics
            .scalars(epoch, phase, values)
            .and_then(|()| self.metrics.timing(epoch, phase, seconds, steps))
            .map_err(Error::Logs)?;
        listener(Event::PhaseDone {
            epoch,
            phase,
            steps,
            seconds,
            values,
        });
        Ok(())
    }

    fn evaluate(&mut self, epoch: u32, listener: Listener) -> Result<()> {
        let is_final = self.is_final(epoch);
        let e = &self.config.evaluate;
        let episodes = if is_final {
            e.final_episodes
        } else {
            e.episodes
        };
        listener(Event::Phase {
            epoch,
            phase: "evaluate",
            steps: episodes,
        });
        let started = Instant::now();
        let player = self.agent.valid();
        let evaluation = evaluate(
            &player,
            &self.config,
            episodes,
            &self.seeds,
            &self.device,
            |done| {
                listener(Event::Step { done });
            },
        )?;
        let world_model = burn::module::Module::valid(&self.agent.world_model);
        let showcase = Showcase {
            player: &player,
            world_model: &world_model,
            config: &self.config,
            actions: self.env.actions(),
            device: &self.device,
        };
        let dir = self.run.path().join("media");
        showcase
            .write(
                &dir,
                epoch,
                &evaluation.film,
                &self.replay,
                &mut self.seeds.rng(epoch, Purpose::Media),
            )
            .map_err(Error::File)?;
        let score = Score {
            epoch,
            steps: self.replay.steps() as u64,
            mean: evaluation.mean(),
            returns: evaluation.returns,
        };
        let lengths = evaluation.lengths.iter().sum::<usize>() as f64;
        let values = [
            ("mean_return", score.mean),
            ("mean_length", lengths / episodes as f64),
        ];
        self.phase_done(epoch, "evaluate", episodes, started, &values, listener)?;
        listener(Event::Evaluated {
            epoch,
            score: &score,
            is_final,
        });
        self.scores.push(score);
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let mut manifest = Manifest::new(self.epoch, config_crc32(&self.config));
        manifest.replay = self.chunks.clone();
        manifest.scores = self.scores.clone();
        manifest.logs = self.metrics.sync().map_err(Error::Logs)?;
        let arrays = all_arrays(&self.agent, &mut self.optimisers, &mut manifest);
        let environment = self.env.snapshot();
        Checkpoint {
            manifest,
            arrays,
            environment,
        }
        .write(self.run.path())
    }

    /// `scores.json`, always made from what the checkpoint holds.
    fn write_scores(&self) -> Result<Scores> {
        let last = self.scores.last().filter(|s| self.is_final(s.epoch));
        let scores = Scores {
            game: self.config.env.game.clone(),
            seed: self.config.seed,
            evaluations: self.scores.clone(),
            final_score: last.cloned(),
        };
        write_json(&self.run.path().join("scores.json"), &scores)?;
        Ok(scores)
    }

    /// Keeps the batch that the run could not get over.
    fn give_up(&self, epoch: u32, diverged: Diverged) -> Error {
        let dump = self
            .run
            .path()
            .join(format!("diverged-epoch-{epoch:06}.safetensors"));
        if let Err(error) =
            crate::files::write_atomic(&dump, &weights::to_safetensors(&diverged.batch))
        {
            return Error::File(error);
        }
        Error::Diverged {
            phase: diverged.phase,
            epoch,
            times: TRIES,
            what: diverged.what,
            dump,
        }
    }
}

/// Why an epoch came to no end.
enum EpochError {
    Diverged(Diverged),
    Failed(Error),
}

impl From<Error> for EpochError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
