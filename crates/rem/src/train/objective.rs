//! The controller's objective, and what it keeps from one update to the next.

use burn::module::Module;

use crate::config;
use crate::host;
use crate::imagination::{DreamStats, RecentReturns, Rollout};
use crate::model::actor_critic::{ActorCritic, Experience};
use crate::model::weights::{self, Array, Arrays, moving_average};

/// Makes [`Experience`] of rollouts. Its state is part of a checkpoint.
#[derive(Clone, Debug)]
pub struct ControllerObjective {
    /// `None` without scaling of returns.
    recent_returns: Option<RecentReturns>,
    slow_critic: Option<ActorCritic>,
}

impl ControllerObjective {
    /// The objective of a new controller, from which the slow critic starts.
    pub fn new(config: &config::ActorCritic, controller: &ActorCritic) -> Self {
        Self {
            recent_returns: RecentReturns::new(config.return_scaling),
            slow_critic: config.slow_critic.decay().map(|_| controller.valid()),
        }
    }

    /// Unrolls the controller with gradients over a rollout, computes λ-returns and, if configured, their scale.
    pub fn experience(
        &mut self,
        rollout: Rollout,
        controller: &ActorCritic,
        config: &config::ActorCritic,
    ) -> (Experience, DreamStats) {
        let (mut experience, stats) =
            rollout.experience(controller, self.slow_critic.as_ref(), config);
        if let Some(recent) = &mut self.recent_returns {
            let returns = host::floats(experience.returns.clone());
            let weights = host::floats(experience.weights.clone());
            let learned = returns.into_iter().zip(weights).filter(|(_, w)| *w > 0.0);
            recent.push(learned.map(|(g, _)| g).collect());
            experience.return_scale = recent.scale();
        }
        (experience, stats)
    }

    /// Moves the slow critic towards a controller that has been updated.
    pub fn update(&mut self, controller: &ActorCritic, config: &config::ActorCritic) {
        if let (Some(slow), Some(decay)) = (self.slow_critic.take(), config.slow_critic.decay()) {
            self.slow_critic = Some(moving_average(slow, &controller.valid(), decay));
        }
    }

    /// The state as arrays; empty without any.
    pub(crate) fn to_arrays(&self) -> Arrays {
        let mut arrays = Arrays::new();
        if let Some(recent) = &self.recent_returns {
            let (values, lengths) = recent.to_parts();
            arrays.insert(RETURNS.into(), Array::flat(values));
            arrays.insert(RETURN_COUNTS.into(), Array::flat(lengths));
        }
        if let Some(slow) = &self.slow_critic {
            let weights = weights::collect(slow).into_iter();
            arrays.extend(weights.map(|(name, array)| (format!("{SLOW_CRITIC}.{name}"), array)));
        }
        arrays
    }

    /// Restores the state from [`Self::to_arrays`]. An imported checkpoint has none.
    pub(crate) fn restore(&mut self, arrays: &Arrays) -> Result<(), String> {
        if arrays.is_empty() {
            return Ok(());
        }
        if let Some(slow) = self.slow_critic.take() {
            let restored = weights::apply(slow, weights::under(arrays, SLOW_CRITIC));
            self.slow_critic = Some(restored.map_err(|e| format!("{SLOW_CRITIC}: {e}"))?);
        }
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
const SLOW_CRITIC: &str = "slow_critic";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::model::actor_critic::ControllerSizes;
    use burn::tensor::{Device, Tensor};
    use rem_kernels::Precision;

    const WITH_STATE: [&str; 2] = [
        "actor_critic.slow_critic=target",
        "actor_critic.return_scaling=quantile_range",
    ];

    fn config(set: &[&str]) -> Config {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Config::load("debug", &set).unwrap()
    }

    fn controller(seed: u64) -> ActorCritic {
        let (config, device) = (config(&[]), Device::flex().autodiff());
        device.seed(seed);
        let sizes = ControllerSizes::of(&config, 3);
        let controller = ActorCritic::new(&config.actor_critic, sizes, Precision::F32, &device);
        weights::collect(&controller);
        controller
    }

    /// A rollout of two observations, with reward 2 in the first trajectory.
    fn rollout(controller: &ActorCritic) -> Rollout {
        let device = Device::flex();
        let config = config(&[]);
        let (grid, width) = (config.grid(), config.tokenizer.embedding);
        Rollout {
            start: controller.valid().initial_state(2),
            encoder_inputs: Tensor::zeros([4, grid, grid, width], &device),
            tokens: Tensor::zeros([2, 2, config.tokens_per_obs()], &device),
            actions: Tensor::zeros([2, 1], &device),
            rewards: vec![vec![2.0], vec![0.0]],
            ends: vec![vec![true]; 2],
            disagreements: vec![vec![]; 2],
        }
    }

    #[test]
    fn without_settings_there_is_no_state_and_no_scale() {
        let (config, controller) = (config(&[]), controller(1));
        let mut objective = ControllerObjective::new(&config.actor_critic, &controller);
        let (experience, _) =
            objective.experience(rollout(&controller), &controller, &config.actor_critic);
        objective.update(&controller, &config.actor_critic);
        assert_eq!(experience.return_scale, 1.0);
        assert!(experience.slow_values.is_none());
        assert!(objective.to_arrays().is_empty());
    }

    #[test]
    fn the_scale_is_that_of_returns_with_a_loss() {
        let floor = "actor_critic.return_scaling.floor=0.001";
        let (config, controller) = (config(&[WITH_STATE[1], floor]), controller(1));
        let config = config.actor_critic;
        let mut objective = ControllerObjective::new(&config, &controller);
        let (experience, _) = objective.experience(rollout(&controller), &controller, &config);
        // Returns 0 and 2: quantiles 0.05 and 1.95.
        assert!((experience.return_scale - 0.95).abs() < 1e-6);
    }

    #[test]
    fn a_restored_objective_continues_equally() {
        let settings = config(&WITH_STATE).actor_critic;
        let [start, later] = [1, 2].map(controller);
        let mut objective = ControllerObjective::new(&settings, &start);
        objective.experience(rollout(&start), &start, &settings);
        objective.update(&later, &settings);
        let arrays = objective.to_arrays();
        let slow = |i: usize| arrays["slow_critic.critic.weight"].data[i];
        let [a, b] = [&start, &later].map(|c| weights::collect(c)["critic.weight"].data[0]);
        assert!((slow(0) - (0.98 * a + 0.02 * b)).abs() < 1e-6);

        let mut restored = ControllerObjective::new(&settings, &later);
        restored.restore(&arrays).unwrap();
        for objective in [&mut objective, &mut restored] {
            objective.experience(rollout(&later), &later, &settings);
            objective.update(&later, &settings);
        }
        assert_eq!(restored.to_arrays(), objective.to_arrays());
        // Nothing to restore in an imported checkpoint.
        let mut imported = ControllerObjective::new(&settings, &later);
        imported.restore(&Arrays::new()).unwrap();
        let slow = weights::under(&imported.to_arrays(), SLOW_CRITIC);
        assert_eq!(slow, weights::collect(&later));
    }
}
