//! Protocols of runs: which values make scores incomparable, and where two runs differ.

use std::path::Path;

use rem_run::ProtocolValues;
use rem_stats::Game;
use serde_json::Value;

use crate::departures::{Departure, Standard};
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
    /// Nothing: the value is determined by the game, or determines others.
    Game,
}

use Affects::{Scores, Training};

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
    ("collect_envs", "environments side by side", Training),
    ("data", "recorded episodes", Training),
    ("origin", "started from", Training),
    ("segments", "settings changed", Training),
    ("precision", "precision", Training),
    ("device", "device", Training),
    ("threads", "threads", Training),
    ("ale_version", "ALE", Scores),
    ("burn_version", "Burn", Training),
    ("rem_version", "REM", Training),
    ("git_revision", "git revision", Training),
    // Its values are what counts.
    ("preset", "preset", Affects::Game),
    ("game", "game", Affects::Game),
    ("environment", "environment", Affects::Game),
    ("actions", "actions", Affects::Game),
    ("random_player", "random policy", Affects::Game),
    ("scripted_player", "scripted policy", Affects::Game),
    (
        "baseline_episodes",
        "episodes of the random policy",
        Affects::Game,
    ),
];

/// A prescribed value.
#[derive(Clone, Copy)]
enum Prescribed {
    Number(f64),
    Bool(bool),
    Text(&'static str),
}

use Prescribed::{Bool, Number, Text};

/// The values of keys that change what a score means, as prescribed by the Atari 100K benchmark (for the limits and the
/// numbers of no-ops, as the paper's Table 2 has them) or by the paper alone. Table 2 has the two values of life loss
/// swapped.
const PRESCRIBED: &[(&str, Prescribed, Standard)] = &[
    ("environment_steps", Number(100_000.0), Standard::Benchmark),
    ("frame_skip", Number(4.0), Standard::Benchmark),
    ("sticky_actions", Number(0.0), Standard::Benchmark),
    ("max_noops_train", Number(30.0), Standard::Benchmark),
    ("max_noops_test", Number(1.0), Standard::Benchmark),
    ("end_on_life_loss_train", Bool(true), Standard::Benchmark),
    ("end_on_life_loss_test", Bool(false), Standard::Benchmark),
    ("max_steps_train", Number(20_000.0), Standard::Benchmark),
    ("max_steps_test", Number(108_000.0), Standard::Benchmark),
    ("rewards_in_scores", Text("unclipped"), Standard::Benchmark),
    ("final_episodes", Number(100.0), Standard::Benchmark),
    ("evaluation_temperature", Number(0.5), Standard::Paper),
    ("frame_size", Number(64.0), Standard::Paper),
    ("perceptual_loss", Bool(true), Standard::Paper),
];

/// The sizes of the minimal action sets of the Arcade Learning Environment, which the benchmark uses.
const MINIMAL_ACTIONS: [(&str, usize); 26] = [
    ("Alien", 18),
    ("Amidar", 10),
    ("Assault", 7),
    ("Asterix", 9),
    ("BankHeist", 18),
    ("BattleZone", 18),
    ("Boxing", 18),
    ("Breakout", 4),
    ("ChopperCommand", 18),
    ("CrazyClimber", 9),
    ("DemonAttack", 6),
    ("Freeway", 3),
    ("Frostbite", 18),
    ("Gopher", 8),
    ("Hero", 18),
    ("Jamesbond", 18),
    ("Kangaroo", 18),
    ("Krull", 18),
    ("KungFuMaster", 14),
    ("MsPacman", 9),
    ("Pong", 6),
    ("PrivateEye", 18),
    ("Qbert", 6),
    ("RoadRunner", 18),
    ("Seaquest", 18),
    ("UpNDown", 6),
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
            Some(Value::Array(segments)) if key == "segments" => {
                let segments: Vec<String> = segments.iter().map(segment).collect();
                segments.join("; ")
            }
            Some(origin @ Value::Object(_)) if key == "origin" => {
                let epoch = origin["epoch"].as_u64().unwrap_or_default();
                let run = origin["run"].as_str().unwrap_or_default();
                format!("{run}, epoch {epoch}")
            }
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
            .filter(|key| key.affects != Affects::Game)
            .collect()
    }

    /// Departures from the values that the benchmark and the paper prescribe for a game.
    pub fn departures(&self, game: &Game) -> Vec<Departure> {
        let label = |key: &str| {
            let known = KEYS.iter().find(|(known, ..)| *known == key);
            known.map_or(key, |known| known.1).to_owned()
        };
        let mut departures = Vec::new();
        for (key, prescribed, standard) in PRESCRIBED {
            let value = self.0.get(key);
            let (agrees, prescribed) = match *prescribed {
                Number(number) => {
                    let found = value.and_then(Value::as_f64);
                    (found == Some(number), number.to_string())
                }
                Bool(is) => {
                    let word = if is { "yes" } else { "no" };
                    (value.and_then(Value::as_bool) == Some(is), word.into())
                }
                Text(text) => (value.and_then(Value::as_str) == Some(text), text.into()),
            };
            if !agrees {
                departures.push(departure(
                    label(key),
                    value.map(|value| match value.as_f64() {
                        Some(number) => number.to_string(),
                        None => self.text(key),
                    }),
                    prescribed,
                    *standard,
                ));
            }
        }
        let minimal = MINIMAL_ACTIONS
            .iter()
            .find(|(name, _)| Game::named(name) == Some(game));
        let actions = self.0.get("actions").map(|_| self.0.actions().len());
        if let Some((_, minimal)) = minimal
            && actions != Some(*minimal)
        {
            departures.push(departure(
                "number of actions".into(),
                actions.map(|actions| actions.to_string()),
                minimal.to_string(),
                Standard::Benchmark,
            ));
        }
        departures
    }

