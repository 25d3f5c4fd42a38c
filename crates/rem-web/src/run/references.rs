//! Reference scores for the return chart: random, human and scripted players, and REM as published.

use rem_run::ProtocolValues;
use rem_stats::{Game, baselines};
use serde::Serialize;

/// A horizontal line in the return chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Reference {
    /// The label of the line.
    pub name: &'static str,
    /// The score.
    pub value: f64,
}

/// The references of a game: published scores for games of Atari 100K, scores measured at the start of the run for others.
pub(super) fn of(game: &str, protocol: Option<&ProtocolValues>) -> Vec<Reference> {
    let line = |name, value: Option<f64>| value.map(|value| Reference { name, value });
    let measured = |key: &str| protocol.and_then(|protocol| protocol.number(key));
    let lines = match Game::named(game) {
        Some(known) => [
            line("random", Some(known.random())),
            line("human", Some(known.human())),
            line("REM (paper)", published(known)),
        ],
        None => [
            line("random", measured("random_player")),
            line("scripted", measured("scripted_player")),
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

    fn protocol(text: &str) -> ProtocolValues {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_atari_100k_game_has_published_references() {
        let lines = of("boxing", Some(&protocol(r#"{"random_player": 7.0}"#)));
        let names: Vec<_> = lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["random", "human", "REM (paper)"]);
        assert_eq!((lines[0].value, lines[1].value), (0.1, 12.1));
        // As printed in Table 1 of the paper.
        assert_eq!(format!("{:.1}", lines[2].value), "87.5");
    }

    #[test]
    fn other_games_have_measured_references() {
        let protocol = protocol(r#"{"random_player": -0.5, "scripted_player": 1.0}"#);
        assert_eq!(of("catch", Some(&protocol)).len(), 2);
        assert_eq!(of("catch", None), []);
    }
}
