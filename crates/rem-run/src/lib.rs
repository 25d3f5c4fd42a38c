//! The run directory: the interface between training and everything that reads its results.
//!
//! `rem train` writes a run directory; `rem report` and `rem watch` read it. This crate defines its files:
//!
//! | file | content | type |
//! | --- | --- | --- |
//! | [`layout::CONFIG`] | the config of the run | `rem::config::Config` |
//! | [`layout::PROTOCOL`] | what the scores mean | [`Protocol`], [`ProtocolValues`] |
//! | [`layout::METRICS`] | losses and statistics of each phase | [`MetricsLine`] |
//! | [`layout::TIMING`] | wall-clock time of each phase | [`TimingLine`] |
//! | [`layout::SCORES`] | returns of all evaluations | [`Scores`] |
//! | [`layout::CHECKPOINTS`], [`layout::REPLAY`] | weights, optimizer state and experience | `rem` |
//! | [`layout::MEDIA`] | images and animations of evaluations | [`layout::media_name`] |
//! | [`layout::TENSORBOARD`] | the logs as TensorBoard events | |
//! | [`layout::LABELS`] | a name, tags and a note, from the user | [`Labels`] |
//! | [`layout::TRACKERS`], [`layout::CSV`], [`layout::WANDB`] | the metrics for other programs | `rem` |
//! | [`layout::LOCK`] | the process that trains | [`Owner`] |
//!
//! [`metrics::METRICS`] lists every metric with its meaning. [`files`] replaces files atomically.
//!
//! # Example
//!
//! ```
//! use rem_run::{Score, Scores};
//!
//! let dir = std::env::temp_dir().join(format!("rem-run-doctest-{}", std::process::id()));
//! std::fs::create_dir_all(&dir)?;
//! let score = Score { epoch: 10, steps: 2_000, mean: 0.5, returns: vec![1.0, 0.0] };
//! let scores = Scores {
//!     game: "catch".into(),
//!     seed: 1,
//!     evaluations: vec![score.clone()],
//!     final_score: Some(score),
//! };
//! scores.write(&dir)?;
//! assert_eq!(Scores::read(&dir)?, Some(scores));
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
pub mod files;
mod json;
mod labels;
pub mod layout;
mod log;
pub mod metrics;
pub mod owner;
mod phase;
mod protocol;
mod scores;

pub use error::{Error, Result, reason};
pub use json::{read_json, write_json};
pub use labels::Labels;
pub use log::{MetricsLine, TimingLine, parse_lines};
pub use owner::Owner;
pub use phase::Phase;
pub use protocol::{
    DataDetails, EnvDetails, ExportDetails, Origin, PopModeTimes, Protocol, ProtocolSegment,
    ProtocolValues, SettingChange,
};
pub use scores::{Score, Scores};

/// The version of the run directory that this crate writes.
///
/// Version 1 is every run before `protocol.json` had a `format`; its metrics have other names.
pub const FORMAT: u32 = 2;
