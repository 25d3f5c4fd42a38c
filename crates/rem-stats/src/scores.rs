//! Raw scores of a system, by game and run.

use std::fmt;

use crate::error::{Problem, ScoresError};
use crate::games::Game;
use crate::json;
use crate::matrix::Matrix;

/// Raw scores of a system: at least one game, at least one run of each, every score finite.
///
/// Games are in the order of the benchmark. Some may be missing, and their numbers of runs may differ: see
/// [`Scores::coverage`].
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    runs: Vec<(&'static Game, Vec<f64>)>,
}

impl Scores {
    /// Scores from the name of each game and the scores of its runs. Errors name `file` as the source.
    ///
    /// # Errors
    ///
    /// If there are no games, a game is unknown or listed twice, or a score is missing or not finite.
    pub fn new(
        file: &str,
        lists: impl IntoIterator<Item = (String, Vec<f64>)>,
    ) -> Result<Self, ScoresError> {
        collect(lists).map_err(|problem| ScoresError {
            file: file.into(),
            problem,
        })
    }

    /// Scores from JSON, as in `{"Pong": [20.5, 18.0], "Qbert": [743.0]}`. Errors name `file` as the source.
    ///
    /// # Errors
    ///
    /// If the text is not JSON of this form, and as [`Scores::new`].
    pub fn from_json(file: &str, text: &str) -> Result<Self, ScoresError> {
        json::lists(text)
            .and_then(collect)
            .map_err(|problem| ScoresError {
                file: file.into(),
                problem,
            })
    }

    /// The games that have scores.
    pub fn games(&self) -> impl Iterator<Item = &'static Game> {
        self.runs.iter().map(|(game, _)| *game)
    }

    /// The scores of all runs of `game`. `None` if it is missing.
    pub fn of(&self, game: &Game) -> Option<&[f64]> {
        let found = self.runs.iter().find(|(other, _)| *other == game);
        found.map(|(_, runs)| runs.as_slice())
    }

    /// How much of the benchmark the scores cover.
    pub fn coverage(&self) -> Coverage {
        let counts = || self.runs.iter().map(|(_, runs)| runs.len());
        Coverage {
            games: self.runs.len(),
            missing: Game::benchmark()
                .iter()
                .filter(|game| self.of(game).is_none())
                .collect(),
            fewest_runs: counts().min().expect("there is a game"),
            most_runs: counts().max().expect("there is a game"),
        }
    }

    /// The human-normalized scores of all games.
    pub fn normalized(&self) -> Matrix {
        let games: Vec<_> = self.games().collect();
        self.normalized_on(&games).expect("these games are there")
    }

    /// The human-normalized scores of these games, in this order. `None` if one is missing or `games` is empty.
    pub fn normalized_on(&self, games: &[&'static Game]) -> Option<Matrix> {
        let columns: Option<Vec<_>> = games
            .iter()
            .map(|game| {
                let scores = self.of(game)?;
                let normalized = scores.iter().map(|score| game.normalize(*score)).collect();
                Some((*game, normalized))
            })
            .collect();
        columns
            .filter(|columns| !columns.is_empty())
            .map(Matrix::new)
    }
}

fn collect(lists: impl IntoIterator<Item = (String, Vec<f64>)>) -> Result<Scores, Problem> {
    let mut found: Vec<(&'static Game, Vec<f64>)> = Vec::new();
    for (name, runs) in lists {
        let Some(game) = Game::named(&name) else {
            return Err(Problem::UnknownGame(name));
        };
        if found.iter().any(|(other, _)| *other == game) {
            return Err(Problem::DuplicateGame(name));
        }
        if runs.is_empty() {
            return Err(Problem::NoRuns(name));
        }
        if let Some(index) = runs.iter().position(|score| !score.is_finite()) {
            return Err(Problem::NotFinite {
                game: name,
                run: index + 1,
                found: runs[index],
            });
        }
        found.push((game, runs));
    }
    if found.is_empty() {
        return Err(Problem::NoGames);
    }
    found.sort_by_key(|(game, _)| game.title());
    Ok(Scores { runs: found })
}

/// How much of the benchmark a system's scores cover.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// Number of games with scores.
    pub games: usize,
    /// Games without scores.
    pub missing: Vec<&'static Game>,
    /// The smallest number of runs of a game.
    pub fewest_runs: usize,
    /// The largest number of runs of a game.
    pub most_runs: usize,
}

impl Coverage {
    /// Whether no game is missing and all have equally many runs.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.fewest_runs == self.most_runs
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        write!(f, "{} game{}, ", self.games, plural(self.games))?;
        match (self.fewest_runs, self.most_runs) {
            (fewest, most) if fewest == most => write!(f, "{most} run{} each", plural(most))?,
            (fewest, most) => write!(f, "{fewest} to {most} runs each")?,
        }
        if !self.missing.is_empty() {
            let missing: Vec<_> = self.missing.iter().map(|game| game.title()).collect();
            write!(f, "; missing: {}", missing.join(", "))?;
        }
        Ok(())
    }
}

/// The games that all systems have, in the order of the benchmark.
pub fn common_games(systems: &[&Scores]) -> Vec<&'static Game> {
    let has_all = |game: &&Game| systems.iter().all(|scores| scores.of(game).is_some());
    Game::benchmark().iter().filter(has_all).collect()
}

