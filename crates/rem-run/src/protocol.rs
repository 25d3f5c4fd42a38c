//! `protocol.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::FORMAT;
use crate::error::{Error, Result};
use crate::json::{read_json, write_json};
use crate::layout;

/// What the scores of a run mean: `protocol.json`, written at the start, and again when the run is continued with other
/// settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// The format of the run directory, [`FORMAT`] in new runs. Files without one have format 1.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The version of `rem`.
    pub rem_version: String,
    /// The git revision that `rem` was built from.
    pub git_revision: String,
    /// The version of Burn.
    pub burn_version: String,
    /// The device that the run trains on.
    pub device: String,
    /// Number of CPU threads.
    pub threads: usize,
    /// The numeric precision of training.
    pub precision: String,
    /// The name of the environment.
    pub game: String,
    /// The names of its actions.
    pub actions: Vec<String>,
    /// Height and width of a frame in pixels.
    pub frame_size: usize,
    /// Emulator frames per environment step.
    pub frame_skip: u32,
    /// The probability that the emulator repeats the previous action.
    pub sticky_actions: f64,
    /// The maximum number of no-ops at the start of a training episode.
    pub max_noops_train: u32,
    /// The maximum number of no-ops at the start of an evaluation episode.
    pub max_noops_test: u32,
    /// The version of the Arcade Learning Environment, for Atari games.
    pub ale_version: Option<String>,
    /// Whether the loss of a life ends a training episode.
    pub end_on_life_loss_train: bool,
    /// Whether the loss of a life ends an evaluation episode.
    pub end_on_life_loss_test: bool,
    /// Steps after which a training episode is truncated.
    pub max_steps_train: u32,
    /// Steps after which an evaluation episode is truncated.
    pub max_steps_test: u32,
    /// How rewards enter the scores.
    pub rewards_in_scores: String,
    /// How rewards enter the world model.
    pub rewards_in_world_model: String,
    /// The sampling temperature of the policy in evaluations.
    pub evaluation_temperature: f64,
    /// Episodes of the final evaluation.
    pub final_episodes: usize,
    /// Environment steps of the whole run.
    pub environment_steps: u64,
    /// The imagination mode of the world model, in words.
    pub imagination_mode: String,
    /// The measured times that selected the mode, with `world_model.architecture.mode = "auto"`.
    pub pop_mode_measured: Option<PopModeTimes>,
    /// Whether the tokenizer is trained with a perceptual loss.
    pub perceptual_loss: bool,
    /// CRC-32 of the LPIPS weights, with a perceptual loss.
    pub perceptual_crc32: Option<u32>,
    /// The mean return of a random policy by the evaluation protocol.
    pub random_player: f64,
    /// The mean return of the scripted policy by the evaluation protocol, if the environment has one.
    pub scripted_player: Option<f64>,
    /// Episodes behind `random_player`.
    pub baseline_episodes: usize,
    /// Environments that collect experience side by side.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub collect_envs: usize,
    /// The environment, if it is neither a built-in game nor a native Atari game.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvDetails>,
    /// The recorded episodes of a run that collects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataDetails>,
    /// The presets that the config was made from, as they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The checkpoint that the run started from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Every continuation of the run with other settings. The other values are those of the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<ProtocolSegment>,
    /// Where the agent comes from, if this is an exported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported: Option<ExportDetails>,
}

/// The checkpoint that a fork started from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The run directory, as it was given.
    pub run: String,
    /// The epoch of its checkpoint, at which the epochs of the fork continue.
    pub epoch: u32,
    /// Settings that differ from those of that run, by key.
    pub changes: BTreeMap<String, SettingChange>,
}

