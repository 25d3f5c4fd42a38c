//! How likely is one system to beat another?

use crate::matrix::Matrix;

/// The probability that a run of `x` beats a run of `y` on a game drawn at random, where a tie is half a win: the
/// Mann-Whitney statistic of each game, averaged over games.
///
/// # Panics
/// If the two have not the same games.
pub fn probability_of_improvement(x: &Matrix, y: &Matrix) -> f64 {
    Duels::new(x, y).average(&mut Vec::new(), |run, _| run)
}

/// Every run of `x` against every run of `y` on the same game.
pub(crate) struct Duels {
    games: Vec<GameDuels>,
}

struct GameDuels {
    x_runs: usize,
    y_runs: usize,
    /// `[x_runs, y_runs]`: 1, a half or 0.
    wins: Vec<f64>,
}

impl Duels {
    pub fn new(x: &Matrix, y: &Matrix) -> Self {
        assert_eq!(
            x.games(),
            y.games(),
            "systems are compared on the same games"
        );
        let games = x.columns().zip(y.columns());
        let duels = games.map(|((_, x), (_, y))| GameDuels {
            x_runs: x.len(),
            y_runs: y.len(),
            wins: x
                .iter()
                .flat_map(|x| y.iter().map(|y| win(*x, *y)))
                .collect(),
        });
        Self {
            games: duels.collect(),
        }
    }

    /// The share of duels that are won, between runs that `pick` chooses, given the number of the choice and the number
    /// of runs. `opponents` is working memory.
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
    fn by_hand() {
        // First game: 2 beats both, 1 ties and beats: 3.5 of 4. Second: 0 of 2, for x has one run there.
        let x = matrix::of([&[1.0, 2.0], &[0.0]]);
        let y = matrix::of([&[1.0, 0.5], &[3.0, 4.0]]);
        assert_eq!(probability_of_improvement(&x, &y), 3.5 / 4.0 / 2.0);
        assert_eq!(probability_of_improvement(&y, &x), 1.0 - 3.5 / 4.0 / 2.0);
    }

    #[test]
    fn against_itself_it_is_a_half() {
        let x = matrix::of([&[1.0, 2.0, 3.0], &[0.0]]);
        assert_eq!(probability_of_improvement(&x, &x), 0.5);
    }

    #[test]
    #[should_panic(expected = "the same games")]
    fn other_games_cannot_be_compared() {
        let x = matrix::of([&[1.0], &[0.0]]);
        probability_of_improvement(&x, &matrix::of([&[1.0]]));
    }
}
