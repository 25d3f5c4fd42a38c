//! How far a run is, where its time goes, and when it will end.

use rem::config::{Config, Optimise};
use serde::{Deserialize, Serialize};

/// A line of `timing.jsonl`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Timing {
    pub epoch: u32,
    pub phase: String,
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    pub epochs: u32,
    pub phases: Vec<Phase>,
    /// Until the end, as far as past epochs tell; none before anything was timed.
    pub seconds_left: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    pub name: &'static str,
    /// Over the whole run so far.
    pub seconds: f64,
    /// Of the latest epochs that had the phase.
    pub seconds_an_epoch: Option<f64>,
}

/// How many of its latest times stand for a phase's next ones.
const LATEST: usize = 5;

const PHASES: [&str; 5] = [
    "collect",
    "tokenizer",
    "world_model",
    "actor_critic",
    "evaluate",
];

impl Progress {
    pub fn of(config: &Config, timings: &[Timing]) -> Self {
        let phase = |name| {
            let times: Vec<f64> = timings
                .iter()
                .filter(|t| t.phase == name)
                .map(|t| t.seconds)
                .collect();
            let latest = &times[times.len().saturating_sub(LATEST)..];
            Phase {
                name,
                seconds: times.iter().sum(),
                seconds_an_epoch: (!latest.is_empty())
                    .then(|| latest.iter().sum::<f64>() / latest.len() as f64),
            }
        };
        let phases = PHASES.map(phase).to_vec();
        Self {
            epochs: config.train.epochs,
            seconds_left: (!timings.is_empty()).then(|| seconds_left(config, timings, &phases)),
            phases,
        }
    }
}

/// The times of all phases that are still to come. One that has not been timed yet counts as nothing.
fn seconds_left(config: &Config, timings: &[Timing], phases: &[Phase]) -> f64 {
    let now = timings.last().map_or(1, |t| t.epoch);
    let done = |epoch, name: &str| timings.iter().any(|t| t.epoch == epoch && t.phase == name);
    let mut left = 0.0;
    for epoch in now..=config.train.epochs {
        for phase in phases
            .iter()
            .filter(|phase| happens(config, epoch, phase.name))
        {
            if epoch > now || !done(epoch, phase.name) {
                left += phase.seconds_an_epoch.unwrap_or(0.0) * size(config, epoch, phase.name);
            }
        }
    }
    left
}

/// Whether an epoch has a phase, as the trainer decides.
fn happens(config: &Config, epoch: u32, phase: &str) -> bool {
    let learns = |optimise: &Optimise| optimise.learns_in(epoch);
    match phase {
        "collect" => epoch <= config.collect.epochs,
        "tokenizer" => learns(&config.tokenizer.optimise),
        "world_model" => learns(&config.world_model.optimise),
        "actor_critic" => learns(&config.actor_critic.optimise),
        _ => {
            let every = config.evaluate.every;
            epoch == config.train.epochs || (every > 0 && epoch.is_multiple_of(every))
        }
    }
}

/// How much longer a phase is in an epoch than usual: the last evaluation has more episodes.
fn size(config: &Config, epoch: u32, phase: &str) -> f64 {
    match phase == "evaluate" && epoch == config.train.epochs {
        true => config.evaluate.final_episodes as f64 / config.evaluate.episodes.max(1) as f64,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four epochs, collecting in three; tokenizer from 1, world model from 2, controller from 3 on; two episodes after
    /// epoch 2, four after epoch 4.
    fn debug() -> Config {
        Config::load("debug", &[]).unwrap()
    }

    fn timing(epoch: u32, phase: &str, seconds: f64) -> Timing {
        Timing {
            epoch,
            phase: phase.into(),
            seconds,
        }
    }

    #[test]
    fn what_is_left_is_added_up_phase_by_phase() {
        let timings = [
            timing(1, "collect", 1.0),
            timing(1, "tokenizer", 10.0),
            timing(2, "collect", 3.0),
            timing(2, "tokenizer", 10.0),
            timing(2, "world_model", 100.0),
            timing(2, "evaluate", 7.0),
        ];
        let progress = Progress::of(&debug(), &timings);
        // Epoch 3: collect 2, tokenizer 10, world model 100; epoch 4: tokenizer 10, world model 100, evaluate 2 x 7.
        assert_eq!(progress.seconds_left, Some(2.0 + 110.0 + 110.0 + 14.0));
        assert_eq!(progress.phases[1].seconds, 20.0);
        assert_eq!(progress.phases[3].seconds_an_epoch, None);
    }

    #[test]
    fn in_the_middle_of_an_epoch_only_what_is_not_done_counts() {
        let timings = [timing(4, "tokenizer", 5.0), timing(4, "world_model", 1.0)];
        assert_eq!(Progress::of(&debug(), &timings).seconds_left, Some(0.0));
        let timings = [timing(3, "world_model", 5.0), timing(4, "tokenizer", 5.0)];
        assert_eq!(Progress::of(&debug(), &timings).seconds_left, Some(5.0));
        assert_eq!(Progress::of(&debug(), &[]).seconds_left, None);
    }
}
