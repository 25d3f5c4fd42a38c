//! The controller, trained in the game instead of in dreams.

use std::collections::BTreeMap;

use burn::module::Module;
use rand::{Rng, RngExt};
use serde::Serialize;

use super::held_out::GameState;
use super::simulation::Simulator;
use super::{Estimate, HeldOut, Progress, Subject, TokenizerResult};
use crate::config::OptimizerConfig;
use crate::error::{Error, Result};
use crate::model::actor_critic::ActorCritic;
use crate::model::agent::{Agent, Player};
use crate::seeds::Purpose;
use crate::train::evaluate::evaluate;
use crate::train::objective::ControllerObjective;
use crate::train::optimizer::{AdamW, DecayGroup, NotFinite};
use crate::train::{ControllerMetrics, Learner};

/// Share of the way from the random to the scripted player, below which a controller plays badly.
const GOOD: f64 = 0.7;
/// Difference of scores, relative to the way from the random to the best player, from which on it matters.
const LARGE_GAP: f64 = 0.1;

/// How to train the controller in the game.
#[derive(Clone, Debug)]
pub struct GameTraining {
    /// Episodes of each evaluation.
    pub episodes: usize,
    /// The epochs in which the controller learns.
    epochs: Vec<u32>,
    updates: usize,
    updates_in_dreams: usize,
}

impl GameTraining {
    /// The training that the controller of a run had up to `epoch`. `updates` is another number of updates, divided among
    /// its epochs.
    ///
    /// # Errors
    ///
    /// If the controller had none.
    pub fn new(
        optimizer: &OptimizerConfig,
        epoch: u32,
        updates: Option<usize>,
        episodes: usize,
    ) -> Result<Self> {
        let epochs = (1..=epoch).filter(|epoch| optimizer.learns_in(*epoch));
        let epochs: Vec<u32> = epochs.collect();
        if epochs.is_empty() {
            return Err(Error::ControllerNotTrained {
                epoch,
                starts_after: optimizer.start_after,
            });
        }
        let updates_in_dreams = epochs.len() * optimizer.steps_per_epoch;
        Ok(Self {
            episodes,
            updates: updates.unwrap_or(updates_in_dreams),
            updates_in_dreams,
            epochs,
        })
    }

    /// Updates in the `i`-th of the epochs.
    fn updates_in(&self, i: usize) -> usize {
        let until = |i: usize| self.updates * i / self.epochs.len();
        until(i + 1) - until(i)
    }
}

/// Scores of the same controller, trained in dreams and in the game.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerResult {
    /// Updates in the game.
    pub updates: usize,
    /// Updates of the agent's controller.
    pub updates_in_dreams: usize,
    /// Episodes of each evaluation.
    pub episodes: usize,
    /// Score of the agent.
    pub with_dreams: Estimate,
    /// Score of the controller that was trained in the game.
    pub in_the_game: Estimate,
    /// Metrics of the last epoch in the game.
    pub last_epoch: BTreeMap<&'static str, f64>,
}

impl Subject<'_> {
    /// Trains a new controller with the settings, the initial weights and the tokenizer of the run. Its rollouts are made in
    /// the game. They start from states of held-out play, which goes on with the new controller: in each epoch that collects
    /// experience, it plays as many steps.
    ///
    /// Two things differ from dreams: steps after a termination have no loss, because there is nothing to predict, and
    /// there is no curiosity.
    ///
    /// # Errors
    ///
    /// If an environment fails, or training diverges.
    pub fn controller(
        &self,
        mut play: HeldOut,
        training: &GameTraining,
        progress: Progress,
    ) -> Result<ControllerResult> {
        let (player, last_epoch) = self.train_in_game(&mut play, training, progress)?;
        let score = |player: &Player| -> Result<Estimate> {
            let (episodes, seeds) = (training.episodes, self.seeds());
            let (envs, device) = (self.envs, self.device);
            let played = evaluate(player, self.config, envs, episodes, &seeds, device, |_| ())?;
            let returns: Vec<f64> = played.returns.iter().map(|r| f64::from(*r)).collect();
            Ok(Estimate::of(&returns))
        };
        Ok(ControllerResult {
            updates: training.updates,
            updates_in_dreams: training.updates_in_dreams,
            episodes: training.episodes,
            with_dreams: score(&self.agent.valid())?,
            in_the_game: score(&player)?,
            last_epoch,
        })
    }

    /// As the training phase, with another source of rollouts.
    fn train_in_game(
        &self,
        play: &mut HeldOut,
        training: &GameTraining,
        progress: Progress,
    ) -> Result<(Player, BTreeMap<&'static str, f64>)> {
        let mut config = self.config.actor_critic.clone();
        config.mask_after_termination = true;
        let mut controller = self.initial_controller()?;
        let mut objective = ControllerObjective::new(&config, &controller);
        let mut optimizer = AdamW::new(&config.optimizer, &self.config.train, DecayGroup::All);
        let batch_size = config.optimizer.batch_size;
        let mut simulator = Simulator::new(self, batch_size)?;
        let player = |controller: &ActorCritic| Player {
            actor_critic: controller.valid(),
            ..self.agent.valid()
        };
        let (mut done, mut last_epoch) = (0, BTreeMap::new());
        for (i, epoch) in training.epochs.iter().enumerate() {
            let epochs = self.config.train.epochs;
            optimizer.set_learning_rate(config.optimizer.learning_rate_in(*epoch, epochs));
            if *epoch <= self.config.collect.epochs {
                let steps = self.config.collect.steps_per_epoch;
                play.extend(&player(&controller), steps, &mut |_, _| ())?;
            }
            let mut rng = self.seeds().rng(*epoch, Purpose::Diagnosis);
            let mut metrics = ControllerMetrics::default();
            for _ in 0..training.updates_in(i) {
                let states = drawn(play, batch_size, &mut rng);
                let player = player(&controller);
                let rollout = simulator.roll_out(self, &player, play, &states, &mut rng)?;
                let learner = Learner {
                    controller: &mut controller,
                    optimizer: &mut optimizer,
                    objective: &mut objective,
                };
                let updated = learner.update(rollout, &config, &mut metrics);
                updated.map_err(|NotFinite(what)| Error::DivergedInGame { what })?;
                done += 1;
                progress(done, training.updates);
            }
            last_epoch = metrics.take().into_iter().collect();
        }
        Ok((player(&controller), last_epoch))
    }

    /// The controller that the run started from.
    fn initial_controller(&self) -> Result<ActorCritic> {
        let actions = self.envs.spaces()?.action.count();
        let device = self.device.clone().autodiff();
        Ok(Agent::new(self.config, actions, &self.seeds(), &device).actor_critic)
    }
}

