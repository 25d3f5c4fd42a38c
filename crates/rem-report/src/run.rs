//! Runs, read from their directories.

use std::fmt;
use std::path::{Path, PathBuf};

use rem_run::{Score, Scores, layout};
use rem_stats::Game;
use serde::Deserialize;

use crate::departures::{Departure, Standard};
use crate::error::{Error, Result};
use crate::losses::ObservationLosses;
use crate::protocol::Protocol;
use crate::settings;

/// The scores and the protocol of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of its directory.
    pub name: String,
    /// The path of its directory.
    pub path: PathBuf,
    /// The game.
    pub game: GameName,
    /// The seed.
    pub seed: u64,
    /// The last evaluation at each number of steps.
    pub evaluations: Vec<Evaluation>,
    /// The final score. `None` if the run is not finished.
    pub score: Option<f64>,
    /// The protocol. `None` if the file is missing.
    pub protocol: Option<Protocol>,
    /// Departures from the protocol of the benchmark and from the paper, on games of the benchmark.
    pub departures: Vec<Departure>,
    /// Observation losses of the world model.
    pub losses: ObservationLosses,
}

/// A game of the benchmark, or any other.
#[derive(Clone, Debug, PartialEq)]
pub enum GameName {
    /// A game of the Atari 100K benchmark.
    Benchmark(&'static Game),
    /// Any other game.
    Other(String),
}

/// The score of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Environment steps collected until then.
    pub steps: u64,
    /// The mean return.
    pub mean: f64,
}

impl Run {
    /// The run in `dir`. `None` if it has no scores yet.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let Some(scores) = read_scores(&dir.join(layout::SCORES))? else {
            return Ok(None);
        };
        let game = GameName::new(&scores.game);
        let protocol = Protocol::read(dir)?;
        let departures = match &game {
            GameName::Benchmark(game) => departures(dir, game, protocol.as_ref())?,
            GameName::Other(_) => Vec::new(),
        };
        Ok(Some(Self {
            name: name_of(dir),
            path: dir.into(),
            game,
            seed: scores.seed,
            evaluations: last_at_each_step(&scores.evaluations),
            score: scores.final_score.map(|score| score.mean),
            protocol,
            departures,
            losses: ObservationLosses::read(dir)?,
        }))
    }

    #[cfg(test)]
    pub fn example(game: &str, seed: u64) -> Self {
        Self {
            name: format!("{game}-{seed}"),
            path: format!("{game}-{seed}").into(),
            game: GameName::new(game),
            seed,
            evaluations: Vec::new(),
            score: None,
            protocol: None,
            departures: Vec::new(),
            losses: ObservationLosses::default(),
        }
    }

    /// Environment steps at the last evaluation.
    pub fn last_steps(&self) -> u64 {
        self.evaluations.last().map_or(0, |last| last.steps)
    }
}

/// All departures of the run in `dir` on a game of the benchmark: those of its protocol, then its other settings.
fn departures(dir: &Path, game: &Game, protocol: Option<&Protocol>) -> Result<Vec<Departure>> {
    let unknown = || {
        vec![Departure {
            subject: "protocol".into(),
            value: "not known (no protocol.json)".into(),
            prescribed: None,
            standard: Standard::Benchmark,
        }]
    };
    let mut departures = protocol.map_or_else(unknown, |protocol| protocol.departures(game));
    departures.extend(settings::departures(dir)?);
    Ok(departures)
}

/// The last component of a path, also of `.` and `..`.
fn name_of(path: &Path) -> String {
    let named = path.file_name().map(ToOwned::to_owned);
    let name = named.or_else(|| path.canonicalize().ok()?.file_name().map(ToOwned::to_owned));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of the parent directory of `dir`, without following links.
pub fn name_of_parent(dir: &Path) -> String {
    match (dir.file_name(), dir.parent()) {
        (Some(_), Some(parent)) if parent.as_os_str().is_empty() => name_of(Path::new(".")),
        (Some(_), Some(parent)) => name_of(parent),
        _ => name_of(&dir.join("..")),
    }
}

/// Whether a text is the `scores.json` of a run, not a file of scores by game.
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

/// The scores of a run, checked for consistency.
fn read_scores(file: &Path) -> Result<Option<Scores>> {
    let scores = Scores::read_file(file).map_err(|error| match error {
        rem_run::Error::Invalid { path, reason, .. } if is_other_json(file) => Error::Input {
            path,
            reason,
            hint: "if this file has scores by game, pass the file itself, not its directory".into(),
        },
        other => other.into(),
    })?;
    if let Some(scores) = &scores {
        check(scores).map_err(|reason| Error::Input {
            path: file.into(),
            reason,
            hint: "the file is damaged or was edited; leave out this run".into(),
        })?;
    }
    Ok(scores)
}

/// Whether the file is JSON, but not the scores of a run.
fn is_other_json(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() && !is_scores_of_run(&text)
}

/// Checks that every evaluation has returns and that `mean` is their mean.
fn check(scores: &Scores) -> Result<(), String> {
    let all = scores.evaluations.iter().enumerate();
    let named = all.map(|(index, score)| (format!("evaluations[{index}]"), score));
    let last = scores
        .final_score
        .iter()
        .map(|score| ("final".to_owned(), score));
    for (key, score) in named.chain(last) {
        if score.returns.is_empty() {
            return Err(format!("`{key}.returns` is empty"));
        }
        let sum: f64 = score.returns.iter().map(|value| f64::from(*value)).sum();
        let mean = sum / score.returns.len() as f64;
        if (mean - score.mean).abs() > 1e-3 * mean.abs().max(1.0) {
            return Err(format!(
                "`{key}.mean` is {}, but the mean of its returns is {mean}",
                score.mean
            ));
        }
    }
    Ok(())
}

/// The last evaluation at each number of steps. There may be several, because training continues after collection ends.
fn last_at_each_step(scores: &[Score]) -> Vec<Evaluation> {
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
    /// The game with this name.
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

    #[test]
    fn errors_name_the_inconsistent_key() {
        let with = |mean, returns: &[f32]| Scores {
            game: "pong".into(),
            seed: 1,
            evaluations: Vec::new(),
            final_score: Some(Score {
                epoch: 1,
                steps: 5,
                mean,
                returns: returns.into(),
            }),
        };
        assert_eq!(check(&with(1.0, &[1.0, 1.0])), Ok(()));
        assert_eq!(
            check(&with(1.0, &[])).unwrap_err(),
            "`final.returns` is empty"
        );
        assert_eq!(
            check(&with(2.0, &[1.0, 1.0])).unwrap_err(),
            "`final.mean` is 2, but the mean of its returns is 1"
        );
    }

    #[test]
    fn only_the_last_evaluation_at_equal_steps_is_used() {
        let score = |steps, mean: f32| Score {
            epoch: 1,
            steps,
            mean: mean.into(),
            returns: vec![mean],
        };
        let found = last_at_each_step(&[score(10, 1.0), score(20, 2.0), score(20, 3.0)]);
        let expected = [(10, 1.0), (20, 3.0)].map(|(steps, mean)| Evaluation { steps, mean });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parent_name_is_found_without_following_links() {
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
    fn scores_of_a_run_are_distinguished_from_scores_by_game() {
        assert!(is_scores_of_run(
            r#"{"game": "catch", "seed": 1, "evaluations": [], "final": null}"#
        ));
        assert!(!is_scores_of_run(r#"{"Pong": [1]}"#));
        assert!(!is_scores_of_run("{"));
    }
}
