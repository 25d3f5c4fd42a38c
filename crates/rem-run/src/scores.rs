//! `scores.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::json::{read_json, write_json};
use crate::layout;

/// The returns of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The epoch after which the agent was evaluated.
    pub epoch: u32,
    /// Environment steps collected until then.
    pub steps: u64,
    /// The mean of `returns`.
    pub mean: f64,
    /// The return of each episode.
    pub returns: Vec<f32>,
}

/// The scores of a run: `scores.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The name of the environment.
    pub game: String,
    /// The seed of the run.
    pub seed: u64,
    /// All evaluations, in order.
    pub evaluations: Vec<Score>,
    /// The last evaluation, once the run is finished.
    #[serde(rename = "final")]
    pub final_score: Option<Score>,
}

const HINT: &str = "`rem train` rewrites this file after each evaluation; if it is damaged, leave the run out or resume it";

impl Scores {
    /// The scores of the run in `dir`. `None` before its first evaluation.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        Self::read_file(&dir.join(layout::SCORES))
    }

    /// As [`Scores::read`], given the path of the file.
    ///
    /// # Errors
    ///
    /// As [`Scores::read`].
    pub fn read_file(path: &Path) -> Result<Option<Self>> {
        read_json(path, HINT)
    }

    /// Replaces `scores.json` in `dir`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join(layout::SCORES), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scores.json");
        std::fs::write(&path, text).unwrap();
        let error = Scores::read(dir.path()).unwrap_err();
        assert!(!error.hint().is_empty());
        let prefix = format!("`{}`: ", path.display());
        let message = error.to_string();
        message.strip_prefix(&prefix).expect(&message).to_owned()
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        let with = |last: &str| {
            format!(r#"{{"game": "pong", "seed": 1, "evaluations": [], "final": {last}}}"#)
        };
        let table = [
            ("{".to_owned(), "EOF while parsing"),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": "high", "returns": [1]}"#),
                "`final.mean`: invalid type: string \"high\"",
            ),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": null, "returns": [1]}"#),
                "`final.mean`: invalid type: null",
            ),
            (r#"{"game": "pong"}"#.to_owned(), "missing field `seed`"),
            (with("null") + "x", "trailing characters"),
        ];
        for (text, expected) in table {
            let message = message(&text);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn rewriting_scores_preserves_every_byte() {
        let text = r#"{
  "game": "catch",
  "seed": 1,
  "evaluations": [
    {
      "epoch": 4,
      "steps": 9,
      "mean": 0.10000000149011612,
      "returns": [
        0.1
      ]
    }
  ],
  "final": null
}
"#;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scores.json");
        std::fs::write(&path, text).unwrap();
        let scores = Scores::read(dir.path()).unwrap().unwrap();
        scores.write(dir.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
