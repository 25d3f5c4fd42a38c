//! `rem train --log`: where the metrics of a run go besides its logs.

use anyhow::Result;
use clap::ValueEnum;
use rem::Error;
use rem::config::ConfigError;
use rem::run::RunDir;
use rem::run::trackers::{State, Tracker, Trackers};
use rem::train::{Event, Trainer};

use crate::print;

/// The values of `--log`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogTo {
    /// Events for TensorBoard
    Tensorboard,
    /// metrics.csv
    Csv,
    /// An offline run of Weights & Biases
    Wandb,
    /// A run in a file store of MLflow
    Mlflow,
    /// Nothing besides metrics.jsonl
    None,
}

impl LogTo {
    /// The trackers of `--log`; `None` without it.
    pub fn trackers(all: &[Self]) -> Result<Option<Vec<Tracker>>> {
        if all.len() > 1 && all.contains(&Self::None) {
            return Err(Error::from(ConfigError::new(
                "`--log none` is for nothing else",
                "name the others alone, such as `--log csv,mlflow`",
            ))
            .into());
        }
        let tracker = |log: &Self| match log {
            Self::Tensorboard => Some(Tracker::Tensorboard),
            Self::Csv => Some(Tracker::Csv),
            Self::Wandb => Some(Tracker::Wandb),
            Self::Mlflow => Some(Tracker::Mlflow),
            Self::None => None,
        };
        let trackers = all.iter().filter_map(tracker).collect();
        Ok((!all.is_empty()).then_some(trackers))
    }
}

/// Records the choice of trackers, if there is one, and turns TensorBoard on or off.
pub fn choose(run: RunDir, log: Option<Vec<Tracker>>) -> Result<RunDir> {
    let mut state = State::read(run.path())?;
    if let Some(log) = log {
        state.log = log;
        state.write(run.path())?;
    }
    Ok(run.with_tensorboard(state.log.contains(&Tracker::Tensorboard)))
}

/// Passes an event to the trackers, and returns their messages.
pub fn follow(trackers: &mut Trackers, event: &Event) -> Vec<String> {
    match *event {
        Event::Epoch => trackers.start_epoch(),
        Event::PhaseDone {
            phase,
            seconds,
            values,
            ..
        } => trackers.phase_done(phase, seconds, values),
        Event::EpochDone { epoch, .. } => return trackers.epoch_done(epoch),
        _ => {}
    }
    Vec::new()
}

/// The files of the trackers that the run has chosen, with the epochs up to its checkpoint.
pub fn open(trainer: &Trainer) -> Result<Trackers> {
    let dir = trainer.run_dir();
    let state = State::read(dir)?;
    let trackers = Trackers::open(dir, &state, trainer.epoch(), None)?;
    for path in trackers.paths() {
        print::message(format_args!("metrics also in {}", path.display()));
    }
    Ok(trackers)
}