impl ScoresError {
    /// What the user can do about it.
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
            Problem::Json(message) if message.contains("not a number in JSON") => {
                "leave out runs that have no score".into()
            }
            Problem::NoRuns(_) => "leave out games that were not played".into(),
            Problem::DuplicateGame(_) => "put all runs of a game into one list".into(),
            _ => r#"scores look like {"Pong": [20.5, 18.0], "Qbert": [743.0]}, one number per run"#
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(text: &str) -> Scores {
        Scores::from_json("test", text).unwrap()
    }

    fn message(text: &str) -> String {
        Scores::from_json("my.json", text).unwrap_err().to_string()
    }

    #[test]
    fn order_and_spelling_of_games_do_not_matter() {
        let one = scores(r#"{"up_n_down": [3], "Boxing": [1, 2]}"#);
        assert_eq!(one, scores(r#"{"Boxing": [1, 2], "UpNDown": [3]}"#));
        let titles: Vec<_> = one.games().map(Game::title).collect();
        assert_eq!(titles, ["Boxing", "UpNDown"]);
    }

    #[test]
    fn coverage_names_missing_games_and_unequal_runs() {
        let two = scores(r#"{"Boxing": [1, 2], "Pong": [3]}"#).coverage();
        assert_eq!((two.fewest_runs, two.most_runs), (1, 2));
        assert_eq!(two.missing.len(), 24);
        assert!(!two.is_complete());
        assert!(
            two.to_string()
                .starts_with("2 games, 1 to 2 runs each; missing: Alien, Amidar, ")
        );

        let all = Game::benchmark().iter();
        let all = all.map(|game| (game.title().to_owned(), vec![0.0]));
        let all = Scores::new("test", all).unwrap().coverage();
        assert!(all.is_complete());
        assert_eq!(all.to_string(), "26 games, 1 run each");
    }

    #[test]
    fn systems_are_compared_on_the_games_they_share() {
        let one = scores(r#"{"Pong": [1], "Boxing": [2], "Alien": [3]}"#);
        let other = scores(r#"{"Qbert": [1], "Pong": [4], "Boxing": [5]}"#);
        let common = common_games(&[&one, &other]);
        let titles: Vec<_> = common.iter().map(|game| game.title()).collect();
        assert_eq!(titles, ["Boxing", "Pong"]);
        assert!(one.normalized_on(&common).is_some());
        let alien = Game::named("Alien").unwrap();
        assert_eq!(other.normalized_on(&[alien]), None);
        assert_eq!(other.normalized_on(&[]), None);
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        let table = [
            (
                r#"{"Pogn": [1]}"#,
                "`my.json`: `Pogn` is not a game of the benchmark",
            ),
            (
                r#"{"Pong": []}"#,
                "`my.json`: `Pong` has an empty list of scores",
            ),
            (
                r#"{"Pong": [1, "n/a"]}"#,
                r#"`my.json`: `Pong`, run 2: a score must be a number, not the text "n/a""#,
            ),
            (
                r#"{"Pong": [1, 2, null]}"#,
                "`my.json`: `Pong`, run 3: a score must be a number, not null",
            ),
            (
                r#"{"Pong": 21}"#,
                "`my.json`: `Pong` must be a list of scores, not 21",
            ),
            (
                r#"{"Pong": [[21]]}"#,
                "`my.json`: `Pong`, run 1: a score must be a number, not a list",
            ),
            (
                r#"{"Pong": [1], "pong": [2]}"#,
                "`my.json`: `pong` is listed twice",
            ),
            ("{}", "`my.json`: the file has no games"),
            (
                "{\"Boxing\": [1],\n \"Pong\": [NaN]}",
                "`my.json`: cannot be read as scores: in `Pong`: NaN is not a number in JSON, at line 2 column 11",
            ),
            (
                r#"{"Pong": [-Infinity]}"#,
                "`my.json`: cannot be read as scores: in `Pong`: Infinity is not a number in JSON, at line 1 column 12",
            ),
            (
                r#"{"Pong": [1e999]}"#,
                "`my.json`: cannot be read as scores: in `Pong`: number out of range at line 1 column 15",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(message(text), expected);
        }
        for malformed in ["", "{", "[1]", r#"{"Pong": [1"#, r#"{"Pong": [1]} x"#] {
            let message = message(malformed);
            assert!(
                message.starts_with("`my.json`: cannot be read as scores: "),
                "{message}"
            );
        }
    }

    #[test]
    fn scores_that_are_not_finite_are_rejected() {
        let error = Scores::new("run", [("Pong".to_owned(), vec![1.0, f64::NAN])]).unwrap_err();
        let expected = "`run`: `Pong`, run 2: a score must be finite, not NaN";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_hint_for_an_unknown_game_lists_similar_games_or_all() {
        let hint = |text| Scores::from_json("my.json", text).unwrap_err().hint();
        assert!(hint(r#"{"Pogn": [1]}"#).starts_with("did you mean `Pong`"));
        let start = "the games of the benchmark are Alien, Amidar, ";
        assert!(hint(r#"{"Doom": [1]}"#).starts_with(start));
    }
}
