//! Estimates how long a run trains, from training steps that are measured before it starts.

mod steps;

use std::fmt::{self, Display, Formatter};

use super::phase::Phase;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::model::tokenizer::lpips::Lpips;
use steps::{Steps, Work};

/// Runs below this many seconds are short: their user waits for them.
const SHORT: f64 = 600.0;
/// Seconds for which a step of each component is measured.
const BUDGET: f64 = 1.0;
/// Steps of small models vary: this many are measured, …
const REPEATS: usize = 5;
/// … within this many seconds.
const SHORT_STEPS: f64 = 0.1;

/// Estimated seconds of training in a run, by component. Playing, in collection and evaluation, is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainingTime {
    /// The tokenizer's steps.
    pub tokenizer: f64,
    /// The world model's steps, and the encoding of their frames.
    pub world_model: f64,
    /// The controller's steps, with imagination and the encoding of frames that are not cached.
    pub actor_critic: f64,
    /// Seconds in which the controller learns at the same time as the others.
    pub overlap: f64,
}

impl TrainingTime {
    /// Measures steps and adds them up over the run ([`StepTimes::measure`]). `None` for runs of less than about ten minutes.
    ///
    /// # Errors
    ///
    /// If the config's device is not available.
    pub fn measure(config: &Config, lpips: Option<&Lpips>) -> Result<Option<Self>> {
        Ok(StepTimes::measure(config, lpips)?.over_a_long_run(config))
    }

    /// The duration: all components together, less the time in which they overlap.
    pub fn total(&self) -> f64 {
        self.tokenizer + self.world_model + self.actor_critic - self.overlap
    }

    /// The same with the controller beside the others. The rest of the longer side, which then has all threads, counts
    /// like the part before: this is an upper bound.
    fn overlapped(self) -> Self {
        Self {
            overlap: self.actor_critic.min(self.tokenizer + self.world_model),
            ..self
        }
    }

    fn add(&mut self, other: Self, times: f64) {
        self.tokenizer += times * other.tokenizer;
        self.world_model += times * other.world_model;
        self.actor_critic += times * other.actor_critic;
        self.overlap += times * other.overlap;
    }
}

/// `about 16 days (tokenizer 1.6 days, world model 11 days, controller 3.7 days)`, and `, 3.5 days of them at the same time`
/// before the last parenthesis if phases overlap.
impl Display for TrainingTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "about {} (tokenizer {}, world model {}, controller {}",
            rounded(self.total()),
            rounded(self.tokenizer),
            rounded(self.world_model),
            rounded(self.actor_critic)
        )?;
        if self.overlap > 0.0 {
            write!(f, ", {} of them at the same time", rounded(self.overlap))?;
        }
        f.write_str(")")
    }
}

/// Runs `work` on half of the threads, the share of each side when phases overlap.
fn on_half_of_the_threads<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R> {
    let threads = rayon::current_num_threads().div_ceil(2);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::Device {
        message: format!("cannot start {threads} threads: {e}"),
        hint: "try `--threads 1`".into(),
    })?;
    Ok(pool.install(work))
}

/// A duration with two digits, in minutes, hours or days.
fn rounded(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    let (value, unit) = match minutes {
        ..90.0 => return format!("{minutes:.0} min"),
        ..2880.0 => (minutes / 60.0, "h"),
        _ => (minutes / 1440.0, "days"),
    };
    // 9.96 would be printed as 10.0.
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {unit}")
}

/// Measured durations of training steps.
#[derive(Clone, Copy, Debug)]
pub struct StepTimes {
    /// On all threads.
    pub alone: Seconds,
    /// On the threads of one side, if phases overlap.
    pub beside: Option<Seconds>,
}

/// Seconds of a step of each phase at the run's batch sizes, and of encoding a frame.
#[derive(Clone, Copy, Debug)]
pub struct Seconds {
    /// A step of the tokenizer.
    pub tokenizer: f64,
    /// A step of the world model.
    pub world_model: f64,
    /// A step of the controller, with imagination.
    pub actor_critic: f64,
    /// The encoding of a frame.
    pub frame: f64,
}

impl StepTimes {
    /// Measures steps at the run's model sizes on its device. On the CPU, batches of large models are small and times are
    /// scaled, so that it takes a few seconds. Other devices run whole batches.
    ///
    /// Uses an agent and random numbers of its own, so that the run does not depend on it.
    ///
    /// # Errors
    ///
    /// If the config's device is not available.
    pub fn measure(config: &Config, lpips: Option<&Lpips>) -> Result<Self> {
        let mut steps = Steps::new(config, lpips)?;
        // On other devices a batch takes hardly longer than a part of it.
        let smallest = |full: usize| if config.device == "flex" { 1 } else { full };
        let mut one = |work: Work, full: usize| {
            let batch = smallest(full);
            // The first time also compiles kernels and fills caches.
            steps.seconds(work, batch);
            steps.seconds(work, batch) / batch as f64
        };
        // A batch of one takes longer than its share of a larger batch.
        let rough = Seconds::of(config, &mut one);
        let mut several = |work: Work, full: usize| {
            let known = rough.of_one(config, work);
            let batch = smallest(full).max(batch_within(BUDGET, known, full));
            let first = steps.seconds(work, batch);
            if first > BUDGET {
                return first / batch as f64;
            }
            // The first time of a batch size fills caches, which takes several times as long as a small step.
            let mut measured = Vec::new();
            while measured.is_empty()
                || measured.len() < REPEATS && measured.iter().sum::<f64>() < SHORT_STEPS
            {
                measured.push(steps.seconds(work, batch));
            }
            measured.iter().sum::<f64>() / (measured.len() * batch) as f64
        };
        let alone = Seconds::of(config, &mut several);
        let overlaps = config.train.overlap_phases && config.device == "flex";
        let beside = match overlaps && rayon::current_num_threads() > 1 {
            true => Some(on_half_of_the_threads(|| {
                // The first time also fills caches of these threads.
                Seconds::of(config, &mut several);
                Seconds::of(config, &mut several)
            })?),
            false => None,
        };
        Ok(Self { alone, beside })
    }

