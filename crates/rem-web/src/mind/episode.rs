//! An episode of the replay with what today's agent thinks of it: its policy and value at every step.

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
struct About<'a> {
    epoch: u32,
    episode: Line,
    /// The first step here.
    from: usize,
    size: usize,
    actions: &'a [String],
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    action: u8,
    reward: f32,
    ended: bool,
    value: f32,
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

/// An envelope with the frames of up to [`PAGE`] steps from step `from` on.
pub fn episode(
    mind: &Mind,
    archive: &Archive,
    number: usize,
    from: usize,
) -> Result<Vec<u8>, Failure> {
    let missing = || Failure::Missing(format!("episode {number} in this run's replay"));
    let listed = archive.listed(number).ok_or_else(missing)?;
    // The LSTM is warmed as it is for collecting.
    let warm = from.min(mind.config.actor_critic.burn_in);
    let lived = archive
        .read(number, from - warm..from.saturating_add(PAGE))?
        .ok_or_else(missing)?;
    if lived.frames.len() <= warm {
        return Err(Failure::Missing(format!("step {from} in episode {number}")));
    }
    let (policies, values) = thoughts(mind, &lived.frames, &lived.actions);
    let steps = (warm..lived.frames.len()).map(|t| Step {
        action: lived.actions[t],
        reward: lived.rewards[t],
        ended: lived.outcomes[t] == Outcome::Ended,
        value: values[t],
        policy: policies[t].clone(),
    });
    let about = About {
        epoch: mind.epoch,
        episode: listed.into(),
        from,
        size: mind.config.env.frame_size,
        actions: &mind.action_names,
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
