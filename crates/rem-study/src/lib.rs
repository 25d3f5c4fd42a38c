//! Studies: many runs of one experiment, such as 26 games with five seeds, or an ablation with its variants.
//!
//! A [`Plan`] becomes a [`Manifest`], which lists every run with its config and does not change. [`Study`] is a directory
//! with a manifest. Its runs are trained by a [`Pool`] of processes on this machine, or by an array job on [`slurm`], whose
//! tasks are such pools. Neither keeps a database: [`Status`] reads the run directories, so that whatever dies can be started
//! again, on either.
//!
//! # Example
//!
//! ```
//! use rem_study::{Plan, Study, Status};
//!
//! let dir = std::env::temp_dir().join(format!("rem-study-doctest-{}", std::process::id()));
//! let plan = Plan {
//!     preset: Some("debug".into()),
//!     games: Some("catch,paddle".into()),
//!     seeds: "1..3".into(),
//!     ..Plan::default()
//! };
//! let study = Study::create(&dir, plan.manifest()?)?;
//! let status = Status::read(&study, &[]);
//! assert_eq!((status.runs.len(), status.counts.waiting), (6, 6));
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod collect;
mod compare;
mod error;
mod find;
mod grid;
mod manifest;
mod overlay;
mod plan;
mod pool;
mod pools;
pub mod signals;
pub mod slurm;
mod status;
mod study;
mod variants;

pub use collect::{Collected, collect};
pub use compare::{Comparison, GameComparison, Number, VariantScores, compare};
pub use error::{Error, Result};
pub use find::Found;
pub use manifest::{Entry, Manifest, STUDY};
pub use plan::Plan;
pub use pool::{EXIT_LOCKED, Event, Pool, Summary, Worker};
pub use pools::{RunningPool, stop_pools};
pub use status::{Counts, QueuedRun, RunStatus, State, Status};
pub use study::{Failure, Study};
pub use variants::NamedVariant;