/// A part of a run with settings of its own, which follows a part with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolSegment {
    /// The last epoch with the settings before.
    pub after_epoch: u32,
    /// Settings that changed, by key.
    pub changes: BTreeMap<String, SettingChange>,
    /// CRC-32 of the config before, which checkpoints up to `after_epoch` name.
    pub config_crc32_before: u32,
    /// The version of `rem` that continued the run.
    pub rem_version: String,
    /// The git revision that it was built from.
    pub git_revision: String,
}

/// A setting that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The value before; null if the key is that of a new variant.
    pub from: Value,
    /// The value from then on; null if the key is that of an old variant.
    pub to: Value,
}

/// The origin of an exported agent. The other values of the protocol are those of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportDetails {
    /// The name of the run's directory.
    pub run: String,
    /// The epoch of its checkpoint.
    pub epoch: u32,
    /// The command that trained the run, as given at the export.
    pub command: Option<String>,
    /// The type of the weights. Scores were measured before the conversion to it.
    pub weights: String,
    /// The git revision of the `rem` that exported it.
    pub git_revision: String,
}

/// The recorded episodes that a run is trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataDetails {
    /// The data set or run, as it was given.
    pub source: String,
    /// Number of episodes.
    pub episodes: usize,
    /// Number of steps.
    pub steps: usize,
    /// Whether there is an environment to evaluate the agent in.
    pub evaluated: bool,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// An environment that is neither a built-in game nor a native Atari game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvDetails {
    /// What it shows, before wrappers, in words.
    pub observation_space: String,
    /// Which actions it takes, in words.
    pub action_space: String,
    /// The wrappers around it, in words.
    pub wrappers: Vec<String>,
    /// Whether its state can be saved. If not, a resumed run starts a new episode, and differs from an uninterrupted one.
    pub snapshots: bool,
    /// Versions of Python and its packages.
    pub packages: BTreeMap<String, String>,
}

/// Milliseconds per imagined step in each imagination mode of POP (Appendix A.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopModeTimes {
    /// Default mode: two calls of the network per step.
    pub two_calls_ms: f64,
    /// Alternative mode: one call of the network per step.
    pub one_call_ms: f64,
}

const HINT: &str = "`rem train` writes this file at the start of the run; restore it";

const fn first_format() -> u32 {
    1
}

impl Protocol {
    /// The protocol of the run in `dir`. `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is invalid, or has a newer [`FORMAT`].
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(layout::PROTOCOL);
        // A newer format may lack a key of this one: report the format, not the key.
        match ProtocolValues::read_file(&path)? {
            Some(_) => read_json(&path, HINT),
            None => Ok(None),
        }
    }

    /// Writes `protocol.json` into `dir`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join(layout::PROTOCOL), self)
    }
}

/// The values of a `protocol.json` by key, written by any version of `rem`.
///
/// For readers that show what the file has: keys of [`Protocol`] may be missing, and other keys may be present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtocolValues(BTreeMap<String, Value>);

