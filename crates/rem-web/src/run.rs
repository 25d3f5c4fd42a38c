//! Reads run directories. Files are read independently, so that the intact part of a damaged run is shown.

mod columns;
mod differences;
mod files;
mod index;
mod preset;
mod references;
mod study;
mod summary;
mod tail;

use std::path::Path;

use rem::config::Config;
use rem::run::checkpoint;
use rem::run::{Scores, read_config};
use rem::train::eval_media::{EvalImage, eval_images};
use rem_run::{ProtocolValues, layout};
use serde::Serialize;

use crate::error::ApiError;
pub(crate) use columns::{Columns, Note};
pub(crate) use differences::ConfigDifferences;
pub(crate) use files::{file_in, replay};
use files::{read_json, read_text, run_file};
pub(crate) use index::RunIndex;
use references::Reference;
pub(crate) use study::StudyStatus;
pub(crate) use summary::{Summary, SummaryCache, SummaryReader};
pub(crate) use tail::{LogTail, NewLines};

/// Everything about a run that the page loads at once.
#[derive(Debug, Serialize)]
pub(crate) struct Details {
    #[serde(flatten)]
    pub summary: Summary,
    /// The text of `config.toml`.
    pub config: Option<String>,
    /// `protocol.json`.
    pub protocol: Option<ProtocolValues>,
    /// `scores.json`.
    pub scores: Option<Scores>,
    /// Reference scores for the return chart.
    pub references: Vec<Reference>,
    /// The imagination horizon, in steps.
    pub horizon: Option<usize>,
    /// The size of the codebook.
    pub vocabulary: Option<usize>,
    /// The epochs with a checkpoint.
    pub checkpoints: Vec<u32>,
    /// Images of evaluations.
    pub media: Vec<EvalImage>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

impl Details {
    /// Reads the run in `dir`.
    pub fn read(name: &str, dir: &Path) -> Self {
        let mut problems = Vec::new();
        let config = ok_or_push(&mut problems, config(dir).map_err(|e| e.to_string()));
        let protocol = ok_or_push(&mut problems, read_json(dir, layout::PROTOCOL)).flatten();
        let scores = read_json::<Scores>(dir, layout::SCORES);
        let scores = ok_or_push(&mut problems, scores).flatten();
        let summary = SummaryReader::default().read(name, dir);
        let game = summary.game.as_deref();
        Self {
            references: game.map_or_else(Vec::new, |game| references::of(game, protocol.as_ref())),
            config: read_text(dir, layout::CONFIG),
            horizon: config.as_ref().map(|config| config.train.horizon),
            vocabulary: config
                .as_ref()
                .map(|config: &Config| config.tokenizer.vocabulary),
            checkpoints: checkpoint::epochs(dir),
            media: eval_images(dir),
            summary,
            protocol,
            scores,
            problems,
        }
    }
}

fn ok_or_push<T>(problems: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}

/// The config of a run.
pub(crate) fn config(dir: &Path) -> Result<Config, ApiError> {
    let file = run_file(dir, layout::CONFIG);
    file.map_err(|reason| ApiError::Run { reason, hint: None })?;
    Ok(read_config(dir)?)
}

/// The names of the actions, if the protocol of the run lists them.
pub(crate) fn action_names(dir: &Path) -> Vec<String> {
    let protocol: Option<ProtocolValues> = read_json(dir, layout::PROTOCOL).ok().flatten();
    protocol.map_or_else(Vec::new, |protocol| protocol.actions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn intact_files_of_a_damaged_run_are_read() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("damaged");
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
        let details = Details::read("damaged", &dir);
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
    fn linked_files_outside_the_run_are_not_read() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        fs::create_dir(&dir).unwrap();
        for name in ["config.toml", "protocol.json", "scores.json"] {
            fs::write(parent.path().join(name), "{\"game\": \"a secret\"}").unwrap();
            std::os::unix::fs::symlink(parent.path().join(name), dir.join(name)).unwrap();
        }
        let details = Details::read("run", &dir);
        assert_eq!(details.problems.len(), 3, "{:?}", details.problems);
        assert_eq!((details.config, details.protocol), (None, None));
        assert_eq!(details.summary.game, None);
    }

    #[test]
    fn action_names_come_from_the_protocol() {
        let parent = tempfile::tempdir().unwrap();
        let protocol = parent.path().join("protocol.json");
        assert!(action_names(parent.path()).is_empty());
        fs::write(&protocol, r#"{"actions": ["noop", 7]}"#).unwrap();
        assert!(action_names(parent.path()).is_empty());
        fs::write(&protocol, r#"{"actions": ["noop", "left"]}"#).unwrap();
        assert_eq!(action_names(parent.path()), ["noop", "left"]);
    }

    #[test]
    fn an_empty_directory_has_only_the_missing_config_as_problem() {
        let parent = tempfile::tempdir().unwrap();
        let details = Details::read("empty", parent.path());
        assert_eq!(details.problems.len(), 1);
        assert!(details.media.is_empty() && details.checkpoints.is_empty());
    }
}
