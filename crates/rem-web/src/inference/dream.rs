//! A dream along a replay episode: the world model sees the first frames, then only the actions.

use burn::tensor::{Int, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem::config::Architecture;
use rem::data::replay::archive::Archive;
use rem::env::Outcome;
use rem::imagination::Dream;
use serde::{Deserialize, Serialize};

use super::episode::outcome_name;
use super::{InferenceAgent, Sampler};
use crate::error::ApiError;
use crate::message;

/// Most frames in one response, without the end of the episode.
const MAX_FRAMES: usize = 64;

/// The segment of an episode to imagine, and how to sample it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DreamQuery {
    pub episode: usize,
    /// The first context frame.
    pub step: usize,
    pub length: usize,
    pub temperature: f32,
    pub seed: u64,
}

#[derive(Serialize)]
struct Header<'a> {
    epoch: u32,
    frame_size: usize,
    grid: usize,
    context: usize,
    horizon: usize,
    actions: &'a [String],
    steps: Vec<Step>,
}

/// A transition and the frames after it.
#[derive(Serialize)]
struct Step {
    step: usize,
    /// Whether the world model has seen the real frame.
    context: bool,
    /// The action before this frame, its real reward and outcome, and the predicted ones.
    action: Option<u8>,
    reward: Option<f32>,
    outcome: &'static str,
    predicted_reward: Option<f32>,
    reward_probabilities: Vec<f32>,
    termination_probability: Option<f32>,
    /// How the tokens compare with those of the real frame. `None` after the end of the episode: the replay does not hold
    /// the frame there, and the world model is not trained on it.
    tokens: Option<TokenComparison>,
}

#[derive(Serialize)]
struct TokenComparison {
    /// The fraction of tokens that equal those of the real frame.
    accuracy: f32,
    /// The positions of the others.
    mismatches: Vec<usize>,
}

/// A message with two frames per step that has them: the real one and the imagined one.
pub(crate) fn dream(
    agent: &InferenceAgent,
    archive: &Archive,
    query: &DreamQuery,
) -> Result<Vec<u8>, ApiError> {
    let DreamQuery { episode, step, .. } = *query;
    let not_found = || ApiError::NotFound(format!("step {step} of replay episode {episode}"));
    let limit = frame_limit(agent);
    let length = query.length.clamp(1, limit.unwrap_or(MAX_FRAMES));
    let segment = archive.read(episode, step..step.saturating_add(length))?;
    let segment = segment.filter(|segment| !segment.frames.is_empty());
    let segment = segment.ok_or_else(not_found)?;
    let info = archive.info(episode).ok_or_else(not_found)?;

    let (k, frames) = (agent.config.tokens_per_obs(), segment.frames.len());
    let real = agent.tokenize(&segment.frames);
    let context = agent.world_model.context().min(frames);
    let mut imagined: Vec<u16> = real[..context * k].to_vec();
    let mut steps: Vec<Step> = (0..context)
        .map(|t| context_step(t, step, &segment.actions))
        .collect();

    // The last action of an episode has a reward, but no frame after it.
    let ends = step + frames == info.steps && info.outcome != Outcome::Running;
    let ends = ends && limit.is_none_or(|limit| frames < limit);
    let mut rng = ChaCha8Rng::seed_from_u64(query.seed);
    let mut dream = start(agent, &real[..context * k], &segment.actions[..context - 1]);
    for t in context..frames + usize::from(ends) {
        let mut sampler = Sampler::new(query.temperature, &mut rng);
        let action = agent.ints(&segment.actions[t - 1..t]);
        let predicted = sampler.run(|draw| dream.step_by(action, draw));
        let predictions = sampler.predictions;
        let tokens = real.get(t * k..(t + 1) * k).map(|targets| {
            let tokens = rem::data::batch::host_tokens(dream.tokens());
            imagined.extend(&tokens);
            compare(&tokens, targets)
        });
        steps.push(Step {
            step: step + t,
            context: false,
            action: Some(segment.actions[t - 1]),
            reward: Some(segment.rewards[t - 1]),
            outcome: outcome_name(match tokens {
                None => info.outcome,
                Some(_) => segment.outcomes[t - 1],
            }),
            predicted_reward: Some(predicted.rewards[0]),
            reward_probabilities: predictions.rewards,
            termination_probability: Some(predictions.termination),
            tokens,
        });
    }

    let imagined = agent.decode(&imagined);
    let frames: Vec<u8> = (segment.frames.iter().zip(&imagined))
        .flat_map(|(real, imagined)| [&real[..], imagined].concat())
        .collect();
    let header = Header {
        epoch: agent.epoch,
        frame_size: agent.config.env.frame_size,
        grid: agent.config.grid(),
        context,
        horizon: agent.config.train.horizon,
        actions: &agent.action_names,
        steps,
    };
    Ok(message::encode(&header, &frames))
}

fn compare(tokens: &[u16], targets: &[u16]) -> TokenComparison {
    let differs = |i: &usize| tokens[*i] != targets[*i];
    let mismatches: Vec<usize> = (0..targets.len()).filter(differs).collect();
    TokenComparison {
        accuracy: 1.0 - mismatches.len() as f32 / targets.len() as f32,
        mismatches,
    }
}

/// Most frames of a dream: a Transformer has position embeddings for one segment, or has seen no longer ones. A RetNet has
/// no limit.
fn frame_limit(agent: &InferenceAgent) -> Option<usize> {
    match agent.config.world_model.architecture {
        Architecture::Transformer {} | Architecture::PopAttention { .. } => {
            Some(agent.config.context_window_steps())
        }
        Architecture::Pop { .. } | Architecture::Retnet { .. } => None,
    }
}

/// Starts a dream from these observations and the actions between them.
pub(crate) fn start<'a>(agent: &'a InferenceAgent, tokens: &[u16], actions: &[u8]) -> Dream<'a> {
    let k = agent.config.tokens_per_obs();
    let context = tokens.len() / k;
    let observations: Tensor<3, Int> = agent.ints(tokens).reshape([1, context, k]);
    let actions = (context > 1).then(|| agent.ints(actions).reshape([1, context - 1]));
    Dream::start(
        &agent.world_model,
        &agent.player.codes,
        observations,
        actions,
    )
}

fn context_step(t: usize, first: usize, actions: &[u8]) -> Step {
    Step {
        step: first + t,
        context: true,
        action: t.checked_sub(1).map(|before| actions[before]),
        reward: None,
        outcome: outcome_name(Outcome::Running),
        predicted_reward: None,
        reward_probabilities: Vec::new(),
        termination_probability: None,
        tokens: Some(TokenComparison {
            accuracy: 1.0,
            mismatches: Vec::new(),
        }),
    }
}
