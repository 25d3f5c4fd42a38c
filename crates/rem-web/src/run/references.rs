//! Scores that a return is measured against: players that need no learning, and REM as published.

use rem_stats::{Game, baselines};
use serde::Serialize;
use serde_json::Value;

/// A line across the curves of returns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reference {
    pub name: &'static str,
    pub value: f64,
}

/// Those of a game. The benchmark's are known; those of other games were measured when the run began.
pub fn of(game: &str, protocol: Option<&Value>) -> Vec<Reference> {
    let line = |name, value: Option<f64>| value.map(|value| Reference { name, value });
    let measured = |key: &str| protocol.and_then(|protocol| protocol[key].as_f64());
    let lines = match Game::named(game) {
        Some(known) => [
            line("random player", Some(known.random())),
            line("human", Some(known.human())),
            line("REM, published mean", published(known)),
        ],
        None => [
            line("random player", measured("random_player")),
            line("scripted best", measured("scripted_player")),
            None,
        ],
    };
    lines.into_iter().flatten().collect()
}

fn published(game: &Game) -> Option<f64> {
    let scores = baselines::named("REM")?.scores();
    let runs = scores.of(game)?;
    Some(runs.iter().sum::<f64>() / runs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_game_of_the_benchmark_has_three_lines() {
        let lines = of("boxing", Some(&json!({"random_player": 7.0})));
        let names: Vec<_> = lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["random player", "human", "REM, published mean"]);
        assert_eq!((lines[0].value, lines[1].value), (0.1, 12.1));
        // As the paper's main table prints it.
        assert_eq!(format!("{:.1}", lines[2].value), "87.5");
    }

    #[test]
    fn other_games_have_what_was_measured() {
        let protocol = json!({"random_player": -0.5, "scripted_player": 1.0});
        assert_eq!(of("catch", Some(&protocol)).len(), 2);
        assert_eq!(of("catch", None), []);
    }
}
