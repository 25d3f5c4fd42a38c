//! Every metric that a run logs.
//!
//! A line of `metrics.jsonl` has the metrics of one phase in one epoch, by name. TensorBoard shows each of them as
//! `phase/name` and the seconds of a phase as `time/phase`. [`reference()`] generates `docs/reference/metrics.md`.

use crate::phase::Phase;

/// A metric of `metrics.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The phase that logs it.
    pub phase: Phase,
    /// Its key in `metrics.jsonl`.
    pub name: &'static str,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub description: &'static str,
}

impl Metric {
    /// The metric that `phase` logs as `name`.
    pub fn named(phase: Phase, name: &str) -> Option<&'static Self> {
        METRICS
            .iter()
            .find(|metric| metric.phase == phase && metric.name == name)
    }

    /// Its tag in TensorBoard.
    pub fn tag(&self) -> String {
        format!("{}/{}", self.phase, self.name)
    }
}

const fn metric(
    phase: Phase,
    name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> Metric {
    Metric {
        phase,
        name,
        unit,
        description,
    }
}

use Phase::{ActorCritic, Collect, Evaluate, Tokenizer, WorldModel};

/// All metrics, by phase in the order in which they are logged.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric(Collect, "steps", "steps", "Environment steps in the replay, including this epoch's."),
    metric(Collect, "episodes", "episodes", "Episodes that ended in this epoch."),
    metric(Collect, "mean_return", "", "Mean return of these episodes; not logged if there are none."),
    metric(Collect, "mean_length", "steps", "Mean length of these episodes; not logged if there are none."),

    metric(Tokenizer, "loss", "", "Total loss: the weighted reconstruction loss plus the commitment and perceptual losses."),
    metric(Tokenizer, "loss_reconstruction", "", "Reconstruction loss of frames, squared or absolute by `tokenizer.reconstruction`, without its weight."),
    metric(Tokenizer, "loss_commitment", "", "Commitment loss plus codebook loss of the vector quantization; 0 with finite scalar quantization."),
    metric(Tokenizer, "loss_perceptual", "", "LPIPS distance between frames and reconstructions; 0 without a perceptual loss."),
    metric(Tokenizer, "mean_frame_error", "", "Reconstruction loss of a constant prediction, the batch's mean frame."),
    metric(Tokenizer, "grad_norm", "", "Global norm of the gradients before clipping."),
    metric(Tokenizer, "explained_variance", "", "1 − `loss_reconstruction` / `mean_frame_error`: 1 is perfect, 0 no better than the mean frame."),
    metric(Tokenizer, "active_codes", "codes", "Codes of the codebook that at least one token used in this epoch."),
    metric(Tokenizer, "code_perplexity", "codes", "Exponential of the entropy of code usage: the effective number of codes."),
    metric(Tokenizer, "codes_reset", "codes", "Unused codes that were reset to encoder outputs, by `tokenizer.dead_code_reset_after`."),

    metric(WorldModel, "loss", "", "Total loss: the sum of the observation, reward, termination and ensemble losses."),
    metric(WorldModel, "loss_obs", "nats per token", "Cross-entropy of the next observation's tokens."),
    metric(WorldModel, "loss_rewards", "nats", "Cross-entropy of the reward's sign, squared error with `world_model.rewards = \"continuous\"`, or cross-entropy of bins with `hl_gauss`."),
    metric(WorldModel, "loss_ends", "nats", "Cross-entropy of episode termination."),
    metric(WorldModel, "loss_ensemble", "nats per token", "Mean cross-entropy of the ensemble's heads; not logged without `world_model.ensemble_heads`."),
    metric(WorldModel, "grad_norm", "", "Global norm of the gradients before clipping."),
    metric(WorldModel, "validation/loss_obs", "nats per token", "`loss_obs` on the replay's new steps of this epoch before training on them, not on test episodes (`test/loss_obs`); not logged if there are none."),
    metric(WorldModel, "validation/loss_rewards", "nats", "`loss_rewards` on the same steps."),
    metric(WorldModel, "validation/loss_ends", "nats", "`loss_ends` on the same steps."),

    metric(ActorCritic, "loss", "", "Total loss: the policy and value losses minus the weighted entropy."),
    metric(ActorCritic, "loss_policy", "", "REINFORCE loss with the value as baseline."),
    metric(ActorCritic, "loss_value", "", "Squared error between values and λ-returns, or cross-entropy with `actor_critic.values = \"hl_gauss\"`."),
    metric(ActorCritic, "entropy", "nats", "Mean entropy of the policy in imagination."),
    metric(ActorCritic, "imagined_return", "", "Mean undiscounted sum of rewards of an imagined trajectory up to its termination, without curiosity."),
    metric(ActorCritic, "imagined_termination_rate", "", "Fraction of imagined trajectories that terminate."),
    metric(ActorCritic, "imagined_value", "", "Mean predicted value in imagination."),
    metric(ActorCritic, "imagined_disagreement", "nats per token", "Mean disagreement of the ensemble's heads in imagination, without its weight; not logged without `world_model.ensemble_heads`."),
    metric(ActorCritic, "return_scale", "", "Divisor of the advantages; not logged without `actor_critic.return_scaling`."),
    metric(ActorCritic, "grad_norm", "", "Global norm of the gradients before clipping."),

    metric(Evaluate, "mean_return", "", "Mean return of the evaluation episodes."),
    metric(Evaluate, "mean_length", "steps", "Mean length of the evaluation episodes."),
    metric(Evaluate, "test/loss_obs", "nats per token", "The world model's `loss_obs` on test episodes, that is up to 128 evenly spaced segments of the first 16 evaluation episodes, which it is never trained on, without dropout; not logged before it is trained, or if no episode is long enough."),
    metric(Evaluate, "test/loss_rewards", "nats", "`loss_rewards` on the same segments."),
    metric(Evaluate, "test/loss_ends", "nats", "`loss_ends` on the same segments."),
];