    /// The time of training over a run. `None` for runs of less than about ten minutes.
    pub fn over_a_long_run(&self, config: &Config) -> Option<TrainingTime> {
        Some(self.over_the_run(config)).filter(|time| time.total() >= SHORT)
    }

    /// The expected seconds of a training phase in an epoch of a run that starts with a replay of `recorded` steps. `None`
    /// for the other phases.
    pub fn of_phase(
        &self,
        config: &Config,
        recorded: usize,
        phase: rem_run::Phase,
        epoch: u32,
    ) -> Option<f64> {
        let epochs = u64::from(epoch.min(config.collect.epochs));
        let collected = epochs * config.collect.steps_per_epoch as u64;
        let seconds = self.beside.filter(|_| config.overlaps_in(epoch));
        let seconds = seconds.unwrap_or(self.alone);
        let time = seconds.of_epoch(config, epoch, recorded as f64 + collected as f64);
        match phase {
            rem_run::Phase::Tokenizer => Some(time.tokenizer),
            rem_run::Phase::WorldModel => Some(time.world_model),
            rem_run::Phase::ActorCritic => Some(time.actor_critic),
            rem_run::Phase::Collect | rem_run::Phase::Evaluate => None,
        }
    }

    /// The time of all epochs.
    fn over_the_run(&self, config: &Config) -> TrainingTime {
        let changes = Phase::ALL.map(|phase| {
            let settings = phase.settings(config);
            settings.start_after.max(settings.stop_after)
        });
        // Later epochs are equal.
        let last_change = changes.into_iter().fold(config.collect.epochs, u32::max);
        let (mut total, mut replay) = (TrainingTime::default(), 0.0);
        for epoch in 1..=config.train.epochs {
            if epoch <= config.collect.epochs {
                replay += config.collect.steps_per_epoch as f64;
            }
            let time = match self.beside.filter(|_| config.overlaps_in(epoch)) {
                Some(beside) => beside.of_epoch(config, epoch, replay).overlapped(),
                None => self.alone.of_epoch(config, epoch, replay),
            };
            if epoch > last_change {
                total.add(time, f64::from(config.train.epochs - epoch) + 1.0);
                break;
            }
            total.add(time, 1.0);
        }
        total
    }
}

impl Seconds {
    /// From the seconds of one element of a batch, which `of_one` measures given the size of whole batches.
    fn of(config: &Config, of_one: &mut dyn FnMut(Work, usize) -> f64) -> Self {
        let mut step = |phase: Phase| {
            let full = phase.settings(config).batch_size;
            of_one(Work::Step(phase), full) * full as f64
        };
        Self {
            tokenizer: step(Phase::Tokenizer),
            world_model: step(Phase::WorldModel),
            actor_critic: step(Phase::ActorCritic),
            frame: of_one(Work::Encode, ENCODED),
        }
    }

    /// Seconds of one element of a batch.
    fn of_one(&self, config: &Config, work: Work) -> f64 {
        let (seconds, phase) = match work {
            Work::Step(Phase::Tokenizer) => (self.tokenizer, Phase::Tokenizer),
            Work::Step(Phase::WorldModel) => (self.world_model, Phase::WorldModel),
            Work::Step(Phase::ActorCritic) => (self.actor_critic, Phase::ActorCritic),
            Work::Encode => return self.frame,
        };
        seconds / phase.settings(config).batch_size as f64
    }

    /// The time of an epoch with a replay of so many frames. Each frame is encoded when it is first sampled.
    fn of_epoch(&self, config: &Config, epoch: u32, replay: f64) -> TrainingTime {
        let steps = |phase: Phase| {
            let settings = phase.settings(config);
            let learns = settings.learns_in(epoch);
            if learns {
                settings.steps_per_epoch as f64
            } else {
                0.0
            }
        };
        let sampled = |phase: Phase, length: usize| {
            steps(phase) * phase.settings(config).batch_size as f64 * length as f64
        };
        let of_world_model = sampled(Phase::WorldModel, config.train.horizon);
        let of_controller = sampled(Phase::ActorCritic, config.actor_critic.burn_in + 1);
        let first = distinct(of_world_model, replay);
        let then = distinct(of_world_model + of_controller, replay) - first;
        TrainingTime {
            tokenizer: steps(Phase::Tokenizer) * self.tokenizer,
            world_model: steps(Phase::WorldModel) * self.world_model + first * self.frame,
            actor_critic: steps(Phase::ActorCritic) * self.actor_critic + then * self.frame,
            overlap: 0.0,
        }
    }
}

/// Expected number of different frames among `draws` from `frames`.
fn distinct(draws: f64, frames: f64) -> f64 {
    if frames == 0.0 {
        return 0.0;
    }
    frames * (1.0 - (-draws / frames).exp())
}

/// The batch size, from 2 to `full`, that takes about `seconds`, if one element takes `of_one`.
fn batch_within(seconds: f64, of_one: f64, full: usize) -> usize {
    ((seconds / of_one) as usize).max(2).min(full)
}

/// The largest number of frames that are encoded at once to measure it.
const ENCODED: usize = 64;

#[cfg(test)]
mod tests;
