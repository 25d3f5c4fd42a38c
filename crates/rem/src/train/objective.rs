//! The controller's objective, and what it keeps from one update to the next.

use crate::config;
use crate::host;
use crate::imagination::{DreamStats, RecentReturns, Rollout};
use crate::model::actor_critic::{ActorCritic, Experience};
use crate::model::weights::{Array, Arrays};

/// Makes [`Experience`] of rollouts. Its state is part of a checkpoint.
#[derive(Clone, Debug)]
pub struct ControllerObjective {
    /// `None` without scaling of returns.
    recent_returns: Option<RecentReturns>,
}

impl ControllerObjective {
    /// The objective of a new controller.
    pub fn new(config: &config::ActorCritic) -> Self {
        Self {
            recent_returns: RecentReturns::new(config.return_scaling),
        }
    }

    /// Unrolls the controller with gradients over a rollout, computes λ-returns and, if configured, their scale.
    pub fn experience(
        &mut self,
        rollout: Rollout,
        controller: &ActorCritic,
        config: &config::ActorCritic,
    ) -> (Experience, DreamStats) {
        let (mut experience, stats) = rollout.experience(controller, config);
        if let Some(recent) = &mut self.recent_returns {
            let returns = host::floats(experience.returns.clone());
            let weights = host::floats(experience.weights.clone());
            let learned = returns.into_iter().zip(weights).filter(|(_, w)| *w > 0.0);
            recent.push(learned.map(|(g, _)| g).collect());
            experience.return_scale = recent.scale();
        }
        (experience, stats)
    }

    /// The state as arrays; empty without any.
    pub(crate) fn to_arrays(&self) -> Arrays {
        let mut arrays = Arrays::new();
        if let Some(recent) = &self.recent_returns {
            let (values, lengths) = recent.to_parts();
            arrays.insert(RETURNS.into(), flat(values));
            arrays.insert(RETURN_COUNTS.into(), flat(lengths));
        }
        arrays
    }

    /// Restores the state from [`Self::to_arrays`]. An imported checkpoint has none.
    pub(crate) fn restore(&mut self, arrays: &Arrays) -> Result<(), String> {
        let returns = (arrays.get(RETURNS)).zip(arrays.get(RETURN_COUNTS));
        match (&mut self.recent_returns, returns) {
            (Some(recent), Some((values, lengths))) => recent.restore(&values.data, &lengths.data),
            _ => Ok(()),
        }
    }
}

/// Names of arrays.
const RETURNS: &str = "returns";
const RETURN_COUNTS: &str = "return_counts";

fn flat(data: Vec<f32>) -> Array {
    Array {
        shape: vec![data.len()],
        data,
    }
}