/// The reference page of all metrics, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         <!-- Generated from crates/rem-run/src/metrics.rs; do not edit. -->\n\n\
         A run logs one line per phase and epoch to `metrics.jsonl`. Values are means over the phase's training steps unless \
         the description says otherwise; a value that is not finite is `null`. TensorBoard shows each metric as `phase/name`, \
         for example `world_model/loss_obs`, and the seconds of a phase as `time/phase`.\n\n\
         Lines of phase `note` have a `text` instead of metrics: a warning, or why an epoch was repeated.\n\n\
         `timing.jsonl` has the seconds of each phase. With `train.overlap_phases` the controller learns at the same time as \
         tokenizer and world model: its seconds overlap with theirs, so the seconds of an epoch's phases add up to more than \
         the epoch took.\n",
    );
    for phase in Phase::ALL {
        text.push_str(&format!(
            "\n## {phase}\n\n| name | unit | description |\n| --- | --- | --- |\n"
        ));
        for metric in METRICS.iter().filter(|metric| metric.phase == phase) {
            text.push_str(&format!(
                "| `{}` | {} | {} |\n",
                metric.name, metric.unit, metric.description
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_within_a_phase() {
        for (index, metric) in METRICS.iter().enumerate() {
            let same = |other: &&Metric| other.tag() == metric.tag();
            assert!(!METRICS[..index].iter().any(|m| same(&m)), "{metric:?}");
        }
    }

    #[test]
    fn metrics_are_found_by_phase_and_name() {
        let found = Metric::named(Phase::WorldModel, "validation/loss_obs").unwrap();
        assert_eq!(found.tag(), "world_model/validation/loss_obs");
        assert_eq!(Metric::named(Phase::Collect, "loss_obs"), None);
    }

    #[test]
    fn descriptions_are_sentences() {
        for metric in METRICS {
            assert!(metric.description.ends_with('.'), "{metric:?}");
            assert!(!metric.description.contains('|'), "{metric:?}");
        }
    }
}
