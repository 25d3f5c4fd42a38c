//! What a run directory tells, piece by piece: one that is broken or half-written is shown as far as it goes.

mod progress;
mod references;
mod summary;
mod tail;

use std::path::Path;

use rem::checkpoint;
use rem::config::Config;
use rem::run::{Scores, read_config};
use rem::showcase::{Picture, pictures};
use serde::Serialize;
use serde_json::Value;

use crate::error::Failure;
use crate::library::own_file;
pub use progress::{Progress, Timing};
pub use references::Reference;
pub use summary::{Glance, Summaries, Summary};
pub use tail::Tail;

/// Everything about a run that fits into a page at once.
#[derive(Debug, Serialize)]
pub struct Details {
    #[serde(flatten)]
    pub summary: Summary,
    /// `config.toml`, as it stands there.
    pub config: Option<String>,
    /// `protocol.json`.
    pub protocol: Option<Value>,
    /// `scores.json`.
    pub scores: Option<Scores>,
    pub references: Vec<Reference>,
    /// Steps that the world model learned to look ahead.
    pub horizon: Option<usize>,
    pub vocabulary: Option<usize>,
    pub checkpoints: Vec<u32>,
    pub media: Vec<Picture>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

impl Details {
    pub fn read(name: &str, dir: &Path) -> Self {
        let mut problems = Vec::new();
        let config = piece(&mut problems, config(dir).map_err(|e| e.to_string()));
        let protocol = piece(&mut problems, json(dir, "protocol.json")).flatten();
        let scores = piece(&mut problems, json::<Scores>(dir, "scores.json")).flatten();
        let summary = Glance::default().summary(name, dir);
        let game = summary.game.as_deref();
        Self {
            references: game.map_or_else(Vec::new, |game| references::of(game, protocol.as_ref())),
            config: text(dir, "config.toml"),
            horizon: config.as_ref().map(|config| config.train.horizon),
            vocabulary: config
                .as_ref()
                .map(|config: &Config| config.tokenizer.vocabulary),
            checkpoints: checkpoint::epochs(dir),
            media: pictures(dir),
            summary,
            protocol,
            scores,
            problems,
        }
    }
}

fn piece<T>(problems: &mut Vec<String>, read: Result<T, String>) -> Option<T> {
    read.map_err(|problem| problems.push(problem)).ok()
}

/// The config of a run.
pub fn config(dir: &Path) -> Result<Config, Failure> {
    let own = own_file(dir, "config.toml");
    own.map_err(|reason| Failure::Run { reason, hint: None })?;
    Ok(read_config(dir)?)
}

/// The names of a run's actions, if its protocol tells them.
pub fn action_names(dir: &Path) -> Vec<String> {
    let protocol: Option<Value> = json(dir, "protocol.json").ok().flatten();
    let names =
        protocol.and_then(|protocol| serde_json::from_value(protocol["actions"].clone()).ok());
    names.unwrap_or_default()
}

fn text(dir: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(own_file(dir, name).ok()??).ok()
}

/// A JSON file of a run, if it is there.
fn json<T: serde::de::DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>, String> {
    let Some(path) = own_file(dir, name)? else {
        return Ok(None);
    };
    let named = |reason: String| format!("`{}`: {reason}", path.display());
    let bytes = std::fs::read(&path).map_err(|error| named(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| named(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_broken_run_shows_what_it_has() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("broken");
        fs::create_dir_all(dir.join("media")).unwrap();
        fs::write(dir.join("config.toml"), "seed = ").unwrap();
        fs::write(
            dir.join("protocol.json"),
            r#"{"game": "catch", "random_player": -0.5}"#,
        )
        .unwrap();
        fs::write(dir.join("scores.json"), "{\"game\": \"ca").unwrap();
        for file in [
            "epoch-000002-dream.png",
            "epoch-000002-dream.png.tmp",
            "other.png",
        ] {
            fs::write(dir.join("media").join(file), "").unwrap();
        }
        let details = Details::read("broken", &dir);
        assert_eq!(details.problems.len(), 2, "{:?}", details.problems);
        assert_eq!(details.summary.game.as_deref(), Some("catch"));
        assert_eq!(details.config.as_deref(), Some("seed = "));
        assert_eq!(details.references[0].value, -0.5);
        assert_eq!(details.media.len(), 1);
        assert_eq!(
            (details.media[0].epoch, &details.media[0].kind[..]),
            (2, "dream.png")
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_lies_elsewhere_is_not_shown() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("run");
        fs::create_dir(&dir).unwrap();
        for name in ["config.toml", "protocol.json", "scores.json"] {
            fs::write(place.path().join(name), "{\"game\": \"a secret\"}").unwrap();
            std::os::unix::fs::symlink(place.path().join(name), dir.join(name)).unwrap();
        }
        let details = Details::read("run", &dir);
        assert_eq!(details.problems.len(), 3, "{:?}", details.problems);
        assert_eq!((details.config, details.protocol), (None, None));
        assert_eq!(details.summary.game, None);
    }

    #[test]
    fn actions_are_those_of_the_protocol() {
        let place = tempfile::tempdir().unwrap();
        let protocol = place.path().join("protocol.json");
        assert!(action_names(place.path()).is_empty());
        fs::write(&protocol, r#"{"actions": ["noop", 7]}"#).unwrap();
        assert!(action_names(place.path()).is_empty());
        fs::write(&protocol, r#"{"actions": ["noop", "left"]}"#).unwrap();
        assert_eq!(action_names(place.path()), ["noop", "left"]);
    }

    #[test]
    fn an_empty_directory_is_no_problem() {
        let place = tempfile::tempdir().unwrap();
        let details = Details::read("empty", place.path());
        assert_eq!(details.problems.len(), 1);
        assert!(details.media.is_empty() && details.checkpoints.is_empty());
    }
}
