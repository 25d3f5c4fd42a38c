//! Training: the epoch loop and its phases (paper, Algorithm 3).
//!
//! An epoch of [`Trainer::train`] collects experience, trains the tokenizer, the world model and the controller,
//! evaluates, and writes a checkpoint. [`Event`]s report progress to the caller.

mod actor_critic;
mod collect;
mod continuation;
mod env_phases;
mod env_snapshots;
pub mod eval_media;
pub mod evaluate;
mod export;
mod fork;
mod learn;
mod learners;
pub mod objective;
pub mod optimizer;
mod phase;
mod protocol;
pub mod resources;
mod setup;
mod start;
mod state;
mod test_losses;
mod tokenizer;
mod trainer;
mod training_time;
mod world_model;

pub(crate) use actor_critic::{ControllerMetrics, Learner};
pub(crate) use collect::{CollectEnv, collect};
pub use export::{Export, Exported};
pub use protocol::protocol;
pub use setup::Setup;
pub use state::{action_names, checkpoint_from_weights, load_agent, write_imported_run};
pub use trainer::Trainer;
pub use training_time::{StepTimes, TrainingTime};
pub(crate) use world_model::mean_losses;

use crate::run::Score;

/// Progress of a run, for a user interface.
#[derive(Debug)]
pub enum Event<'a> {
    /// An epoch starts, for the first time or after it diverged.
    Epoch,
    /// A phase of an epoch starts.
    Phase {
        /// The epoch.
        epoch: u32,
        /// The phase, as in the logs.
        phase: &'static str,
        /// Number of steps of the phase; number of episodes of an evaluation.
        steps: usize,
    },
    /// Steps of a phase are done. With `train.overlap_phases`, two phases run at the same time.
    Step {
        /// The phase, as in the logs.
        phase: &'static str,
        /// Number of finished steps.
        done: usize,
    },
    /// A phase is done.
    PhaseDone {
        /// The epoch.
        epoch: u32,
        /// The phase, as in the logs.
        phase: &'static str,
        /// Number of steps of the phase; number of episodes of an evaluation.
        steps: usize,
        /// Duration of the phase.
        seconds: f64,
        /// The metrics of the phase, by name.
        values: &'a [(&'static str, f64)],
    },
    /// An evaluation is done.
    Evaluated {
        /// The epoch.
        epoch: u32,
        /// The score.
        score: &'a Score,
        /// Whether this is the final evaluation.
        is_final: bool,
    },
    /// An epoch is done and its checkpoint is written.
    EpochDone {
        /// The epoch.
        epoch: u32,
        /// Duration of the epoch.
        seconds: f64,
    },
    /// A message for the user.
    Note(&'a str),
}

/// A callback that receives the events of a run, one at a time. Phases that run at the same time call it from different
/// threads.
pub type Listener<'a> = &'a mut (dyn FnMut(Event) + Send);
