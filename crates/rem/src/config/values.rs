//! A config as a list of values, to compare it with others.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Config, PRESETS};

/// Keys in which runs of the same settings differ.
const PER_RUN: [&str; 4] = ["seed", "device", "threads", "env.game"];

/// The preset that is nearest to a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearestPreset {
    /// Its name.
    pub name: &'static str,
    /// The number of keys in which the config differs from it, without seed, game, device and threads.
    pub changes: usize,
}

/// The values of every preset for a game.
#[derive(Debug)]
pub struct PresetValues(Vec<(&'static str, BTreeMap<String, String>)>);

impl PresetValues {
    /// Loads all presets with the settings of this game. Presets that do not suit it are left out.
    pub fn of_game(game: &str) -> Self {
        let of = |name: &'static str| {
            let config = Config::load(name, &[format!("env.game={game}")]).ok()?;
            Some((name, config.values()))
        };
        Self(PRESETS.iter().filter_map(|(name, _)| of(name)).collect())
    }

    /// The preset with the fewest other values. Of several, the first in [`PRESETS`].
    pub fn nearest(&self, config: &Config) -> Option<NearestPreset> {
        let values = config.values();
        let presets = self.0.iter().map(|(name, preset)| NearestPreset {
            name,
            changes: changes(&values, preset),
        });
        presets.min_by_key(|preset| preset.changes)
    }
}

fn changes(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> usize {
    let counts = |key: &&String| !PER_RUN.contains(&key.as_str());
    let changed = a.iter().filter(|(key, value)| b.get(*key) != Some(value));
    let removed = b.keys().filter(|key| !a.contains_key(*key));
    changed
        .map(|(key, _)| key)
        .chain(removed)
        .filter(counts)
        .count()
}

impl Config {
    /// The value of every key, such as `world_model.optimizer.steps_per_epoch`, as TOML.
    pub fn values(&self) -> BTreeMap<String, String> {
        let table = Table::try_from(self).expect("a config is always representable in TOML");
        let mut values = BTreeMap::new();
        flatten(&table, "", &mut values);
        values
    }
}

fn flatten(table: &Table, prefix: &str, into: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            Value::Table(inner) => flatten(inner, &format!("{key}."), into),
            value => drop(into.insert(key, value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(preset: &str, set: &[&str]) -> NearestPreset {
        let set: Vec<String> = set.iter().map(|&s| s.into()).collect();
        let config = Config::load(preset, &set).unwrap();
        let known = PresetValues::of_game(&config.env.game);
        known.nearest(&config).unwrap()
    }

    #[test]
    fn every_preset_is_nearest_to_itself() {
        for (name, _) in PRESETS {
            let found = nearest(name, &["seed=7", "threads=3"]);
            assert_eq!(found.changes, 0, "{name}: {found:?}");
        }
    }

    #[test]
    fn changes_are_counted_by_key() {
        let found = nearest("quick", &["train.horizon=7", "collect.epsilon=0.5"]);
        assert_eq!(
            found,
            NearestPreset {
                name: "quick",
                changes: 2
            }
        );
        // Settings of single games are not changes.
        let game = nearest("atari-laptop", &["env.game=freeway", "seed=3"]);
        assert_eq!((game.name, game.changes), ("atari-laptop", 0));
    }

    #[test]
    fn values_have_the_full_key_and_toml_syntax() {
        let values = Config::load("quick", &[]).unwrap().values();
        assert_eq!(values["env.game"], "\"catch\"");
        assert_eq!(values["env.max_steps.train"], "1000");
        assert!(!values.contains_key("env"));
    }
}
