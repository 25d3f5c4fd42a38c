//! The phases of an epoch that play in the environment: collection and evaluation.

use std::time::Instant;

use burn::module::Module;
use rem_run::{Phase, layout};

use super::collect::collect;
use super::eval_media::EvalMedia;
use super::evaluate::{evaluate, mean};
use super::trainer::Trainer;
use super::{Event, Listener};
use crate::error::{Error, Result};
use crate::run::Score;
use crate::seeds::Purpose;

impl Trainer {
    /// Collects experience into the replay.
    pub(super) fn collect(&mut self, epoch: u32, listener: Listener) -> Result<()> {
        let steps = self.config.collect.steps_per_epoch;
        listener(Event::Phase {
            epoch,
            phase: Phase::Collect.name(),
            steps,
        });
        let started = Instant::now();
        let collected = collect(
            &mut self.collect_envs,
            &self.agent.valid(),
            &mut self.replay,
            &self.config,
            &self.device,
            &mut self.seeds.rng(epoch, Purpose::Collect),
            |done| {
                listener(Event::Step {
                    phase: Phase::Collect.name(),
                    done,
                })
            },
        )?;
        let mut values = vec![
            ("steps", self.replay.steps() as f64),
            ("episodes", collected.returns.len() as f64),
        ];
        if !collected.returns.is_empty() {
            let lengths = collected.lengths.iter().sum::<usize>() as f64;
            values.push(("mean_return", mean(&collected.returns)));
            values.push(("mean_length", lengths / collected.lengths.len() as f64));
        }
        self.phase_done(
            epoch,
            Phase::Collect.name(),
            steps,
            started,
            &values,
            listener,
        )
    }

    /// Evaluates the agent, keeps the score, computes the world model's losses on the episodes, and writes images of the
    /// first one.
    pub(super) fn evaluate(&mut self, epoch: u32, listener: Listener) -> Result<()> {
        let is_final = self.is_final(epoch);
        let e = &self.config.evaluate;
        let episodes = if is_final {
            e.final_episodes
        } else {
            e.episodes
        };
        listener(Event::Phase {
            epoch,
            phase: Phase::Evaluate.name(),
            steps: episodes,
        });
        let started = Instant::now();
        let player = self.agent.valid();
        let evaluation = evaluate(
            &player,
            &self.config,
            &self.envs,
            episodes,
            &self.seeds,
            &self.device,
            |done| {
                listener(Event::Step {
                    phase: Phase::Evaluate.name(),
                    done,
                });
            },
        )?;
        let world_model = self.agent.world_model.valid();
        let eval_media = EvalMedia {
            player: &player,
            world_model: &world_model,
            config: &self.config,
            actions: self.spaces.action.names(),
            device: &self.device,
        };
        let dir = self.run.path().join(layout::MEDIA);
        eval_media
            .write(
                &dir,
                epoch,
                &evaluation.recording,
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
        let mut values = vec![
            ("mean_return", score.mean),
            ("mean_length", lengths / episodes as f64),
        ];
        values.extend(self.test_losses(&player.tokenizer, &world_model, evaluation.test_episodes));
        self.phase_done(
            epoch,
            Phase::Evaluate.name(),
            episodes,
            started,
            &values,
            listener,
        )?;
        listener(Event::Evaluated {
            epoch,
            score: &score,
            is_final,
        });
        self.scores.push(score);
        Ok(())
    }
}
