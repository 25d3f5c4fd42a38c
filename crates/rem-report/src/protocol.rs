//! What the scores of a run mean, and where two runs do not mean the same.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};

/// The values of a `protocol.json` by key, whatever version of the program wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Protocol {
    values: BTreeMap<String, Value>,
}

/// How a value of a protocol bears on scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bearing {
    /// Another value, another benchmark.
    Meaning,
    /// How the agent was trained and what it ran on.
    Making,
    /// Follows from the game.
    Game,
}

use Bearing::{Game, Making, Meaning};

/// The keys that we know, in the order in which they are shown.
const KEYS: &[(&str, &str, Bearing)] = &[
    ("environment_steps", "environment steps", Meaning),
    ("frame_skip", "frame skip", Meaning),
    ("sticky_actions", "sticky actions", Meaning),
    ("max_noops_train", "no-ops at most, training", Making),
    ("max_noops_test", "no-ops at most, test", Meaning),
    (
        "end_on_life_loss_train",
        "a life is an episode, training",
        Making,
    ),
    (
        "end_on_life_loss_test",
        "a life is an episode, test",
        Meaning,
    ),
    ("max_steps_train", "episode cut off after, training", Making),
    ("max_steps_test", "episode cut off after, test", Meaning),
    ("rewards_in_scores", "rewards in scores", Meaning),
    ("final_episodes", "episodes of the final score", Meaning),
    (
        "evaluation_temperature",
        "temperature of the tested policy",
        Meaning,
    ),
    ("frame_size", "frame size", Making),
    (
        "rewards_in_world_model",
        "rewards in the world model",
        Making,
    ),
    ("perceptual_loss", "perceptual loss", Making),
    ("perceptual_crc32", "checksum of its weights", Making),
    ("precision", "precision", Making),
    ("device", "device", Making),
    ("threads", "threads", Making),
    ("ale_version", "ALE", Meaning),
    ("burn_version", "Burn", Making),
    ("rem_version", "REM", Making),
    ("git_revision", "git revision", Making),
    ("game", "game", Game),
    ("actions", "actions", Game),
    ("random_player", "random player", Game),
    ("scripted_player", "scripted player", Game),
    ("baseline_episodes", "episodes of these two", Game),
];

/// What the benchmark asks for, as the paper's experiments section has it.
const BENCHMARK: &[(&str, f64)] = &[
    ("environment_steps", 100_000.0),
    ("frame_skip", 4.0),
    ("sticky_actions", 0.0),
    ("final_episodes", 100.0),
];

impl Protocol {
    pub fn read(run: &Path) -> Result<Option<Self>> {
        let file = run.join("protocol.json");
        if !file.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        let values = serde_json::from_str(&text).map_err(|error| Error::Input {
            path: file,
            reason: error.to_string(),
            hint: "it belongs to the run and is written once, at its start".into(),
        })?;
        Ok(Some(Self { values }))
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.values.get(key)?.as_f64()
    }

    /// The value as text; a dash for none.
    pub fn text(&self, key: &str) -> String {
        match self.values.get(key) {
            None | Some(Value::Null) => "–".into(),
            Some(Value::Bool(true)) => "yes".into(),
            Some(Value::Bool(false)) => "no".into(),
            // As much of a revision as tells it from others.
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

    /// Keys whose values do not follow from the game, ours first.
    pub fn keys<'a>(protocols: impl IntoIterator<Item = &'a Self>) -> Vec<Key> {
        let protocols: Vec<_> = protocols.into_iter().collect();
        let there = |key: &str| protocols.iter().any(|p| p.values.contains_key(key));
        let known = KEYS.iter().filter(|(key, ..)| there(key));
        let known = known.map(|(key, label, bearing)| Key {
            key: (*key).into(),
            label: (*label).into(),
            bearing: *bearing,
        });
        let mut others: Vec<&String> = protocols.iter().flat_map(|p| p.values.keys()).collect();
        others.sort();
        others.dedup();
        others.retain(|key| !KEYS.iter().any(|(known, ..)| known == key));
        let others = others.into_iter().map(|key| Key {
            key: key.clone(),
            label: key.replace('_', " "),
            bearing: Making,
        });
        known
            .chain(others)
            .filter(|key| key.bearing != Game)
            .collect()
    }

    /// Where a run on a game of the benchmark departs from it: the label, what it has, what is asked for.
    pub fn departures(&self) -> Vec<(&'static str, f64, f64)> {
        let label = |key| {
            KEYS.iter()
                .find(|(known, ..)| *known == key)
                .map_or(key, |k| k.1)
        };
        let departure = |(key, asked): &(&'static str, f64)| {
            let found = self.number(key)?;
            (found != *asked).then(|| (label(key), found, *asked))
        };
        BENCHMARK.iter().filter_map(departure).collect()
    }

    /// The same but for what follows from the game.
    pub fn agrees(&self, other: &Self) -> bool {
        Self::keys([self, other])
            .iter()
            .all(|key| self.text(&key.key) == other.text(&key.key))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub key: String,
    pub label: String,
    pub bearing: Bearing,
}

#[cfg(test)]
impl Protocol {
    pub fn of(text: &str) -> Self {
        Self {
            values: serde_json::from_str(text).unwrap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_differ_without_a_difference_of_protocol() {
        let pong = Protocol::of(r#"{"game": "pong", "frame_skip": 4, "actions": ["noop"]}"#);
        let qbert = Protocol::of(r#"{"game": "qbert", "frame_skip": 4, "actions": ["fire"]}"#);
        assert!(pong.agrees(&qbert));
        assert!(!pong.agrees(&Protocol::of(r#"{"frame_skip": 1}"#)));
        assert!(!pong.agrees(&Protocol::of(r#"{"frame_skip": 4, "news": 1}"#)));
    }

    #[test]
    fn departures_from_the_benchmark() {
        let short = Protocol::of(r#"{"environment_steps": 5000, "frame_skip": 4}"#);
        assert_eq!(
            short.departures(),
            [("environment steps", 5000.0, 100_000.0)]
        );
    }

    #[test]
    fn what_is_not_known_is_shown_too() {
        let keys = Protocol::keys([&Protocol::of(
            r#"{"new_thing": 1, "precision": "f32", "game": "x"}"#,
        )]);
        let labels: Vec<_> = keys.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["precision", "new thing"]);
    }
}
