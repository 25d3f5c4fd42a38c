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

impl Progress {
    /// The progress after the phases in `timings`.
    pub fn new(config: &Config, timings: &[TimingLine]) -> Self {
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
            seconds_left: (!timings.is_empty()).then(|| seconds_left(config, timings, &phases)),
            phases,
        }
    }
}

/// The sum over all remaining phases. A phase that was never timed counts as 0.
fn seconds_left(config: &Config, timings: &[TimingLine], times: &[PhaseTime]) -> f64 {
    let now = timings.last().map_or(1, |t| t.epoch);
    let done = |phase: Phase| {
        let is_done = |t: &TimingLine| t.epoch == now && t.phase == phase.name();
        timings.iter().any(is_done)
    };
    let of_phase = |epoch: u32, phase: Phase| {
        let runs = is_scheduled(config, epoch, phase) && (epoch > now || !done(phase));
        let time = times.iter().find(|time| runs && time.name == phase.name());
        let seconds = time.and_then(|time| time.seconds_per_epoch);
        seconds.unwrap_or(0.0) * relative_length(config, epoch, phase)
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
    (now..=config.train.epochs).map(of_epoch).sum()
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
