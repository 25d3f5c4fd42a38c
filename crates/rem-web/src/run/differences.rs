//! The config keys in which some runs differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::config;

/// How the configs of some runs differ.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ConfigDifferences {
    /// The names of the runs.
    runs: Vec<String>,
    /// The keys with more than one value.
    keys: Vec<Key>,
    /// The number of keys with one value.
    same: usize,
    /// The runs whose config cannot be read.
    problems: Vec<String>,
}

/// A key, with its value in each run as TOML.
#[derive(Debug, PartialEq, Serialize)]
struct Key {
    key: String,
    /// `None` for a run without this key, as with another variant of a setting.
    values: Vec<Option<String>>,
}

impl ConfigDifferences {
    /// Reads the configs of these runs.
    pub fn read(runs: &[(String, PathBuf)]) -> Self {
        let mut problems = Vec::new();
        let mut values = |(name, dir): &(String, PathBuf)| match config(dir) {
            Ok(config) => Some(config.values()),
            Err(error) => {
                problems.push(format!("{name}: {error}"));
                None
            }
        };
        let configs: Vec<_> = runs.iter().map(&mut values).collect();
        let readable: Vec<_> = configs.iter().flatten().collect();
        let all: BTreeSet<&String> = readable.iter().flat_map(|config| config.keys()).collect();
        let differs = |key: &&&String| {
            let value = |config: &&BTreeMap<String, String>| config.get(**key).cloned();
            readable.windows(2).any(|w| value(&w[0]) != value(&w[1]))
        };
        let keys: Vec<Key> = (all.iter().filter(differs))
            .map(|key| Key {
                key: (*key).clone(),
                values: (configs.iter())
                    .map(|config| config.as_ref()?.get(*key).cloned())
                    .collect(),
            })
            .collect();
        Self {
            same: all.len() - keys.len(),
            runs: runs.iter().map(|(name, _)| name.clone()).collect(),
            keys,
            problems,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rem::config::Config;
    use std::fs;

    #[test]
    fn only_keys_with_different_values_are_listed() {
        let parent = tempfile::tempdir().unwrap();
        let run = |name: &str, set: &[&str]| {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).unwrap();
            let set: Vec<String> = set.iter().map(|&s| s.into()).collect();
            let config = Config::load("debug", &set).unwrap();
            fs::write(dir.join("config.toml"), config.to_toml()).unwrap();
            (name.to_owned(), dir)
        };
        let a = run("a", &["seed=1"]);
        let b = run("b", &["seed=2", "train.epochs=9"]);
        let keys = |found: &ConfigDifferences| -> Vec<String> {
            found.keys.iter().map(|key| key.key.clone()).collect()
        };
        let found = ConfigDifferences::read(&[a.clone(), b.clone()]);
        assert_eq!(keys(&found), ["seed", "train.epochs"]);
        assert_eq!(
            found.keys[0].values,
            [Some("1".to_owned()), Some("2".to_owned())]
        );
        assert!(found.same > 50 && found.problems.is_empty());
        assert!(keys(&ConfigDifferences::read(&[a.clone(), a.clone()])).is_empty());

        // A run without a config differs in nothing.
        let damaged = ("damaged".to_owned(), parent.path().join("absent"));
        let found = ConfigDifferences::read(&[a, damaged, b]);
        assert_eq!(keys(&found), ["seed", "train.epochs"]);
        assert_eq!(found.keys[0].values[1], None);
        assert!(found.problems[0].starts_with("damaged: "), "{found:?}");
    }
}
