//! Scores to statistics: what a table of runs and games says about a system, and how sure that is.
//!
//! [`Scores`] are raw game scores, [`Matrix`] is the same human-normalised. [`Metric`], [`superhuman`], [`profile`],
//! [`probability_of_improvement`] and [`Distribution`] are functions of them; [`Bootstrap`] puts intervals around
//! these. [`baselines`] has the scores of published systems. The definitions follow *Deep Reinforcement Learning at
//! the Edge of the Statistical Precipice* (Agarwal et al., 2021).
//!
//! Every game weighs the same, also where games have unequal numbers of runs. Nothing here reads or writes a file.

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
