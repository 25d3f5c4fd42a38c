//! Run directories: checkpoints, logs, and imported weights.
//!
//! The files that other programs read are defined in [`rem_run`].

pub mod checkpoint;
mod dir;
pub mod import;
pub(crate) mod metrics;
mod progress;
mod protobuf;
mod recorded;
pub mod trackers;

pub use dir::{RunDir, read_config, read_protocol};
pub use progress::{Expected, PhaseTime, Progress};
pub use recorded::recorded_episodes;
pub use rem_run::{Protocol, Score, Scores, write_json};
