//! What a session tells: a moment, what a token might have been, a file.

use rem::imagination::host;
use serde::Serialize;
use serde_json::json;

use super::super::command::FileKind;
use super::super::timeline::{About, World};
use super::Session;
use crate::envelope;
use crate::error::Failure;
use crate::mind;

/// Alternatives that are shown for a token.
const ALTERNATIVES: usize = 6;

/// Frames of an animation at most, the last ones.
const GIF_FRAMES: usize = 600;

#[derive(Serialize)]
struct Shown<'a> {
    is: &'static str,
    id: u64,
    parent: Option<u64>,
    step: usize,
    world: &'static str,
    action: Option<u8>,
    reward: f32,
    total: f32,
    over: bool,
    /// Whether one can go on from here.
    live: bool,
    /// Observations in the dream's memory, and those that it was trained to hold.
    seen: Option<usize>,
    horizon: usize,
    policy: Vec<f32>,
    value: Option<f32>,
    reward_odds: Vec<f32>,
    end_odds: Option<f32>,
    /// The chance that each token had, in a dream, unless that is long ago.
    chances: Vec<f32>,
    tokens: Vec<u16>,
    /// Height and width of the frame, and what the actions are called.
    size: usize,
    actions: &'a [String],
}

impl Session<'_> {
    /// The present moment, with its frame.
    pub(super) fn show(&self) -> Result<Vec<u8>, Failure> {
        let here = self.timeline.here();
        let (id, moment) = here.ok_or_else(|| Failure::Asked("start first".into()))?;
        let heads = moment
            .live
            .as_ref()
            .map(|live| self.mind.player.actor_critic.heads(&live.controller));
        let world = moment.live.as_ref().map(|live| &live.world);
        let seen = match world {
            Some(World::Dream { seen, .. }) => Some(*seen),
            _ => None,
        };
        let odds = moment.odds.clone().unwrap_or_default();
        let vocabulary = self.mind.config.tokenizer.vocabulary;
        let shown = Shown {
            is: "moment",
            id,
            parent: moment.parent,
            step: moment.step,
            world: if seen.is_some() || moment.dreamt {
                "dream"
            } else {
                "real"
            },
            action: moment.action,
            reward: moment.reward,
            total: moment.total,
            over: moment.is_over(),
            live: moment.live.is_some(),
            seen,
            horizon: self.mind.config.train.horizon,
            policy: heads
                .clone()
                .map_or_else(Vec::new, |heads| mind::probabilities(heads.logits)),
            value: heads.map(|heads| host(heads.values)[0]),
            chances: match odds.tokens.is_empty() {
                true => Vec::new(),
                false => odds.of(&moment.tokens, vocabulary),
            },
            reward_odds: odds.rewards,
            end_odds: moment.odds.as_ref().map(|odds| odds.end),
            tokens: moment.tokens.clone(),
            size: self.mind.config.env.frame_size,
            actions: &self.mind.action_names,
        };
        Ok(envelope::seal(&shown, &moment.frame))
    }

    /// The likeliest codes at a place, each with the frame as it would be with that code.
    pub(super) fn alternatives(&self, place: usize) -> Result<Vec<u8>, Failure> {
        let asked = |reason: String| Failure::Asked(reason);
        let here = self.timeline.here();
        let (id, moment) = here.ok_or_else(|| asked("start first".into()))?;
        let odds = moment.odds.as_ref();
        let odds = odds.ok_or_else(|| {
            asked("this frame was seen, not dreamt: no token of it was drawn".into())
        })?;
        if odds.tokens.is_empty() {
            return Err(asked("too long ago: the chances are forgotten".into()));
        }
        if place >= moment.tokens.len() {
            return Err(asked(format!("there is no place {place}")));
        }
        let vocabulary = self.mind.config.tokenizer.vocabulary;
        let likeliest = odds.likeliest(place, vocabulary, ALTERNATIVES);
        let tokens: Vec<u16> = (likeliest.iter())
            .flat_map(|(code, _)| {
                let mut tokens = moment.tokens.clone();
                tokens[place] = *code;
                tokens
            })
            .collect();
        let codes: Vec<_> = likeliest
            .iter()
            .map(|(code, chance)| json!({"code": code, "chance": chance}))
            .collect();
        let about = json!({
            "is": "token", "moment": id, "place": place, "drawn": moment.tokens[place], "codes": codes,
        });
        Ok(envelope::seal(&about, &self.mind.draw(&tokens).concat()))
    }

    /// The way here as a file.
    pub(super) fn save(
        &self,
        kind: FileKind,
        from: Option<u64>,
        frame_ms: u32,
    ) -> Result<Vec<u8>, Failure> {
        let here = self.timeline.here();
        let (id, _) = here.ok_or_else(|| Failure::Asked("start first".into()))?;
        let config = &self.mind.config;
        let about = About {
            game: &config.env.game,
            action_names: &self.mind.action_names,
            size: config.env.frame_size,
        };
        let episode = self.timeline.episode(id, from, about);
        let mut episode =
            episode.ok_or_else(|| Failure::Asked("this is before the recording's start".into()))?;
        let (ending, bytes) = match kind {
            FileKind::Npz => ("npz", episode.to_npz()),
            FileKind::Gif => {
                episode = episode.last(GIF_FRAMES);
                let gif = episode.gif(frame_ms.clamp(20, 2000));
                let bytes = gif.map_err(|error| Failure::Asked(error.to_string()))?;
                ("gif", bytes)
            }
        };
        let name = format!("{}-{}-steps.{ending}", config.env.game, episode.steps());
        let about = json!({"is": "file", "name": name, "kind": ending, "steps": episode.steps()});
        Ok(envelope::seal(&about, &bytes))
    }
}
