//! Protocols of runs: which values make scores incomparable, and where two runs differ.

use std::path::Path;

use rem_run::ProtocolValues;
use serde_json::Value;

use crate::error::Result;

/// The values of a `protocol.json`, written by any version of `rem`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Protocol(ProtocolValues);

/// What a value of a protocol affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affects {
    /// The scores: they are not comparable if values differ.
    Scores,
    /// The training: its method, software or hardware.
    Training,
    /// Nothing: the value is determined by the game.
    Game,
}

use Affects::{Game, Scores, Training};

/// Known keys with their labels, in the order of display.
const KEYS: &[(&str, &str, Affects)] = &[
    ("environment_steps", "environment steps", Scores),
    ("frame_skip", "frame skip", Scores),
    ("sticky_actions", "sticky actions", Scores),
    ("max_noops_train", "max. no-ops, training", Training),
    ("max_noops_test", "max. no-ops, evaluation", Scores),
    (
        "end_on_life_loss_train",
        "life loss ends episode, training",
        Training,
    ),
    (
        "end_on_life_loss_test",
        "life loss ends episode, evaluation",
        Scores,
    ),
    ("max_steps_train", "max. episode steps, training", Training),
    ("max_steps_test", "max. episode steps, evaluation", Scores),
    ("rewards_in_scores", "rewards in scores", Scores),
    ("final_episodes", "episodes of the final evaluation", Scores),
    ("evaluation_temperature", "evaluation temperature", Scores),
    ("frame_size", "frame size", Training),
    (
        "rewards_in_world_model",
        "rewards in the world model",
        Training,
    ),
    ("imagination_mode", "imagination mode", Training),
    (
        "pop_mode_measured",
        "times of the imagination modes",
        Training,
    ),
    ("perceptual_loss", "perceptual loss", Training),
    ("perceptual_crc32", "CRC-32 of the LPIPS weights", Training),
    ("precision", "precision", Training),
    ("device", "device", Training),
    ("threads", "threads", Training),
    ("ale_version", "ALE", Scores),
    ("burn_version", "Burn", Training),
    ("rem_version", "REM", Training),
    ("git_revision", "git revision", Training),
    ("game", "game", Game),
    ("actions", "actions", Game),
    ("random_player", "random policy", Game),
    ("scripted_player", "scripted policy", Game),
    ("baseline_episodes", "episodes of the random policy", Game),
];

/// The values prescribed by the Atari 100K benchmark.
const BENCHMARK: &[(&str, f64)] = &[
    ("environment_steps", 100_000.0),
    ("frame_skip", 4.0),
    ("sticky_actions", 0.0),
    ("final_episodes", 100.0),
];

impl Protocol {
    /// The protocol of the run in `dir`. `None` if the file does not exist.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        Ok(ProtocolValues::read(dir)?.map(Self))
    }

    /// The value of `key`, if it is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.0.number(key)
    }

    /// The value of `key` as text. A dash if it is missing.
    pub fn text(&self, key: &str) -> String {
        match self.0.get(key) {
            None | Some(Value::Null) => "–".into(),
            Some(Value::Bool(true)) => "yes".into(),
            Some(Value::Bool(false)) => "no".into(),
            // Twelve digits identify a revision.
            Some(Value::String(text)) if key == "git_revision" => text.chars().take(12).collect(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(list)) => {
                let words = list
                    .iter()
                    .map(|v| v.as_str().map_or(v.to_string(), str::to_owned));
                words.collect::<Vec<_>>().join(" ")
            }
            Some(other) => other.to_string(),
        }
    }

    /// The keys of all `protocols`, known keys first, without those that are determined by the game.
    pub fn keys<'a>(protocols: impl IntoIterator<Item = &'a Self>) -> Vec<Key> {
        let protocols: Vec<_> = protocols.into_iter().collect();
        let present = |key: &str| protocols.iter().any(|p| p.0.get(key).is_some());
        let known = KEYS.iter().filter(|(key, ..)| present(key));
        let known = known.map(|(key, label, affects)| Key {
            key: (*key).into(),
            label: (*label).into(),
            affects: *affects,
        });
        let mut others: Vec<&str> = protocols.iter().flat_map(|p| p.0.keys()).collect();
        others.sort();
        others.dedup();
        others.retain(|key| !KEYS.iter().any(|(known, ..)| known == key));
        let others = others.into_iter().map(|key| Key {
            key: key.into(),
            label: key.replace('_', " "),
            affects: Training,
        });
        known
            .chain(others)
            .filter(|key| key.affects != Game)
            .collect()
    }

    /// Deviations from the protocol of the benchmark: label, value and prescribed value.
    pub fn deviations(&self) -> Vec<(&'static str, f64, f64)> {
        let label = |key| {
            KEYS.iter()
                .find(|(known, ..)| *known == key)
                .map_or(key, |k| k.1)
        };
        let deviation = |(key, prescribed): &(&'static str, f64)| {
            let found = self.number(key)?;
            (found != *prescribed).then(|| (label(key), found, *prescribed))
        };
        BENCHMARK.iter().filter_map(deviation).collect()
    }

    /// Whether both are equal except for values that are determined by the game.
    pub fn agrees(&self, other: &Self) -> bool {
        Self::keys([self, other])
            .iter()
            .all(|key| self.text(&key.key) == other.text(&key.key))
    }
}

/// A key of a protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The key in the file.
    pub key: String,
    /// The label in tables and notes.
    pub label: String,
    /// What the value affects.
    pub affects: Affects,
}

#[cfg(test)]
impl Protocol {
    pub fn of(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_of_two_games_agree() {
        let pong = Protocol::of(r#"{"game": "pong", "frame_skip": 4, "actions": ["noop"]}"#);
        let qbert = Protocol::of(r#"{"game": "qbert", "frame_skip": 4, "actions": ["fire"]}"#);
        assert!(pong.agrees(&qbert));
        assert!(!pong.agrees(&Protocol::of(r#"{"frame_skip": 1}"#)));
        assert!(!pong.agrees(&Protocol::of(r#"{"frame_skip": 4, "news": 1}"#)));
    }

    #[test]
    fn deviations_from_the_benchmark_are_found() {
        let short = Protocol::of(r#"{"environment_steps": 5000, "frame_skip": 4}"#);
        assert_eq!(
            short.deviations(),
            [("environment steps", 5000.0, 100_000.0)]
        );
    }

    #[test]
    fn unknown_keys_are_shown_after_known_ones() {
        let keys = Protocol::keys([&Protocol::of(
            r#"{"new_thing": 1, "precision": "f32", "game": "x"}"#,
        )]);
        let labels: Vec<_> = keys.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["precision", "new thing"]);
    }

    #[test]
    fn protocols_of_different_file_formats_agree() {
        let old = Protocol::of(r#"{"frame_skip": 4}"#);
        let new = Protocol::of(r#"{"format": 2, "frame_skip": 4}"#);
        assert!(old.agrees(&new));
    }
}
