//! The responses of a session: the current state, token alternatives, a file.

use rem::host;
use serde::Serialize;
use serde_json::json;

use super::super::command::FileFormat;
use super::super::timeline::{EpisodeInfo, WorldState};
use super::Session;
use crate::error::ApiError;
use crate::inference::softmax;
use crate::message;

/// Codes listed for a token.
const ALTERNATIVES: usize = 6;

/// Most frames of a GIF, the last ones.
const MAX_GIF_FRAMES: usize = 600;

#[derive(Serialize)]
struct StateHeader<'a> {
    r#type: &'static str,
    id: u64,
    parent: Option<u64>,
    step: usize,
    world: &'static str,
    action: Option<u8>,
    reward: f32,
    #[serde(rename = "return")]
    total_reward: f32,
    over: bool,
    /// Whether the session can continue from here.
    resumable: bool,
    /// Observations in the memory of the dream, and the horizon that it was trained with.
    memory: Option<usize>,
    horizon: usize,
    policy: Vec<f32>,
    value: Option<f32>,
    reward_probabilities: Vec<f32>,
    termination_probability: Option<f32>,
    /// Entropy of each token's distribution in nats. Empty for real frames and evicted states.
    entropies: Vec<f32>,
    tokens: Vec<u16>,
    frame_size: usize,
    /// The names of the actions.
    actions: &'a [String],
}

impl Session<'_> {
    /// The current node, with its frame.
    pub(super) fn current_state(&self) -> Result<Vec<u8>, ApiError> {
        let current = self.timeline.current();
        let (id, node) = current.ok_or_else(not_started)?;
        let heads = node
            .state
            .as_ref()
            .map(|state| self.agent.player.actor_critic.heads(&state.controller));
        let world = node.state.as_ref().map(|state| &state.world);
        let memory = match world {
            Some(WorldState::Dream { memory, .. }) => Some(*memory),
            _ => None,
        };
        let predictions = node.predictions.as_ref();
        let vocabulary = self.agent.config.tokenizer.vocabulary;
        let header = StateHeader {
            r#type: "state",
            id,
            parent: node.parent,
            step: node.step,
            world: if memory.is_some() || node.imagined {
                "dream"
            } else {
                "real"
            },
            action: node.action,
            reward: node.reward,
            total_reward: node.total_reward,
            over: node.is_over(),
            resumable: node.state.is_some(),
            memory,
            horizon: self.agent.config.train.horizon,
            policy: heads
                .clone()
                .map_or_else(Vec::new, |heads| softmax(heads.logits)),
            value: heads.map(|heads| host::floats(heads.values)[0]),
            entropies: predictions.map_or_else(Vec::new, |p| p.token_entropies(vocabulary)),
            reward_probabilities: predictions.map_or_else(Vec::new, |p| p.rewards.clone()),
            termination_probability: predictions.map(|p| p.termination),
            tokens: node.tokens.clone(),
            frame_size: self.agent.config.env.frame_size,
            actions: &self.agent.action_names,
        };
        Ok(message::encode(&header, &node.frame))
    }

    /// The most likely codes at a position, each with the frame decoded with that code.
    pub(super) fn token_alternatives(&self, position: usize) -> Result<Vec<u8>, ApiError> {
        let bad_request = |reason: String| ApiError::BadRequest(reason);
        let current = self.timeline.current();
        let (id, node) = current.ok_or_else(not_started)?;
        let predictions = node.predictions.as_ref();
        let predictions = predictions
            .ok_or_else(|| bad_request("a real frame has no token probabilities".into()))?;
        if predictions.tokens.is_empty() {
            return Err(bad_request(
                "the token probabilities of this step were dropped to save memory".into(),
            ));
        }
        if position >= node.tokens.len() {
            return Err(bad_request(format!(
                "token {position} is out of range: a frame has {} tokens",
                node.tokens.len()
            )));
        }
        let vocabulary = self.agent.config.tokenizer.vocabulary;
        let top_codes = predictions.top_codes(position, vocabulary, ALTERNATIVES);
        let tokens: Vec<u16> = (top_codes.iter())
            .flat_map(|(code, _)| {
                let mut tokens = node.tokens.clone();
                tokens[position] = *code;
                tokens
            })
            .collect();
        let codes: Vec<_> = top_codes
            .iter()
            .map(|(code, probability)| json!({"code": code, "probability": probability}))
            .collect();
        let header = json!({
            "type": "token", "node": id, "position": position, "sampled": node.tokens[position], "codes": codes,
        });
        Ok(message::encode(
            &header,
            &self.agent.decode(&tokens).concat(),
        ))
    }

    /// The steps from node `from` to the current one as a file.
    pub(super) fn save(
        &self,
        format: FileFormat,
        from: Option<u64>,
        frame_ms: u32,
    ) -> Result<Vec<u8>, ApiError> {
        let current = self.timeline.current();
        let (id, _) = current.ok_or_else(not_started)?;
        let config = &self.agent.config;
        let info = EpisodeInfo {
            game: &config.env.game,
            action_names: &self.agent.action_names,
            frame_size: config.env.frame_size,
        };
        let episode = self.timeline.episode(id, from, info);
        let mut episode = episode.ok_or_else(|| {
            ApiError::BadRequest("this step is before the start of the recording".into())
        })?;
        let (extension, bytes) = match format {
            FileFormat::Npz => ("npz", episode.to_npz()),
            FileFormat::Gif => {
                episode = episode.last(MAX_GIF_FRAMES);
                let gif = episode.gif(frame_ms.clamp(20, 2000));
                let bytes = gif.map_err(|error| ApiError::BadRequest(error.to_string()))?;
                ("gif", bytes)
            }
        };
        // Names such as `gym:ALE/Breakout-v5` are no file names.
        let game = config.env.game.replace([':', '/', '\\'], "-");
        let name = format!("{game}-{}-steps.{extension}", episode.steps());
        let header = json!({"type": "file", "name": name, "steps": episode.steps()});
        Ok(message::encode(&header, &bytes))
    }
}

fn not_started() -> ApiError {
    ApiError::BadRequest("the session has not started".into())
}
