//! Types that the three training phases share.

use burn::tensor::Tensor;

use crate::config::{Config, OptimizerConfig};
use crate::model::weights::Arrays;

/// A training phase: the component that learns in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Tokenizer,
    WorldModel,
    ActorCritic,
}

impl Phase {
    pub(super) const ALL: [Self; 3] = [Self::Tokenizer, Self::WorldModel, Self::ActorCritic];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => rem_run::Phase::Tokenizer.name(),
            Self::WorldModel => rem_run::Phase::WorldModel.name(),
            Self::ActorCritic => rem_run::Phase::ActorCritic.name(),
        }
    }

    pub(super) fn settings(self, config: &Config) -> &OptimizerConfig {
        match self {
            Self::Tokenizer => &config.tokenizer.optimizer,
            Self::WorldModel => &config.world_model.optimizer,
            Self::ActorCritic => &config.actor_critic.optimizer,
        }
    }
}

/// A phase with a loss or gradient that is not finite, and the batch that caused it.
pub(super) struct Diverged {
    pub(super) phase: &'static str,
    pub(super) what: String,
    pub(super) batch: Arrays,
}

/// The metrics of a phase, as means over its steps, and warnings.
#[derive(Default)]
pub(super) struct PhaseReport {
    pub(super) values: Vec<(&'static str, f64)>,
    pub(super) warnings: Vec<String>,
}

impl PhaseReport {
    /// The report of a phase that had no segment to sample.
    pub(super) fn no_segments(component: &str) -> Self {
        Self {
            warnings: vec![format!(
                "{component} not trained: no episode in the replay is long enough yet"
            )],
            ..Self::default()
        }
    }
}

/// Running means by name.
#[derive(Default)]
pub(super) struct Means {
    sums: Vec<(&'static str, f64)>,
    count: usize,
}

impl Means {
    pub(super) fn add(&mut self, values: &[(&'static str, f64)]) {
        self.count += 1;
        for (name, value) in values {
            match self.sums.iter_mut().find(|(n, _)| n == name) {
                Some((_, sum)) => *sum += value,
                None => self.sums.push((name, *value)),
            }
        }
    }

    pub(super) fn take(self) -> Vec<(&'static str, f64)> {
        let n = self.count.max(1) as f64;
        self.sums
            .into_iter()
            .map(|(name, sum)| (name, sum / n))
            .collect()
    }
}

pub(super) fn scalar(tensor: &Tensor<1>) -> f64 {
    f64::from(tensor.clone().inner().into_scalar::<f32>())
}
