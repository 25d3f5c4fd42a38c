//! An episode of the replay with what today's agent thinks of it, if there is one: its policy and value at every step.

use std::sync::Arc;

use burn::tensor::{Int, Tensor};
use rem::env::Outcome;
use rem::imagination::host;
use rem::replay::archive::{Archive, Listed};
use serde::Serialize;

use super::Mind;
use crate::envelope;
use crate::error::Failure;

/// Steps in one answer.
pub const PAGE: usize = 400;

#[derive(Serialize)]
struct About {
    /// Of the agent that thinks; without one there is a reason why.
    epoch: Option<u32>,
    problem: Option<String>,
    episode: Line,
    /// The first step here.
    from: usize,
    size: usize,
    /// What they are called, as far as that is known.
    actions: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    action: u8,
    reward: f32,
    ended: bool,
    /// Without an agent there is no value, and the policy is empty.
    value: Option<f32>,
    policy: Vec<f32>,
}

/// An episode in the list of them.
#[derive(Serialize)]
pub struct Line {
    number: usize,
    epoch: u32,
    steps: usize,
    total: f32,
    outcome: &'static str,
}

impl From<Listed> for Line {
    fn from(listed: Listed) -> Self {
        Self {
            number: listed.number,
            epoch: listed.epoch,
            steps: listed.steps,
            total: listed.total_reward,
            outcome: match listed.outcome {
                Outcome::Continues => "still open",
                Outcome::Ended => "ended",
                Outcome::Truncated => "cut short",
            },
        }
    }
}

/// An envelope with the frames of up to [`PAGE`] steps from step `from` on. Without a mind, `action_names` tells what
/// the actions are called.
pub fn episode(
    mind: Result<Arc<Mind>, Failure>,
    archive: &Archive,
    action_names: impl FnOnce() -> Vec<String>,
    number: usize,
    from: usize,
) -> Result<Vec<u8>, Failure> {
    let missing = || Failure::Missing(format!("episode {number} in this run's replay"));
    let listed = archive.listed(number).ok_or_else(missing)?;
    let size = archive.frame_size().ok_or_else(|| Failure::Run {
        reason: "the frames of the replay are not square".into(),
        hint: None,
    })?;
    let (mind, problem) = match mind {
        Ok(mind) => (Some(mind), None),
        Err(failure) => (None, Some(failure.to_string())),
    };
    // The LSTM is warmed as it is for collecting.
    let burn_in = mind.as_ref().map_or(0, |m| m.config.actor_critic.burn_in);
    let warm = from.min(burn_in);
    let lived = archive
        .read(number, from - warm..from.saturating_add(PAGE))?
        .ok_or_else(missing)?;
    if lived.frames.len() <= warm {
        return Err(Failure::Missing(format!("step {from} in episode {number}")));
    }
    let thoughts = mind
        .as_ref()
        .map(|mind| thoughts(mind, &lived.frames, &lived.actions));
    let steps = (warm..lived.frames.len()).map(|t| Step {
        action: lived.actions[t],
        reward: lived.rewards[t],
        ended: lived.outcomes[t] == Outcome::Ended,
        value: thoughts.as_ref().map(|(_, values)| values[t]),
        policy: (thoughts.as_ref()).map_or_else(Vec::new, |(policies, _)| policies[t].clone()),
    });
    let about = About {
        epoch: mind.as_ref().map(|mind| mind.epoch),
        problem,
        episode: listed.into(),
        from,
        size,
        actions: mind.map_or_else(action_names, |mind| mind.action_names.clone()),
        steps: steps.collect(),
    };
    Ok(envelope::seal(&about, &lived.frames[warm..].concat()))
}

/// Policy and value at each frame, the actions between them taken as they were.
fn thoughts(mind: &Mind, frames: &[Vec<u8>], actions: &[u8]) -> (Vec<Vec<f32>>, Vec<f32>) {
    let (steps, k) = (frames.len(), mind.config.tokens_per_obs());
    let controller = &mind.player.actor_critic;
    let tokens: Tensor<2, Int> = mind.ints(&mind.see(frames)).reshape([steps, k]);
    let views = controller.view(&mind.player.tokenizer, tokens);
    if steps == 1 {
        let state = controller.observe(views, controller.initial_state(1));
        let heads = controller.heads(&state);
        return (vec![super::probabilities(heads.logits)], host(heads.values));
    }
    let between = mind.ints(&actions[..steps - 1]).reshape([1, steps - 1]);
    let (logits, values) = controller.relive(views, between, controller.initial_state(1));
    let [_, _, choices] = logits.dims();
    let policies = super::probabilities(logits.reshape([steps, choices]));
    let policies = policies.chunks(choices).map(<[f32]>::to_vec).collect();
    (policies, host(values))
}
