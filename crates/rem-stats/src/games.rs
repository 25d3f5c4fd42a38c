//! The 26 games of the Atari 100K benchmark, and the two players that scores are measured against.

use std::sync::LazyLock;

use crate::json;

/// A game of the benchmark.
#[derive(Debug, PartialEq)]
pub struct Game {
    title: String,
    random: f64,
    human: f64,
}

static BENCHMARK: LazyLock<Vec<Game>> = LazyLock::new(|| {
    let one_each = |text| {
        let lists = json::lists(text).expect("the embedded scores are well formed");
        lists.into_iter().map(|(title, runs)| (title, runs[0]))
    };
    let random = one_each(include_str!("../../../data/scores/random.json"));
    let human = one_each(include_str!("../../../data/scores/human.json"));
    random
        .zip(human)
        .map(|((title, random), (same, human))| {
            assert_eq!(title, same, "both players have the same games in order");
            Game {
                title,
                random,
                human,
            }
        })
        .collect()
});

impl Game {
    /// All games, by title.
    pub fn benchmark() -> &'static [Self] {
        &BENCHMARK
    }

    /// The game of this name, whatever its case and underscores: `MsPacman` and `ms_pacman` are one.
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = plain(name);
        BENCHMARK
            .iter()
            .find(|game| self::plain(&game.title) == plain)
    }

    /// At most three games whose names are near `name`, the nearest first.
    pub fn nearest(name: &str) -> Vec<&'static Self> {
        let plain = plain(name);
        let distance = |game: &'static Self| {
            let title = self::plain(&game.title);
            if plain.len() >= 3 && title.contains(&plain) {
                return Some((1, game));
            }
            let edits = strsim::damerau_levenshtein(&plain, &title);
            (edits <= 1 + plain.len() / 3).then_some((edits, game))
        };
        let mut near: Vec<_> = BENCHMARK.iter().filter_map(distance).collect();
        near.sort_by_key(|(edits, _)| *edits);
        near.into_iter().map(|(_, game)| game).take(3).collect()
    }

    /// As papers and score tables spell it: `MsPacman`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The score of a player that acts at random.
    pub fn random(&self) -> f64 {
        self.random
    }

    pub fn human(&self) -> f64 {
        self.human
    }

    /// 0 for the score of a random player, 1 for that of a human.
    pub fn normalise(&self, score: f64) -> f64 {
        (score - self.random) / (self.human - self.random)
    }
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_26_games_in_order_and_humans_beat_chance() {
        assert_eq!(Game::benchmark().len(), 26);
        assert!(Game::benchmark().is_sorted_by(|a, b| a.title < b.title));
        assert!(
            Game::benchmark()
                .iter()
                .all(|game| game.human > game.random)
        );
    }

    #[test]
    fn a_game_is_found_by_any_spelling() {
        for name in ["MsPacman", "ms_pacman", "Ms Pacman"] {
            assert_eq!(Game::named(name).unwrap().title(), "MsPacman");
        }
        assert_eq!(Game::named("doom"), None);
    }

    #[test]
    fn a_misspelt_game_has_near_ones() {
        let nearest = |name| Game::nearest(name).into_iter().map(Game::title);
        assert_eq!(nearest("Pogn").next(), Some("Pong"));
        assert_eq!(nearest("pacman").next(), Some("MsPacman"));
        assert_eq!(nearest("Kung Fu Mastr").next(), Some("KungFuMaster"));
        assert_eq!(nearest("doom").count(), 0);
        assert_eq!(nearest("").count(), 0);
    }

    #[test]
    fn normalised_by_hand() {
        let boxing = Game::named("Boxing").unwrap(); // random 0.1, human 12.1
        assert_eq!(boxing.normalise(0.1), 0.0);
        assert_eq!(boxing.normalise(12.1), 1.0);
        assert!((boxing.normalise(36.1) - 3.0).abs() < 1e-12);
        assert!((boxing.normalise(-5.9) + 0.5).abs() < 1e-12);
    }
}
