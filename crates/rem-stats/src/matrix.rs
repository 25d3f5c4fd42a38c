//! Human-normalized scores, runs × games.

use std::ops::Range;

use crate::games::Game;

/// Human-normalized scores, runs × games.
///
/// Games may have unequal numbers of runs. Every game has the same total weight, so a run of a game with few runs has
/// more weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    games: Vec<&'static Game>,
    /// The scores of all runs, grouped by game.
    values: Vec<f64>,
    /// The range of each game in `values`.
    columns: Vec<Range<usize>>,
    /// `values` in ascending order.
    sorted: Vec<f64>,
    /// The index of each of `values` in `sorted`.
    ranks: Vec<usize>,
}

impl Matrix {
    /// A matrix with these columns: a game and the scores of its runs.
    ///
    /// # Panics
    ///
    /// If there are no games, a game has no runs, or a score is not finite.
    pub fn new(columns: Vec<(&'static Game, Vec<f64>)>) -> Self {
        assert!(!columns.is_empty(), "a matrix needs games");
        let mut matrix = Self {
            games: Vec::new(),
            values: Vec::new(),
            columns: Vec::new(),
            sorted: Vec::new(),
            ranks: Vec::new(),
        };
        for (game, runs) in columns {
            assert!(!runs.is_empty(), "{} has no runs", game.title());
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

    /// The games, in the order of the columns.
    pub fn games(&self) -> &[&'static Game] {
        &self.games
    }

    /// Each game with the scores of its runs.
    pub fn columns(&self) -> impl Iterator<Item = (&'static Game, &[f64])> {
        let runs = self
            .columns
            .iter()
            .map(|column| &self.values[column.clone()]);
        self.games.iter().copied().zip(runs)
    }

    /// Whether any game has more than one run, as resampling requires.
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

    /// The sum of the weights of all runs, which equals their number.
    pub(crate) fn total_weight(&self) -> f64 {
        self.values.len() as f64
    }

    /// The weight of each run of a game with `runs_of_game` runs. It is 1 if all games have equally many runs.
    pub(crate) fn weight(&self, runs_of_game: usize) -> f64 {
        self.values.len() as f64 / (self.games.len() * runs_of_game) as f64
    }
}

/// A matrix with these columns, for the first games of the benchmark.
#[cfg(test)]
pub(crate) fn of<const GAMES: usize>(columns: [&[f64]; GAMES]) -> Matrix {
    let games = Game::benchmark().iter();
    Matrix::new(games.zip(columns.map(<[f64]>::to_vec)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_positions_in_sorted_order() {
        let matrix = of([&[0.5, -1.0], &[2.0]]);
        assert_eq!(matrix.sorted(), [-1.0, 0.5, 2.0]);
        assert_eq!(matrix.ranks(), [1, 0, 2]);
    }

    #[test]
    fn games_have_equal_weight_for_any_number_of_runs() {
        // 4 runs, 2 games: each game weighs 2.
        let matrix = of([&[1.0, 2.0, 3.0], &[4.0]]);
        assert_eq!(3.0 * matrix.weight(3), 2.0);
        assert_eq!(matrix.weight(1), 2.0);
        assert_eq!(of([&[1.0, 2.0], &[3.0, 4.0]]).weight(2), 1.0);
    }
}
