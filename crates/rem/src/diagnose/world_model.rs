//! How far dreams differ from the game.

use burn::module::Module;
use serde::Serialize;

use super::{HeldOut, Progress, ReturnComparison, StepAccuracy, Subject, thinned};
use crate::env::EnvError;
use crate::seeds::Purpose;
use crate::train::mean_losses;

/// Most segments for the losses.
const MOST_SEGMENTS: usize = 256;
/// Correlation of dreamed and real returns below which dreams mislead the controller.
const LOW_CORRELATION: f64 = 0.5;
/// Difference of returns, relative to the larger one, from which on dreams mislead the controller.
const LARGE_DIFFERENCE: f64 = 0.25;
/// Accuracy of changed tokens, one step ahead, below which the next frame is hardly predicted.
const LOW_ACCURACY: f64 = 0.5;

/// Measurements of a world model on held-out play.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldModelResult {
    /// The training losses.
    pub losses: Losses,
    /// Accuracy of dreams with recorded actions: 1, 2, … steps ahead.
    pub ahead: Vec<StepAccuracy>,
    /// Returns of the policy in dreams and in the game.
    pub returns: ReturnComparison,
}

/// The world model's losses on held-out play. `None` without a segment long enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Cross-entropy of tokens.
    pub observations: Option<f64>,
    /// Cross-entropy or squared error of rewards.
    pub rewards: Option<f64>,
    /// Cross-entropy of terminations.
    pub ends: Option<f64>,
}

impl Subject<'_> {
    /// Measures the world model on held-out play.
    ///
    /// # Errors
    ///
    /// If an environment fails.
    pub fn world_model(
        &self,
        play: &mut HeldOut,
        progress: Progress,
    ) -> Result<WorldModelResult, EnvError> {
        let mut rng = self.seeds().rng(0, Purpose::Diagnosis);
        // Two stages, with a bar from 0 to 2.
        let losses = self.losses(play);
        let ahead = self.step_accuracies(play, &mut rng, &mut |done, of| progress(done, 2 * of));
        let returns =
            self.compare_returns(play, &mut rng, &mut |done, of| progress(of + done, 2 * of))?;
        Ok(WorldModelResult {
            losses,
            ahead,
            returns,
        })
    }

    fn losses(&self, play: &mut HeldOut) -> Losses {
        const NAMES: [&str; 3] = ["observations", "rewards", "ends"];
        let config = &self.config.world_model;
        let (batch_size, horizon) = (config.optimizer.batch_size, self.config.train.horizon);
        let segments = (play.replay).segments_since(0, horizon, config.first_outcome() + 1);
        let segments = thinned(segments, MOST_SEGMENTS);
        let tokenizer = self.agent.tokenizer.valid();
        let mut source = self.tokens(&tokenizer, &mut play.replay);
        let model = self.agent.world_model.valid();
        let found = mean_losses(NAMES, model, &mut source, &segments, batch_size, horizon);
        let [observations, rewards, ends] = NAMES.map(|name| {
            let mut found = found.iter();
            found.find(|(n, _)| *n == name).map(|(_, loss)| *loss)
        });
        Losses {
            observations,
            rewards,
            ends,
        }
    }
}

impl WorldModelResult {
    /// What the numbers mean.
    pub fn verdict(&self) -> String {
        let r = &self.returns;
        let next = self.ahead.first().and_then(|step| step.changed_tokens);
        let differs = r.difference.mean.abs() > r.difference.margin
            && r.difference.mean.abs() > LARGE_DIFFERENCE * r.dreamed.abs().max(r.real.abs());
        if r.is_empty() {
            return format!(
                "No reward within {} steps, in dreams or in the game: the returns say nothing about the world model.",
                r.steps
            );
        }
        if differs {
            let direction = if r.difference.mean > 0.0 {
                "more"
            } else {
                "less"
            };
            return format!(
                "Dreams mislead the controller: they promise {direction} than the game gives, a return of {:.3} instead of \
                 {:.3} over {} steps.",
                r.dreamed, r.real, r.steps
            );
        }
        match (r.correlation, next) {
            (Some(correlation), _) if correlation < LOW_CORRELATION => format!(
                "Dreams mislead the controller: they are right on average, but hardly tell good from bad states \
                 (correlation {correlation:.2})."
            ),
            (_, Some(next)) if next < LOW_ACCURACY => format!(
                "Dreams have the right returns, but predict only {:.0}% of the changed tokens of the next frame.",
                100.0 * next
            ),
            _ => "Dreams agree with the game.".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Estimate;

    fn result(dreamed: f64, real: f64, margin: f64, correlation: f64) -> WorldModelResult {
        let difference = Estimate {
            mean: dreamed - real,
            margin,
        };
        WorldModelResult {
            losses: Losses {
                observations: None,
                rewards: None,
                ends: None,
            },
            ahead: vec![StepAccuracy {
                changed_tokens: Some(0.9),
                ..StepAccuracy::default()
            }],
            returns: ReturnComparison {
                states: 9,
                repeats: 8,
                steps: 5,
                dreamed,
                real,
                difference,
                correlation: Some(correlation),
                dreamed_terminations: 0.0,
                real_terminations: 0.0,
            },
        }
    }

    #[test]
    fn the_verdict_follows_from_returns_first() {
        for (dreamed, real, margin, correlation, expected) in [
            (2.0, 1.0, 0.1, 0.9, "promise more"),
            (1.0, 2.0, 0.1, 0.9, "promise less"),
            (2.0, 1.0, 1.5, 0.9, "agree"),
            (1.1, 1.0, 0.01, 0.9, "agree"),
            (1.0, 1.0, 0.1, 0.2, "correlation 0.20"),
            (0.0, 0.0, 0.0, 0.9, "No reward within 5 steps"),
        ] {
            let verdict = result(dreamed, real, margin, correlation).verdict();
            assert!(verdict.contains(expected), "{verdict}");
        }
        let mut blind = result(1.0, 1.0, 0.1, 0.9);
        blind.ahead[0].changed_tokens = Some(0.3);
        assert!(blind.verdict().contains("only 30%"));
    }
}
