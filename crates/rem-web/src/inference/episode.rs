//! A replay episode with the policy and value of the last agent at every step.

use std::sync::Arc;

use burn::tensor::{Int, Tensor};
use rem::data::replay::archive::{Archive, EpisodeInfo};
use rem::env::Outcome;
use rem::host;
use serde::Serialize;

use super::{InferenceAgent, softmax};
use crate::error::ApiError;
use crate::message;

/// Most steps in one response.
const PAGE: usize = 400;

#[derive(Serialize)]
struct Header {
    /// The epoch of the agent; if there is none, `problem` says why.
    epoch: Option<u32>,
    problem: Option<String>,
    episode: EpisodeSummary,
    /// The first step of this response.
    from: usize,
    frame_size: usize,
    /// The names of the actions, if known.
    actions: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    action: u8,
    reward: f32,
    terminated: bool,
    /// `None`, and an empty policy, without an agent.
    value: Option<f32>,
    policy: Vec<f32>,
}

/// An episode in the list of episodes.
#[derive(Serialize)]
pub(crate) struct EpisodeSummary {
    number: usize,
    epoch: u32,
    steps: usize,
    #[serde(rename = "return")]
    total_reward: f32,
    outcome: &'static str,
}

impl From<EpisodeInfo> for EpisodeSummary {
    fn from(info: EpisodeInfo) -> Self {
        Self {
            number: info.number,
            epoch: info.epoch,
            steps: info.steps,
            total_reward: info.total_reward,
            outcome: outcome_name(info.outcome),
        }
    }
}

pub(super) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Terminated => "terminated",
        Outcome::Truncated => "truncated",
    }
}

/// A message with the frames of up to [`PAGE`] steps, starting at step `from`. `action_names` is used if there is no
/// agent.
pub(crate) fn episode(
    agent: Result<Arc<InferenceAgent>, ApiError>,
    archive: &Archive,
    action_names: impl FnOnce() -> Vec<String>,
    number: usize,
    from: usize,
) -> Result<Vec<u8>, ApiError> {
    let not_found = || ApiError::NotFound(format!("replay episode {number}"));
    let info = archive.info(number).ok_or_else(not_found)?;
    let frame_size = archive.frame_size().ok_or_else(|| ApiError::Run {
        reason: "the frames of the replay are not square".into(),
        hint: None,
    })?;
    let (agent, problem) = match agent {
        Ok(agent) => (Some(agent), None),
        Err(error) => (None, Some(error.to_string())),
    };
    // Burn in the LSTM as for collection.
    let burn_in = agent.as_ref().map_or(0, |a| a.config.actor_critic.burn_in);
    let burn_in = from.min(burn_in);
    let segment = archive
        .read(number, from - burn_in..from.saturating_add(PAGE))?
        .ok_or_else(not_found)?;
    if segment.frames.len() <= burn_in {
        return Err(ApiError::NotFound(format!(
            "step {from} of replay episode {number}"
        )));
    }
    let heads = agent
        .as_ref()
        .map(|agent| policy_and_value(agent, &segment.frames, &segment.actions));
    let steps = (burn_in..segment.frames.len()).map(|t| Step {
        action: segment.actions[t],
        reward: segment.rewards[t],
        terminated: segment.outcomes[t] == Outcome::Terminated,
        value: heads.as_ref().map(|(_, values)| values[t]),
        policy: (heads.as_ref()).map_or_else(Vec::new, |(policies, _)| policies[t].clone()),
    });
    let header = Header {
        epoch: agent.as_ref().map(|agent| agent.epoch),
        problem,
        episode: info.into(),
        from,
        frame_size,
        actions: agent.map_or_else(action_names, |agent| agent.action_names.clone()),
        steps: steps.collect(),
    };
    Ok(message::encode(
        &header,
        &segment.frames[burn_in..].concat(),
    ))
}

/// Policy and value at each frame, given the recorded actions.
fn policy_and_value(
    agent: &InferenceAgent,
    frames: &[Vec<u8>],
    actions: &[u8],
) -> (Vec<Vec<f32>>, Vec<f32>) {
    let (steps, k) = (frames.len(), agent.config.tokens_per_obs());
    let controller = &agent.player.actor_critic;
    let tokens: Tensor<2, Int> = agent.ints(&agent.tokenize(frames)).reshape([steps, k]);
    let views = controller.encoder_input(&agent.player.tokenizer, tokens);
    if steps == 1 {
        let state = controller.observe(views, controller.initial_state(1));
        let heads = controller.heads(&state);
        return (vec![softmax(heads.logits)], host::floats(heads.values));
    }
    let between = agent.ints(&actions[..steps - 1]).reshape([1, steps - 1]);
    let (logits, values) = controller.unroll(views, between, controller.initial_state(1));
    let [_, _, choices] = logits.dims();
    let policies = softmax(logits.reshape([steps, choices]));
    let policies = policies.chunks(choices).map(<[f32]>::to_vec).collect();
    (policies, host::floats(values))
}
