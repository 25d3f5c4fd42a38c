//! A run of ours, out of the files of its directory.

use std::fmt;
use std::path::{Path, PathBuf};

use rem_stats::Game;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::protocol::Protocol;

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its directory's name.
    pub name: String,
    pub path: PathBuf,
    pub game: GameName,
    pub seed: u64,
    /// One for each number of steps, the last one made at it.
    pub evaluations: Vec<Evaluation>,
    /// None while the run is not finished.
    pub score: Option<f64>,
    /// None if the file is missing.
    pub protocol: Option<Protocol>,
}

/// A game of the benchmark, or any other.
#[derive(Clone, Debug, PartialEq)]
pub enum GameName {
    Benchmark(&'static Game),
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Environment steps that the agent had learned from.
    pub steps: u64,
    pub mean: f64,
}

/// `scores.json`.
#[derive(Deserialize)]
struct ScoresFile {
    game: String,
    seed: u64,
    evaluations: Vec<Score>,
    #[serde(rename = "final")]
    last: Option<Score>,
}

#[derive(Deserialize)]
struct Score {
    steps: u64,
    mean: f64,
    returns: Vec<f64>,
}

impl Run {
    /// Whether there is a run of ours in `dir`, maybe one without scores yet.
    pub fn is_in(dir: &Path) -> bool {
        let has = |file| dir.join(file).is_file();
        has("scores.json") || has("protocol.json")
    }

    /// The run in `dir`, or None if it has no `scores.json` yet.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let file = dir.join("scores.json");
        if !file.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        let scores = parse(&file, &text)?;
        let evaluations = at_each_step(&scores.evaluations);
        Ok(Some(Self {
            name: name_of(dir),
            path: dir.into(),
            game: GameName::new(&scores.game),
            seed: scores.seed,
            evaluations,
            score: scores.last.map(|score| score.mean),
            protocol: Protocol::read(dir)?,
        }))
    }

    pub fn last_steps(&self) -> u64 {
        self.evaluations.last().map_or(0, |last| last.steps)
    }
}

/// The last part of a path, also of `.` and `..`.
fn name_of(path: &Path) -> String {
    let named = path.file_name().map(ToOwned::to_owned);
    let name = named.or_else(|| path.canonicalize().ok()?.file_name().map(ToOwned::to_owned));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of the folder that `dir` lies in, as it was typed: links are not followed.
pub fn name_of_parent(dir: &Path) -> String {
    match (dir.file_name(), dir.parent()) {
        (Some(_), Some(parent)) if parent.as_os_str().is_empty() => name_of(Path::new(".")),
        (Some(_), Some(parent)) => name_of(parent),
        _ => name_of(&dir.join("..")),
    }
}

/// Whether this is the text of a run's `scores.json`, and not of scores by game.
pub fn is_scores_of_run(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        #[serde(rename = "game")]
        _game: serde::de::IgnoredAny,
        #[serde(rename = "evaluations")]
        _evaluations: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Keys>(text).is_ok()
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn parse(file: &Path, text: &str) -> Result<ScoresFile> {
    let broken = |reason: String| {
        Error::Input {
        path: file.into(),
        reason,
hint: match is_scores_of_run(text) || !is_json(text) {
            true => "it belongs to the run, which writes it anew after each epoch; leave the run out if it is damaged",
            false => "if these are scores by game, name the file itself and not its folder",
        }
        .into(),
    }
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let scores: ScoresFile = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        match error.path().to_string().as_str() {
            "." | "?" => broken(error.inner().to_string()),
            key => broken(format!("`{key}`: {}", error.inner())),
        }
    })?;
    json.end().map_err(|error| broken(error.to_string()))?;
    let all = scores.evaluations.iter().enumerate();
    let named = all.map(|(index, score)| (format!("evaluations[{index}]"), score));
    let last = scores.last.iter().map(|score| ("final".to_owned(), score));
    for (key, score) in named.chain(last) {
        if score.returns.is_empty() {
            return Err(broken(format!("`{key}.returns` is empty")));
        }
        let mean = score.returns.iter().sum::<f64>() / score.returns.len() as f64;
        if (mean - score.mean).abs() > 1e-3 * mean.abs().max(1.0) {
            let reason = format!(
                "`{key}.mean` is {}, and that of its returns {mean}",
                score.mean
            );
            return Err(broken(reason));
        }
    }
    Ok(scores)
}

/// The last evaluation at each number of steps: an agent may learn on when it has stopped collecting.
fn at_each_step(scores: &[Score]) -> Vec<Evaluation> {
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for score in scores {
        if evaluations
            .last()
            .is_some_and(|last| last.steps == score.steps)
        {
            evaluations.pop();
        }
        evaluations.push(Evaluation {
            steps: score.steps,
            mean: score.mean,
        });
    }
    evaluations
}

impl GameName {
    pub fn new(name: &str) -> Self {
        match Game::named(name) {
            Some(game) => Self::Benchmark(game),
            None => Self::Other(name.into()),
        }
    }
}

impl fmt::Display for GameName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Benchmark(game) => game.title(),
            Self::Other(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        match parse(Path::new("run/scores.json"), text) {
            Ok(_) => panic!("{text} was read"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn damage_is_named_by_file_and_key() {
        let with = |last: &str| {
            format!(r#"{{"game": "pong", "seed": 1, "evaluations": [], "final": {last}}}"#)
        };
        let table = [
            ("{".to_owned(), "`run/scores.json`: EOF while parsing"),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": "high", "returns": [1]}"#),
                "`run/scores.json`: `final.mean`: invalid type: string \"high\"",
            ),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": null, "returns": [1]}"#),
                "`run/scores.json`: `final.mean`: invalid type: null",
            ),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": 1, "returns": []}"#),
                "`run/scores.json`: `final.returns` is empty",
            ),
            (
                with(r#"{"epoch": 1, "steps": 5, "mean": 2, "returns": [1, 1]}"#),
                "`run/scores.json`: `final.mean` is 2, and that of its returns 1",
            ),
            (
                r#"{"game": "pong"}"#.to_owned(),
                "`run/scores.json`: missing field `seed`",
            ),
        ];
        for (text, expected) in table {
            let message = message(&text);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn the_last_evaluation_at_the_same_steps_counts() {
        let score = |steps, mean| Score {
            steps,
            mean,
            returns: vec![mean],
        };
        let found = at_each_step(&[score(10, 1.0), score(20, 2.0), score(20, 3.0)]);
        let expected = [(10, 1.0), (20, 3.0)].map(|(steps, mean)| Evaluation { steps, mean });
        assert_eq!(found, expected);
    }

    #[test]
    fn names_of_folders() {
        assert_eq!(name_of_parent(Path::new("a/runs/pong")), "runs");
        assert_eq!(name_of_parent(Path::new("runs/pong/")), "runs");
        let here = std::env::current_dir().unwrap();
        let here = here.file_name().unwrap().to_str().unwrap();
        assert_eq!(name_of_parent(Path::new("pong")), here);
        assert_eq!(name_of_parent(Path::new("src/.")), here);
        assert_eq!(
            name_of_parent(Path::new("src/..")),
            name_of(Path::new(".."))
        );
    }

    #[test]
    fn the_two_kinds_of_json_are_told_apart() {
        assert!(is_scores_of_run(
            r#"{"game": "catch", "seed": 1, "evaluations": [], "final": null}"#
        ));
        assert!(!is_scores_of_run(r#"{"Pong": [1]}"#));
        assert!(!is_scores_of_run("{"));
    }
}