impl ProtocolValues {
    /// The protocol of the run in `dir`. `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is invalid, or has a newer [`FORMAT`].
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        Self::read_file(&dir.join(layout::PROTOCOL))
    }

    /// As [`ProtocolValues::read`], given the path of the file.
    ///
    /// # Errors
    ///
    /// As [`ProtocolValues::read`].
    pub fn read_file(path: &Path) -> Result<Option<Self>> {
        let Some(values) = read_json::<Self>(path, HINT)? else {
            return Ok(None);
        };
        match values.format() {
            found if found > FORMAT => Err(Error::NewerFormat {
                path: path.into(),
                found,
            }),
            _ => Ok(Some(values)),
        }
    }

    /// The format of the run directory.
    pub fn format(&self) -> u32 {
        let format = self.0.get("format").and_then(Value::as_u64);
        format.map_or(first_format(), |format| {
            u32::try_from(format).unwrap_or(u32::MAX)
        })
    }

    /// All keys except `format`, which does not affect the meaning of the scores.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|key| *key != "format")
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The value of `key`, if it is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64()
    }

    /// The value of `key`, if it is a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The names of the actions. Empty if the file does not list them.
    pub fn actions(&self) -> Vec<String> {
        let names = self.get("actions").and_then(Value::as_array);
        let names = names.map(|names| names.iter().map(|name| Some(name.as_str()?.to_owned())));
        names
            .and_then(Iterator::collect::<Option<_>>)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Protocol {
        Protocol {
            format: FORMAT,
            rem_version: "0.1.0".into(),
            git_revision: "0".into(),
            burn_version: "0.22.1".into(),
            device: "flex".into(),
            threads: 1,
            precision: "f32".into(),
            game: "catch".into(),
            actions: vec!["left".into(), "stay".into(), "right".into()],
            frame_size: 64,
            frame_skip: 1,
            sticky_actions: 0.0,
            max_noops_train: 0,
            max_noops_test: 0,
            ale_version: None,
            end_on_life_loss_train: false,
            end_on_life_loss_test: false,
            max_steps_train: 100,
            max_steps_test: 100,
            rewards_in_scores: "unclipped".into(),
            rewards_in_world_model: "sign".into(),
            evaluation_temperature: 0.5,
            final_episodes: 100,
            environment_steps: 4000,
            imagination_mode: "POP, two calls per step".into(),
            pop_mode_measured: Some(PopModeTimes {
                two_calls_ms: 1.5,
                one_call_ms: 2.0,
            }),
            perceptual_loss: false,
            perceptual_crc32: None,
            random_player: -0.6,
            scripted_player: Some(1.0),
            baseline_episodes: 200,
            collect_envs: 1,
            environment: None,
            data: None,
            preset: None,
            origin: None,
            segments: Vec::new(),
            exported: None,
        }
    }

    #[test]
    fn a_protocol_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Protocol::read(dir.path()).unwrap(), None);
        example().write(dir.path()).unwrap();
        assert_eq!(Protocol::read(dir.path()).unwrap(), Some(example()));
        let values = ProtocolValues::read(dir.path()).unwrap().unwrap();
        assert_eq!(values.format(), FORMAT);
        assert_eq!(values.number("random_player"), Some(-0.6));
        assert_eq!(values.text("game"), Some("catch"));
        assert_eq!(values.actions(), example().actions);
        assert!(values.keys().all(|key| key != "format"));
    }

    #[test]
    fn the_format_is_the_first_key() {
        let text = serde_json::to_string_pretty(&example()).unwrap();
        assert!(text.starts_with("{\n  \"format\": 2,\n  \"rem_version\": \"0.1.0\",\n"));
    }

    #[test]
    fn a_file_without_a_format_has_format_1() {
        let mut value = serde_json::to_value(example()).unwrap();
        value.as_object_mut().unwrap().remove("format");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(layout::PROTOCOL), value.to_string()).unwrap();
        assert_eq!(Protocol::read(dir.path()).unwrap().unwrap().format, 1);
    }

    #[test]
    fn a_newer_format_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"format": 3, "unknown": true}"#;
        std::fs::write(dir.path().join(layout::PROTOCOL), text).unwrap();
        let typed = Protocol::read(dir.path()).unwrap_err();
        let untyped = ProtocolValues::read(dir.path()).unwrap_err();
        for error in [typed, untyped] {
            assert!(matches!(error, Error::NewerFormat { found: 3, .. }));
            assert!(error.to_string().contains("run format 3 is newer than 2"));
            assert_eq!(error.hint(), "update `rem` to read this run");
        }
    }

    #[test]
    fn values_of_a_partial_file_are_read() {
        let parse = |text| serde_json::from_str::<ProtocolValues>(text).unwrap();
        let values = parse(r#"{"frame_skip": 4, "actions": ["noop", 7]}"#);
        assert_eq!(values.format(), 1);
        assert_eq!(values.number("frame_skip"), Some(4.0));
        assert_eq!(values.text("game"), None);
        assert!(values.actions().is_empty());
    }
}
