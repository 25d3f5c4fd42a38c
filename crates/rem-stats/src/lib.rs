//! Statistics of Atari 100K scores, with confidence intervals.
//!
//! [`Scores`] holds raw scores, [`Matrix`] the same scores human-normalized. [`Metric`], [`superhuman`], [`profile`],
//! [`probability_of_improvement`] and [`Distribution`] are functions of them, [`Bootstrap`] computes their intervals, and
//! [`baselines`] has the scores of published systems. Definitions follow *Deep Reinforcement Learning at the Edge of the
//! Statistical Precipice* (Agarwal et al., 2021).
//!
//! All games have equal weight, even with unequal numbers of runs. No function reads or writes files.
//!
//! # Example
//!
//! ```
//! use rem_stats::{Bootstrap, Metric, Scores};
//!
//! let scores = Scores::from_json("mine.json", r#"{"Pong": [20.5, 18.0], "Boxing": [70.1, 81.9]}"#)?;
//! let matrix = scores.normalized();
//! assert!(Metric::Iqm.of(&matrix) > 1.0);
//!
//! let bootstrap = Bootstrap { replicates: 1_000, ..Bootstrap::default() };
//! let [mean, ..] = bootstrap.metrics(&matrix);
//! let interval = mean.interval.expect("there are two runs per game");
//! assert!(interval.low <= mean.value && mean.value <= interval.high);
//! # Ok::<(), rem_stats::ScoresError>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod baselines;
mod bootstrap;
mod distribution;
mod error;
mod games;
mod improvement;
mod json;
mod matrix;
mod metrics;
mod profile;
mod quantile;
mod resample;
mod scores;

pub use bootstrap::{Bootstrap, Estimate, Interval};
pub use distribution::Distribution;
pub use error::{Problem, ScoresError};
pub use games::Game;
pub use improvement::probability_of_improvement;
pub use matrix::Matrix;
pub use metrics::{Metric, superhuman};
pub use profile::profile;
pub use scores::{Coverage, Scores, common_games};
