//! Games that are not part of the aggregates.

use rem_stats::{Distribution, Game};

use crate::footnotes::Footnotes;
use crate::report::Report;
use crate::run::{GameName, Run};
use crate::system::System;
use crate::table::{Cell, Row, Table};

/// Games of the benchmark that a system of the user has, but not all systems.
pub fn further(report: &Report) -> Table {
    let on_benchmark: Vec<_> = report
        .systems
        .iter()
        .filter(|system| system.scores.is_some())
        .collect();
    let has = |system: &System, game: &Game| {
        system
            .scores
            .as_ref()
            .is_some_and(|scores| scores.of(game).is_some())
    };
    let further = Game::benchmark().iter().filter(|game| {
        let of_yours = on_benchmark
            .iter()
            .any(|system| system.is_yours() && has(system, game));
        of_yours && !report.games.contains(game)
    });
    let footnotes = Footnotes::of(report);
    let rows = further.map(|game| {
        let scores = on_benchmark.iter().map(|system| {
            let runs = system.scores.as_ref().and_then(|scores| scores.of(game));
            let mean = runs.map_or(Cell::none(), |runs| {
                Cell::number(Distribution::of(runs).mean, 1)
            });
            mean.noted(footnotes.of_games(system, &[game]))
        });
        let players = [
            game.title().into(),
            Cell::number(game.random(), 1),
            Cell::number(game.human(), 1),
        ];
        Row::new(players.into_iter().chain(scores))
    });
    let rows: Vec<_> = rows.collect();
    let names = on_benchmark.iter().map(|system| system.name.clone());
    Table {
        name: "further-games",
        title: "Games that not all systems have".into(),
        caption: "Mean scores on games of the benchmark that some systems lack. These games are not part of the aggregates."
            .into(),
        footnotes: footnotes.below(&rows),
        groups: Vec::new(),
        columns: ["Game", "Random", "Human"]
            .map(str::to_owned)
            .into_iter()
            .chain(names)
            .collect(),
        rows,
    }
}

/// Games without a human score.
pub fn other(report: &Report) -> Table {
    let mut rows = Vec::new();
    for system in &report.systems {
        let mut games: Vec<&GameName> = Vec::new();
        let others = system
            .runs()
            .iter()
            .filter(|run| matches!(run.game, GameName::Other(_)));
        for run in others {
            if !games.contains(&&run.game) {
                games.push(&run.game);
            }
        }
        for game in games {
            rows.extend(row(system, game));
        }
    }
    Table {
        name: "other-games",
        title: "Games without a human score".into(),
        caption: "Raw scores of finished runs. SD is the sample standard deviation. Random and scripted policies are evaluated by the protocol of the runs."
            .into(),
        footnotes: Vec::new(),
        groups: Vec::new(),
        columns: ["Game", "System", "Runs", "Mean", "SD", "Lowest", "Highest", "Random", "Scripted"]
            .map(str::to_owned)
            .into(),
        rows,
    }
}

fn row(system: &System, game: &GameName) -> Option<Row> {
    let runs: Vec<&Run> = system
        .runs()
        .iter()
        .filter(|run| run.game == *game)
        .collect();
    let scores: Vec<f64> = runs.iter().filter_map(|run| run.score).collect();
    if scores.is_empty() {
        return None;
    }
    let scored = Distribution::of(&scores);
    // The score of the random policy depends on the seed.
    let mean_of = |key| {
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.protocol.as_ref()?.number(key))
            .collect();
        (!values.is_empty()).then(|| Distribution::of(&values).mean)
    };
    let number = |value: Option<f64>| value.map_or(Cell::none(), |value| Cell::number(value, 3));
    Some(Row::new([
        game.to_string().into(),
        system.name.as_str().into(),
        Cell::number(scores.len() as f64, 0),
        number(Some(scored.mean)),
        number(scored.standard_deviation),
        number(Some(scored.lowest())),
        number(Some(scored.highest())),
        number(mean_of("random_player")),
        number(mean_of("scripted_player")),
    ]))
}
