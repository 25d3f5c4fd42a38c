//! The progress of a run: time per phase, and the estimated time left.

use rem_run::{Phase, TimingLine};
use serde::Serialize;

use crate::config::{Config, OptimizerConfig};

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// The epochs of the whole run.
    pub epochs: u32,
    /// The time of each phase, in the order of an epoch.
    pub phases: Vec<PhaseTime>,
    /// Estimated from past epochs. `None` before the first phase was timed.
    pub seconds_left: Option<f64>,
}

/// The time of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseTime {
    /// The name of the phase.
    pub name: &'static str,
    /// The total so far.
    pub seconds: f64,
    /// The mean over the latest epochs with this phase.
    pub seconds_per_epoch: Option<f64>,
}

/// Epochs in the estimate of a phase's duration.
const LATEST: usize = 5;

/// The most epochs that are counted one by one. Later ones are like those.
const COUNTED: u32 = 2_000;

impl Progress {
    /// The progress after the phases in `timings`. A phase that was never timed counts as 0.
    pub fn new(config: &Config, timings: &[TimingLine]) -> Self {
        Self::expecting(config, timings, &|_, _| None)
    }

    /// As [`Progress::new`], with the seconds that a phase is expected to take in an epoch, which may be wrong by a factor:
    /// phases that were timed correct the others.
    pub fn expecting(config: &Config, timings: &[TimingLine], expected: Expected) -> Self {
        let time = |phase: Phase| {
            let times: Vec<f64> = timings
                .iter()
                .filter(|t| t.phase == phase.name())
                .map(|t| t.seconds)
                .collect();
            let latest = &times[times.len().saturating_sub(LATEST)..];
            PhaseTime {
                name: phase.name(),
                seconds: times.iter().sum(),
                seconds_per_epoch: (!latest.is_empty())
                    .then(|| latest.iter().sum::<f64>() / latest.len() as f64),
            }
        };
        let phases = Phase::ALL.map(time).to_vec();
        Self {
            epochs: config.train.epochs,
            seconds_left: (!timings.is_empty()).then(|| seconds_left(config, timings, expected)),
            phases,
        }
    }
}

/// The seconds that a phase is expected to take in an epoch. `None` for a phase of which nothing is known.
pub type Expected<'a> = &'a dyn Fn(Phase, u32) -> Option<f64>;

/// The sum over all remaining phases.
fn seconds_left(config: &Config, timings: &[TimingLine], expected: Expected) -> f64 {
    let now = timings.last().map_or(1, |t| t.epoch);
    let done = |phase: Phase| {
        let is_done = |t: &TimingLine| t.epoch == now && t.phase == phase.name();
        timings.iter().any(is_done)
    };
    // What a phase takes in an epoch, in seconds or, without an expectation, in units of its usual length.
    let length = |phase, epoch| match expected(phase, epoch) {
        Some(seconds) => seconds,
        None => relative_length(config, epoch, phase),
    };
    let latest = |phase: Phase| {
        let of_phase = timings
            .iter()
            .rev()
            .filter(move |t| t.phase == phase.name());
        of_phase.take(LATEST)
    };
    // Measured and expected seconds of the phases for which both are known: how fast the machine trains.
    let mut machine = (0.0, 0.0);
    // Seconds per unit of each phase that was timed.
    let scales = Phase::ALL.map(|phase| {
        let measured: f64 = latest(phase).map(|t| t.seconds).sum();
        let lengths: f64 = latest(phase).map(|t| length(phase, t.epoch)).sum();
        // A measured step of the tokenizer resets no codes, which takes longer than the step.
        let is_measured_whole = matches!(phase, Phase::WorldModel | Phase::ActorCritic);
        if is_measured_whole && expected(phase, now).is_some() {
            machine = (machine.0 + measured, machine.1 + lengths);
        }
        (lengths > 0.0).then(|| measured / lengths)
    });
    let machine = if machine.1 > 0.0 {
        machine.0 / machine.1
    } else {
        1.0
    };
    let of_phase = |epoch: u32, phase: Phase| {
        if !is_scheduled(config, epoch, phase) || (epoch == now && done(phase)) {
            return 0.0;
        }
        let at = Phase::ALL.iter().position(|p| *p == phase);
        match scales[at.expect("all phases")] {
            Some(scale) => scale * length(phase, epoch),
            None if phase == Phase::Evaluate => expected(phase, epoch).unwrap_or(0.0),
            None => machine * expected(phase, epoch).unwrap_or(0.0),
        }
    };
    let of_epoch = |epoch: u32| -> f64 {
        let all: f64 = (Phase::ALL.into_iter())
            .map(|phase| of_phase(epoch, phase))
            .sum();
        let overlap = if config.overlaps_in(epoch) {
            let world = of_phase(epoch, Phase::Tokenizer) + of_phase(epoch, Phase::WorldModel);
            world.min(of_phase(epoch, Phase::ActorCritic))
        } else {
            0.0
        };
        all - overlap
    };
    let last = config.train.epochs.min(now.saturating_add(COUNTED));
    let left: f64 = (now..=last).map(of_epoch).sum();
    let [all, counted] = [config.train.epochs, last].map(|last| last.saturating_sub(now).max(1));
    left * f64::from(all) / f64::from(counted)
}

/// Whether the trainer runs a phase in an epoch.
fn is_scheduled(config: &Config, epoch: u32, phase: Phase) -> bool {
    let learns = |optimizer: &OptimizerConfig| optimizer.learns_in(epoch);
    match phase {
        Phase::Collect => epoch <= config.collect.epochs,
        Phase::Tokenizer => learns(&config.tokenizer.optimizer),
        Phase::WorldModel => learns(&config.world_model.optimizer),
        Phase::ActorCritic => learns(&config.actor_critic.optimizer),
        Phase::Evaluate => {
            let every = config.evaluate.every;
            epoch == config.train.epochs || (every > 0 && epoch.is_multiple_of(every))
        }
    }
}

