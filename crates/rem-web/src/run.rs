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

pub use progress::{Progress, Timing};
pub use references::Reference;
pub use summary::Summary;
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
        let config = piece(&mut problems, read_config(dir).map_err(|e| e.to_string()));
        let protocol = piece(&mut problems, json(&dir.join("protocol.json"))).flatten();
        let scores = piece(&mut problems, json::<Scores>(&dir.join("scores.json"))).flatten();
        let summary = Summary::read(name, dir);
        let game = summary.game.as_deref();
        Self {
            references: game.map_or_else(Vec::new, |game| references::of(game, protocol.as_ref())),
            config: std::fs::read_to_string(dir.join("config.toml")).ok(),
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

/// A JSON file, if it is there.
fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let named = |reason: String| format!("`{}`: {reason}", path.display());
    let bytes = std::fs::read(path).map_err(|error| named(error.to_string()))?;
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

    #[test]
    fn an_empty_directory_is_no_problem() {
        let place = tempfile::tempdir().unwrap();
        let details = Details::read("empty", place.path());
        assert_eq!(details.problems.len(), 1);
        assert!(details.media.is_empty() && details.checkpoints.is_empty());
    }
}