    /// Whether both are equal except for values that are determined by the game.
    pub fn agrees(&self, other: &Self) -> bool {
        Self::keys([self, other])
            .iter()
            .all(|key| self.text(&key.key) == other.text(&key.key))
    }
}

/// `after epoch 28: train.epochs 28 → 40`
fn segment(segment: &Value) -> String {
    let epoch = segment["after_epoch"].as_u64().unwrap_or_default();
    let changes = segment["changes"].as_object().into_iter().flatten();
    let changes: Vec<String> = changes
        .map(|(key, change)| format!("{key} {} → {}", change["from"], change["to"]))
        .collect();
    format!("after epoch {epoch}: {}", changes.join(", "))
}

/// A departure; without a value, one that is not known.
fn departure(
    subject: String,
    value: Option<String>,
    prescribed: String,
    standard: Standard,
) -> Departure {
    Departure {
        subject,
        prescribed: value.is_some().then_some(prescribed),
        value: value.unwrap_or_else(|| "not known".into()),
        standard,
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

    /// The protocol of the paper for Pong, with one other value.
    fn paper_but(key: &str, value: Value) -> Protocol {
        let mut values = serde_json::json!({
            "environment_steps": 100000, "frame_skip": 4, "sticky_actions": 0.0, "max_noops_train": 30,
            "max_noops_test": 1, "end_on_life_loss_train": true, "end_on_life_loss_test": false,
            "max_steps_train": 20000, "max_steps_test": 108000, "rewards_in_scores": "unclipped",
            "final_episodes": 100, "evaluation_temperature": 0.5, "frame_size": 64,
            "perceptual_loss": true, "actions": ["noop", "fire", "right", "left", "right-fire", "left-fire"],
        });
        match value {
            Value::Null => {
                values.as_object_mut().unwrap().remove(key);
            }
            value => values[key] = value,
        }
        Protocol::of(&values.to_string())
    }

    #[test]
    fn every_departure_from_benchmark_and_paper_is_found() {
        use Standard::{Benchmark, Paper};
        use serde_json::json;
        let pong = Game::named("pong").unwrap();
        assert_eq!(paper_but("device", json!("cuda")).departures(pong), []);
        let table = [
            (
                "environment_steps",
                json!(98000),
                "environment steps 98000, not 100000",
                Benchmark,
            ),
            ("frame_skip", json!(1), "frame skip 1, not 4", Benchmark),
            (
                "sticky_actions",
                json!(0.25),
                "sticky actions 0.25, not 0",
                Benchmark,
            ),
            (
                "max_noops_train",
                json!(0),
                "max. no-ops, training 0, not 30",
                Benchmark,
            ),
            (
                "max_noops_test",
                json!(30),
                "max. no-ops, evaluation 30, not 1",
                Benchmark,
            ),
            (
                "end_on_life_loss_train",
                json!(false),
                "life loss ends episode, training no, not yes",
                Benchmark,
            ),
            (
                "end_on_life_loss_test",
                json!(true),
                "life loss ends episode, evaluation yes, not no",
                Benchmark,
            ),
            (
                "max_steps_train",
                json!(108000),
                "max. episode steps, training 108000, not 20000",
                Benchmark,
            ),
            (
                "max_steps_test",
                json!(27000),
                "max. episode steps, evaluation 27000, not 108000",
                Benchmark,
            ),
            (
                "rewards_in_scores",
                json!("clipped"),
                "rewards in scores clipped, not unclipped",
                Benchmark,
            ),
            (
                "final_episodes",
                json!(16),
                "episodes of the final evaluation 16, not 100",
                Benchmark,
            ),
            (
                "evaluation_temperature",
                json!(0.01),
                "evaluation temperature 0.01, not 0.5",
                Paper,
            ),
            ("frame_size", json!(32), "frame size 32, not 64", Paper),
            (
                "perceptual_loss",
                json!(false),
                "perceptual loss no, not yes",
                Paper,
            ),
            (
                "actions",
                json!(["noop"]),
                "number of actions 1, not 6",
                Benchmark,
            ),
            ("frame_skip", Value::Null, "frame skip not known", Benchmark),
            (
                "actions",
                Value::Null,
                "number of actions not known",
                Benchmark,
            ),
        ];
        for (key, value, text, standard) in table {
            let found = paper_but(key, value).departures(pong);
            let found: Vec<_> = found.iter().map(|d| (d.text(), d.standard)).collect();
            assert_eq!(found, [(text.to_owned(), standard)], "{key}");
        }
    }

    #[test]
    fn every_game_of_the_benchmark_has_a_minimal_action_set() {
        for game in Game::benchmark() {
            let of = |(name, _): &&(&str, usize)| Game::named(name) == Some(game);
            assert_eq!(
                MINIMAL_ACTIONS.iter().filter(of).count(),
                1,
                "{}",
                game.title()
            );
        }
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
