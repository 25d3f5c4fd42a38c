//! Errors of reading scores.

/// Why scores cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("`{file}`: {problem}")]
pub struct ScoresError {
    /// The file with the scores.
    pub file: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with scores. Runs are numbered from 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The text is not JSON of the expected form.
    #[error("cannot be read as scores: {0}")]
    Json(String),
    /// No game has scores.
    #[error("the file has no games")]
    NoGames,
    /// A game is not part of the benchmark.
    #[error("`{0}` is not a game of the benchmark")]
    UnknownGame(String),
    /// A game has two lists of scores.
    #[error("`{0}` is listed twice")]
    DuplicateGame(String),
    /// The list of a game is empty.
    #[error("`{0}` has an empty list of scores")]
    NoRuns(String),
    /// The value of a game is not a list.
    #[error("`{game}` must be a list of scores, not {found}")]
    NotAList {
        /// The game, as spelled in the file.
        game: String,
        /// What the file has instead.
        found: String,
    },
    /// A score is not a number.
    #[error("`{game}`, run {run}: a score must be a number, not {found}")]
    NotANumber {
        /// The game, as spelled in the file.
        game: String,
        /// The run, from 1.
        run: usize,
        /// What the file has instead.
        found: String,
    },
    /// A score is NaN or infinite.
    #[error("`{game}`, run {run}: a score must be finite, not {found}")]
    NotFinite {
        /// The game, as spelled in the file.
        game: String,
        /// The run, from 1.
        run: usize,
        /// The score.
        found: f64,
    },
}
