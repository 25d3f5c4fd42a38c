//! What can be wrong with scores, and where.

use crate::games::Game;

/// Scores that cannot be used, with the file that they are from.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("`{file}`: {problem}")]
pub struct ScoresError {
    pub file: String,
    pub problem: Problem,
}

/// Runs are counted from 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("cannot be read as scores: {0}")]
    Json(String),
    #[error("there are no games in it")]
    NoGames,
    #[error("`{0}` is not a game of the benchmark")]
    UnknownGame(String),
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("`{0}` has an empty list of scores")]
    NoRuns(String),
    #[error("`{game}` must be a list of scores, and is {found}")]
    NotAList { game: String, found: String },
    #[error("`{game}`, run {run}: a score must be a number, and is {found}")]
    NotANumber {
        game: String,
        run: usize,
        found: String,
    },
    #[error("`{game}`, run {run}: a score must be finite, and is {found}")]
    NotFinite {
        game: String,
        run: usize,
        found: f64,
    },
}

impl ScoresError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match &self.problem {
            Problem::UnknownGame(name) => {
                let near: Vec<_> = Game::nearest(name)
                    .iter()
                    .map(|game| format!("`{}`", game.title()))
                    .collect();
                if !near.is_empty() {
                    return format!("did you mean {}?", near.join(" or "));
                }
                let games: Vec<_> = Game::benchmark().iter().map(Game::title).collect();
                format!("the games of the benchmark are {}", games.join(", "))
            }
            Problem::Json(message) if message.contains("no number in JSON") => {
                "leave out runs that have no score".into()
            }
            Problem::NoRuns(_) => "leave out games that were not played".into(),
            Problem::Twice(_) => "put all runs of a game into one list".into(),
            _ => r#"scores look like {"Pong": [20.5, 18.0], "Qbert": [743.0]}, a number for each run"#.into(),
        }
    }
}
