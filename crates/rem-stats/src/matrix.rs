//! Human-normalised scores, runs x games.

use std::ops::Range;

use crate::games::Game;

/// Games may differ in their numbers of runs: the matrix is then ragged, and each run of a game with few weighs more.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    games: Vec<&'static Game>,
    /// All runs, game after game.
    values: Vec<f64>,
    /// Where each game's runs are in `values`.
    columns: Vec<Range<usize>>,
    /// `values` from the lowest to the highest.
    sorted: Vec<f64>,
    /// For each of `values`, its place in `sorted`.
    ranks: Vec<usize>,
}

impl Matrix {
    /// # Panics
    /// If there are no games, one without runs, or a score that is not finite.
    pub fn new(columns: Vec<(&'static Game, Vec<f64>)>) -> Self {
        assert!(!columns.is_empty(), "a matrix has games");
        let mut matrix = Self {
            games: Vec::new(),
            values: Vec::new(),
            columns: Vec::new(),
            sorted: Vec::new(),
            ranks: Vec::new(),
        };
        for (game, runs) in columns {
            assert!(!runs.is_empty(), "{} has runs", game.title());
            assert!(
                runs.iter().all(|score| score.is_finite()),
                "{}",
                game.title()
            );
            let start = matrix.values.len();
            matrix.games.push(game);
            matrix.columns.push(start..start + runs.len());
            matrix.values.extend(runs);
        }
        let mut order: Vec<usize> = (0..matrix.values.len()).collect();
        order.sort_by(|a, b| matrix.values[*a].total_cmp(&matrix.values[*b]));
        matrix.sorted = order.iter().map(|run| matrix.values[*run]).collect();
        matrix.ranks = vec![0; order.len()];
        for (rank, run) in order.into_iter().enumerate() {
            matrix.ranks[run] = rank;
        }
        matrix
    }

    pub fn games(&self) -> &[&'static Game] {
        &self.games
    }

    /// Each game with its runs.
    pub fn columns(&self) -> impl Iterator<Item = (&'static Game, &[f64])> {
        let runs = self
            .columns
            .iter()
            .map(|column| &self.values[column.clone()]);
        self.games.iter().copied().zip(runs)
    }

    /// Some game has more than one run: there is something to resample.
    pub fn has_repeats(&self) -> bool {
        self.values.len() > self.games.len()
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn column_ranges(&self) -> &[Range<usize>] {
        &self.columns
    }

    pub(crate) fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    pub(crate) fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The sum of all runs' weights: their number.
    pub(crate) fn total_weight(&self) -> f64 {
        self.values.len() as f64
    }

    /// What a run weighs in a game that has so many of them: all games alike in total, and 1 if all have as many.
    pub(crate) fn weight(&self, runs_of_game: usize) -> f64 {
        self.values.len() as f64 / (self.games.len() * runs_of_game) as f64
    }
}

/// A matrix of these columns, the games being the benchmark's first ones.
#[cfg(test)]
pub(crate) fn of<const GAMES: usize>(columns: [&[f64]; GAMES]) -> Matrix {
    let games = Game::benchmark().iter();
    Matrix::new(games.zip(columns.map(<[f64]>::to_vec)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_lead_from_runs_to_their_place_in_order() {
        let matrix = of([&[0.5, -1.0], &[2.0]]);
        assert_eq!(matrix.sorted(), [-1.0, 0.5, 2.0]);
        assert_eq!(matrix.ranks(), [1, 0, 2]);
    }

    #[test]
    fn games_weigh_alike_whatever_their_runs() {
        // 4 runs, 2 games: each game weighs 2.
        let matrix = of([&[1.0, 2.0, 3.0], &[4.0]]);
        assert_eq!(3.0 * matrix.weight(3), 2.0);
        assert_eq!(matrix.weight(1), 2.0);
        assert_eq!(of([&[1.0, 2.0], &[3.0, 4.0]]).weight(2), 1.0);
    }
}