/// States of held-out play, uniformly with replacement.
fn drawn(play: &HeldOut, count: usize, rng: &mut impl Rng) -> Vec<GameState> {
    let states = play.states();
    assert!(!states.is_empty(), "held-out play has states");
    (0..count)
        .map(|_| states[rng.random_range(0..states.len())].clone())
        .collect()
}

impl ControllerResult {
    /// What the scores mean. `random` and `scripted` are those of the random and the scripted player.
    pub fn verdict(
        &self,
        tokenizer: &TokenizerResult,
        random: f64,
        scripted: Option<f64>,
    ) -> String {
        let (dreams, game) = (self.with_dreams, self.in_the_game);
        let best = game.mean.max(dreams.mean).max(scripted.unwrap_or(random));
        let gap = game.minus(dreams);
        let large = gap.mean.abs() > LARGE_GAP * (best - random);
        let scores = format!("{:.2} instead of {:.2}", game.mean, dreams.mean);
        let good = random + GOOD * (scripted.unwrap_or(f64::NAN) - random);
        if gap.is_positive() && large {
            return format!(
                "The world model limits the agent: trained in the game, the controller scores {scores}."
            );
        }
        if self.updates < self.updates_in_dreams && gap.mean < 0.0 {
            return format!(
                "No verdict: with {} instead of {} updates, the controller trained in the game scores {scores}.",
                self.updates, self.updates_in_dreams
            );
        }
        if dreams.minus(game).is_positive() && large {
            return format!(
                "Not the world model: trained in the game, the controller scores less, {scores}."
            );
        }
        let is_bad = game.mean.max(dreams.mean) < good;
        if is_bad && tokenizer.loses_information() {
            return format!(
                "The tokenizer may limit the agent: even trained in the game, the controller scores {scores}."
            );
        }
        if is_bad {
            return format!(
                "The controller limits the agent: even trained in the game, it scores {scores}."
            );
        }
        format!(
            "Not the world model: trained in the game, the controller scores about the same, {scores}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn training(epoch: u32, updates: Option<usize>) -> Result<GameTraining> {
        let set = ["start_after=2", "stop_after=5", "steps_per_epoch=80"];
        let set = set.map(|value| format!("actor_critic.optimizer.{value}"));
        let optimizer = Config::load("quick", &set).unwrap().actor_critic.optimizer;
        GameTraining::new(&optimizer, epoch, updates, 1)
    }

    #[test]
    fn updates_are_those_of_the_run_or_divided_among_its_epochs() {
        let whole = training(28, None).unwrap();
        assert_eq!(whole.epochs, [3, 4, 5]);
        assert_eq!((whole.updates, whole.updates_in(2)), (240, 80));
        let earlier = training(4, None).unwrap();
        assert_eq!((earlier.epochs.len(), earlier.updates), (2, 160));
        let few = training(28, Some(7)).unwrap();
        let updates: Vec<usize> = (0..3).map(|i| few.updates_in(i)).collect();
        assert_eq!(updates, [2, 2, 3]);
        let error = training(2, None).unwrap_err();
        assert!(error.hint().unwrap().contains("after epoch 2"));
    }

    #[test]
    fn the_verdict_compares_with_the_game_and_with_the_scripted_player() {
        let tokenizer = |explained_variance| TokenizerResult {
            explained_variance,
            ..TokenizerResult::default()
        };
        let result = |dreams, game| {
            let estimate = |mean| Estimate { mean, margin: 0.5 };
            ControllerResult {
                updates: 100,
                updates_in_dreams: 100,
                episodes: 9,
                with_dreams: estimate(dreams),
                in_the_game: estimate(game),
                last_epoch: BTreeMap::new(),
            }
        };
        let verdict = |result: ControllerResult, explained_variance| {
            result.verdict(&tokenizer(explained_variance), 1.0, Some(20.0))
        };
        let of = |dreams, game| verdict(result(dreams, game), 0.99);
        assert!(of(5.0, 15.0).starts_with("The world model limits"));
        assert!(of(5.0, 5.2).starts_with("The controller limits"));
        assert!(verdict(result(5.0, 5.2), 0.5).starts_with("The tokenizer may limit"));
        assert!(of(19.0, 19.3).contains("about the same"));
        assert!(of(19.0, 12.0).contains("scores less"));
        // Beyond the interval, but small.
        assert!(of(18.0, 19.0).contains("about the same"));
        // A shorter training proves something only if its score is higher.
        let short = |dreams, game| {
            let result = ControllerResult {
                updates: 30,
                ..result(dreams, game)
            };
            verdict(result, 0.99)
        };
        assert!(short(19.0, 12.0).starts_with("No verdict: with 30 instead of 100 updates"));
        assert!(short(5.0, 15.0).starts_with("The world model limits"));
    }
}
