//! Differences between two configs, and those with which a run can be continued.

use std::collections::BTreeMap;

use rem_run::SettingChange;
use serde_json::Value;

use super::{Config, ConfigError, OptimizerConfig, Result};

const FORK: &str = "`--fork NEW_RUN` starts another run from the checkpoint, with any settings";

impl Config {
    /// The settings, by their full keys, whose values are others in `other`.
    pub fn differences(&self, other: &Self) -> BTreeMap<String, SettingChange> {
        let (here, there) = (self.json_values(), other.json_values());
        let keys = here.keys().chain(there.keys());
        let value = |config: &BTreeMap<String, Value>, key| config.get(key).cloned();
        keys.map(|key| {
            let [from, to] = [&here, &there].map(|config| value(config, key).unwrap_or_default());
            (key.clone(), SettingChange { from, to })
        })
        .filter(|(_, change)| change.from != change.to)
        .collect()
    }

    /// As [`Self::values`], in JSON.
    pub(crate) fn json_values(&self) -> BTreeMap<String, Value> {
        let config = serde_json::to_value(self).expect("a config is always representable in JSON");
        let mut values = BTreeMap::new();
        flatten("", config, &mut values);
        values
    }

    /// Checks that a run with these settings can be continued with those in `next` after so many epochs: every epoch so
    /// far would have been the same with them.
    ///
    /// # Errors
    ///
    /// If not. The message names the setting.
    pub fn can_continue_as(&self, next: &Self, epochs: u32) -> Result<()> {
        let differences = self.differences(next);
        let free = |key: &str| {
            ["train.epochs", "threads", "device"].contains(&key) || key.starts_with("evaluate.")
        };
        if let Some(key) = differences.keys().find(|key| !free(key)) {
            let reason = reason(key);
            return Err(ConfigError::new(
                format!("`{key}` cannot change in a run: {reason}"),
                FORK,
            ));
        }
        if !differences.is_empty() && next.train.epochs <= epochs {
            return Err(ConfigError::new(
                format!(
                    "`train.epochs = {}`, but {epochs} epochs are complete",
                    next.train.epochs
                ),
                format!("set it to {} or more", epochs + 1),
            ));
        }
        for (name, optimizer) in [
            ("tokenizer", &self.tokenizer.optimizer),
            ("world_model", &self.world_model.optimizer),
            ("actor_critic", &self.actor_critic.optimizer),
        ] {
            if !same_rates(optimizer, [self, next].map(|c| c.train.epochs), epochs) {
                return Err(ConfigError::new(
                    format!(
                        "`train.epochs` cannot change: the learning rate of `{name}` falls until the last epoch \
                         (`final_lr_fraction = {}`)",
                        optimizer.final_lr_fraction
                    ),
                    FORK,
                ));
            }
        }
        Ok(())
    }
}

/// Whether the learning rates of all epochs up to `done` are those of a run of another length.
fn same_rates(optimizer: &OptimizerConfig, lengths: [u32; 2], done: u32) -> bool {
    (1..=done)
        .filter(|epoch| optimizer.learns_in(*epoch))
        .all(|epoch| {
            let [a, b] = lengths.map(|epochs| optimizer.learning_rate_in(epoch, epochs));
            a == b
        })
}

/// Why a setting cannot change in a run.
fn reason(key: &str) -> &'static str {
    match key.split('.').next() {
        Some("seed") => "it determines all random numbers",
        Some("env" | "collect") => "it determines the experience",
        _ => "all epochs of a run are trained with the same settings",
    }
}

fn flatten(prefix: &str, value: Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, into);
            }
        }
        value => {
            into.insert(prefix.into(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn debug(set: &[&str]) -> Config {
        let set: Vec<String> = set.iter().map(|s| (*s).into()).collect();
        Config::load("debug", &set).unwrap()
    }

    #[test]
    fn differences_have_full_keys_and_both_values() {
        let changed = debug(&["train.epochs=9", "world_model.architecture=transformer"]);
        let differences = debug(&[]).differences(&changed);
        assert_eq!(differences["train.epochs"].to, json!(9));
        let SettingChange { from, to } = &differences["world_model.architecture.type"];
        assert_eq!((from, to), (&json!("pop"), &json!("transformer")));
        // A key of the old variant alone.
        assert_eq!(differences["world_model.architecture.mode"].to, Value::Null);
        assert!(debug(&[]).differences(&debug(&[])).is_empty());
    }

    #[track_caller]
    fn refused(old: &Config, set: &[&str], epochs: u32) -> String {
        let error = old.can_continue_as(&debug(set), epochs).unwrap_err();
        assert!(!error.hint().is_empty());
        error.to_string()
    }

    #[test]
    fn only_settings_without_effect_on_past_epochs_can_change() {
        let old = debug(&[]);
        for set in [
            "train.epochs=9",
            "evaluate.every=3",
            "threads=7",
            "evaluate.final_episodes=9",
        ] {
            old.can_continue_as(&debug(&[set]), 2).unwrap();
        }
        let message = refused(&old, &["seed=2"], 2);
        assert_eq!(
            message,
            "`seed` cannot change in a run: it determines all random numbers"
        );
        assert!(refused(&old, &["world_model.layers=3"], 2).contains("`world_model.layers`"));
        assert!(refused(&old, &["collect.epsilon=0.3"], 0).contains("the experience"));
        let message = refused(&old, &["train.epochs=3"], 3);
        assert_eq!(message, "`train.epochs = 3`, but 3 epochs are complete");
        // A complete run would not train with the new settings.
        refused(&old, &["evaluate.every=3"], 4);
        old.can_continue_as(&old, 4).unwrap();
    }

    /// A learning rate that falls until the end of the run determines its length, once the component learns.
    #[test]
    fn epochs_cannot_change_under_a_schedule() {
        let decay = "world_model.optimizer.final_lr_fraction=0.5";
        let start = "world_model.optimizer.start_after=1";
        let old = debug(&[decay, start]);
        let longer = ["train.epochs=9", decay, start];
        // The rate of the first epoch is that of a run of any length.
        old.can_continue_as(&debug(&longer), 2).unwrap();
        assert!(refused(&old, &longer, 3).contains("the learning rate of `world_model` falls"));
        // A component whose training has ended.
        let stops = "world_model.optimizer.stop_after=3";
        let old = debug(&[decay, start, stops]);
        let longer = debug(&["train.epochs=9", decay, start, stops]);
        old.can_continue_as(&longer, 3).unwrap();
    }
}