/// The length of a phase relative to other epochs: the final evaluation has more episodes.
fn relative_length(config: &Config, epoch: u32, phase: Phase) -> f64 {
    match phase == Phase::Evaluate && epoch == config.train.epochs {
        true => config.evaluate.final_episodes as f64 / config.evaluate.episodes.max(1) as f64,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four epochs: collection in 1 to 3, tokenizer from 1, world model from 2, controller from 3; evaluations with two
    /// episodes after epoch 2 and four after epoch 4.
    fn debug() -> Config {
        Config::load("debug", &[]).unwrap()
    }

    fn timing(epoch: u32, phase: &str, seconds: f64) -> TimingLine {
        TimingLine::new(epoch, phase, seconds, 1)
    }

    #[test]
    fn time_left_is_the_sum_over_remaining_phases() {
        let timings = [
            timing(1, "collect", 1.0),
            timing(1, "tokenizer", 10.0),
            timing(2, "collect", 3.0),
            timing(2, "tokenizer", 10.0),
            timing(2, "world_model", 100.0),
            timing(2, "evaluate", 7.0),
        ];
        let progress = Progress::new(&debug(), &timings);
        // Epoch 3: collect 2, tokenizer 10, world model 100; epoch 4: tokenizer 10, world model 100, evaluate 2 x 7.
        assert_eq!(progress.seconds_left, Some(2.0 + 110.0 + 110.0 + 14.0));
        assert_eq!(progress.phases[1].seconds, 20.0);
        assert_eq!(progress.phases[3].seconds_per_epoch, None);
    }

    /// The world model starts in epoch 2 and the controller in epoch 3. The tokenizer took twice the expected time, and so
    /// will they.
    #[test]
    fn phases_that_have_not_started_take_the_expected_time() {
        let timings = [timing(1, "collect", 1.0), timing(1, "tokenizer", 10.0)];
        let expected = |phase, _| match phase {
            Phase::Tokenizer => Some(5.0),
            Phase::WorldModel => Some(50.0),
            Phase::ActorCritic => Some(20.0),
            Phase::Evaluate => Some(3.0),
            Phase::Collect => None,
        };
        let progress = Progress::expecting(&debug(), &timings, &expected);
        let (collect, tokenizer, evaluate) = (2.0 * 1.0, 3.0 * 10.0, 2.0 * 3.0);
        let (world_model, controller) = (3.0 * 50.0, 2.0 * 20.0);
        assert_eq!(
            progress.seconds_left,
            Some(collect + tokenizer + world_model + controller + evaluate)
        );
        // The machine is half as fast as expected.
        let timings = [
            timing(2, "collect", 1.0),
            timing(2, "tokenizer", 10.0),
            timing(2, "world_model", 100.0),
        ];
        let progress = Progress::expecting(&debug(), &timings, &expected);
        let (collect, tokenizer) = (1.0, 2.0 * 10.0);
        let (world_model, controller) = (2.0 * 100.0, 2.0 * 40.0);
        assert_eq!(
            progress.seconds_left,
            Some(collect + tokenizer + world_model + controller + evaluate)
        );
    }

    /// What a phase takes grows with the replay as expected, from what it took.
    #[test]
    fn measured_phases_grow_as_expected() {
        let timings = [
            timing(2, "world_model", 6.0),
            timing(3, "world_model", 12.0),
        ];
        let expected = |phase, epoch| (phase == Phase::WorldModel).then(|| f64::from(epoch));
        let progress = Progress::expecting(&debug(), &timings, &expected);
        assert_eq!(progress.seconds_left, Some(4.0 * 18.0 / 5.0));
    }

    #[test]
    fn long_runs_are_not_counted_epoch_by_epoch() {
        let set = ["train.epochs=4000000000", "evaluate.every=0"].map(String::from);
        let config = Config::load("debug", &set).unwrap();
        let timings = [timing(5, "tokenizer", 2.0)];
        let left = Progress::new(&config, &timings).seconds_left.unwrap();
        assert!((left / 8e9 - 1.0).abs() < 1e-3, "{left}");
    }

    #[test]
    fn phases_that_overlap_count_once() {
        let config = Config::load("debug", &["train.overlap_phases=true".into()]).unwrap();
        let timings = [
            timing(3, "collect", 1.0),
            timing(3, "tokenizer", 10.0),
            timing(3, "world_model", 100.0),
            timing(3, "actor_critic", 70.0),
        ];
        // Epoch 4: the controller's 70 seconds are within the 110 of the others. The evaluation was never timed.
        let left = |config: &Config| Progress::new(config, &timings).seconds_left;
        assert_eq!(left(&config), Some(110.0));
        assert_eq!(left(&debug()), Some(180.0));
    }

    #[test]
    fn finished_phases_of_the_current_epoch_do_not_count() {
        let timings = [timing(4, "tokenizer", 5.0), timing(4, "world_model", 1.0)];
        assert_eq!(Progress::new(&debug(), &timings).seconds_left, Some(0.0));
        let timings = [timing(3, "world_model", 5.0), timing(4, "tokenizer", 5.0)];
        assert_eq!(Progress::new(&debug(), &timings).seconds_left, Some(5.0));
        assert_eq!(Progress::new(&debug(), &[]).seconds_left, None);
    }
}
