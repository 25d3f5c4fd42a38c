//! The 26 games of the Atari 100K benchmark, with random and human scores for normalization.

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
            assert_eq!(title, same, "both files must list the same games");
            Game {
                title,
                random,
                human,
            }
        })
        .collect()
});

impl Game {
    /// All games, sorted by title.
    pub fn benchmark() -> &'static [Self] {
        &BENCHMARK
    }

    /// The game with this name. Ignores case and punctuation: `MsPacman` and `ms_pacman` are the same.
    pub fn named(name: &str) -> Option<&'static Self> {
        let key = search_key(name);
        BENCHMARK.iter().find(|game| search_key(&game.title) == key)
    }

    /// Up to three games with names similar to `name`, the most similar first.
    pub(crate) fn nearest(name: &str) -> Vec<&'static Self> {
        let key = search_key(name);
        let distance = |game: &'static Self| {
            let title = search_key(&game.title);
            if key.len() >= 3 && title.contains(&key) {
                return Some((1, game));
            }
            let edits = strsim::damerau_levenshtein(&key, &title);
            (edits <= 1 + key.len() / 3).then_some((edits, game))
        };
        let mut near: Vec<_> = BENCHMARK.iter().filter_map(distance).collect();
        near.sort_by_key(|(edits, _)| *edits);
        near.into_iter().map(|(_, game)| game).take(3).collect()
    }

    /// The name as spelled in papers: `MsPacman`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The score of a random policy.
    pub fn random(&self) -> f64 {
        self.random
    }

    /// The score of a human.
    pub fn human(&self) -> f64 {
        self.human
    }

    /// The human-normalized score: 0 for a random policy, 1 for a human.
    pub fn normalize(&self, score: f64) -> f64 {
        (score - self.random) / (self.human - self.random)
    }
}

/// Only letters and digits, in lower case.
fn search_key(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_has_26_sorted_games_with_human_above_random() {
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
    fn a_misspelled_name_finds_similar_games() {
        let nearest = |name| Game::nearest(name).into_iter().map(Game::title);
        assert_eq!(nearest("Pogn").next(), Some("Pong"));
        assert_eq!(nearest("pacman").next(), Some("MsPacman"));
        assert_eq!(nearest("Kung Fu Mastr").next(), Some("KungFuMaster"));
        assert_eq!(nearest("doom").count(), 0);
        assert_eq!(nearest("").count(), 0);
    }

    #[test]
    fn normalization_matches_hand_computed_values() {
        let boxing = Game::named("Boxing").unwrap(); // random 0.1, human 12.1
        assert_eq!(boxing.normalize(0.1), 0.0);
        assert_eq!(boxing.normalize(12.1), 1.0);
        assert!((boxing.normalize(36.1) - 3.0).abs() < 1e-12);
        assert!((boxing.normalize(-5.9) + 0.5).abs() < 1e-12);
    }
}
