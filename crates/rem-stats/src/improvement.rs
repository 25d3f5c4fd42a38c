//! Probability of improvement.

use crate::matrix::Matrix;

/// The probability that a run of `x` scores higher than a run of `y` on a random game; a tie counts as one half. This
/// is the Mann-Whitney U statistic of each game, averaged over games (Figures 9 and 12).
///
/// # Panics
///
/// If the two do not have the same games.
pub fn probability_of_improvement(x: &Matrix, y: &Matrix) -> f64 {
    Comparisons::new(x, y).average(&mut Vec::new(), |run, _| run)
}

/// The comparison of every run of `x` with every run of `y` on the same game.
pub(crate) struct Comparisons {
    games: Vec<GameComparisons>,
}

struct GameComparisons {
    x_runs: usize,
    y_runs: usize,
    /// `[x_runs, y_runs]`: 1 for a win of `x`, 0.5 for a tie, else 0.
    wins: Vec<f64>,
}

impl Comparisons {
    pub fn new(x: &Matrix, y: &Matrix) -> Self {
        assert_eq!(x.games(), y.games(), "systems must have the same games");
        let games = x.columns().zip(y.columns());
        let games = games.map(|((_, x), (_, y))| GameComparisons {
            x_runs: x.len(),
            y_runs: y.len(),
            wins: x
                .iter()
                .flat_map(|x| y.iter().map(|y| win(*x, *y)))
                .collect(),
        });
        Self {
            games: games.collect(),
        }
    }

    /// The fraction of wins over all games. `pick(i, runs)` selects the run for draw `i` out of `runs`. `opponents` is
    /// scratch memory.
    pub fn average(
        &self,
        opponents: &mut Vec<usize>,
        mut pick: impl FnMut(usize, usize) -> usize,
    ) -> f64 {
        let mut total = 0.0;
        for game in &self.games {
            opponents.clear();
            opponents.extend((0..game.y_runs).map(|choice| pick(choice, game.y_runs)));
            let mut wins = 0.0;
            for choice in 0..game.x_runs {
                let start = pick(choice, game.x_runs) * game.y_runs;
                let row = &game.wins[start..start + game.y_runs];
                wins += opponents.iter().map(|opponent| row[*opponent]).sum::<f64>();
            }
            total += wins / game.wins.len() as f64;
        }
        total / self.games.len() as f64
    }
}

fn win(x: f64, y: f64) -> f64 {
    if x > y {
        1.0
    } else if x == y {
        0.5
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    #[test]
    fn probability_matches_hand_computed_value() {
        // First game: 2 wins twice, 1 ties once and wins once: 3.5 of 4. Second game: x has one run, 0 of 2.
        let x = matrix::of([&[1.0, 2.0], &[0.0]]);
        let y = matrix::of([&[1.0, 0.5], &[3.0, 4.0]]);
        assert_eq!(probability_of_improvement(&x, &y), 3.5 / 4.0 / 2.0);
        assert_eq!(probability_of_improvement(&y, &x), 1.0 - 3.5 / 4.0 / 2.0);
    }

    #[test]
    fn a_system_improves_on_itself_with_probability_one_half() {
        let x = matrix::of([&[1.0, 2.0, 3.0], &[0.0]]);
        assert_eq!(probability_of_improvement(&x, &x), 0.5);
    }

    #[test]
    #[should_panic(expected = "the same games")]
    fn matrices_of_different_games_are_rejected() {
        let x = matrix::of([&[1.0], &[0.0]]);
        probability_of_improvement(&x, &matrix::of([&[1.0]]));
    }
}
