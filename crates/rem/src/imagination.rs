//! Imagination: the controller acts and the world model responds (Section 2.3).
//!
//! With POP, an imagined step takes two network calls (update the state with observation and action, then predict all
//! tokens of the next observation) or one (both together). Without POP it takes K calls, one per token (Appendix
//! A.1.2).

mod dream;
pub mod pop_mode;
mod return_scale;
pub mod returns;
mod rollout;

pub use dream::{Dream, DreamStep, SampleFn, Sampled};
pub(crate) use return_scale::RecentReturns;
pub use rollout::{DreamStats, Rollout, burn_in, imagine};
pub(crate) use rollout::{RolloutEnv, roll_out, warmed_up};
