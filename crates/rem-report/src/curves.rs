//! Learning curves: scores against environment steps.

use rem_stats::{Bootstrap, Estimate, Game, Matrix, Metric};

use crate::run::{GameName, Run};
use crate::system::System;

/// Learning curves of one game, or of all games together.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The name of the game, or of the benchmark.
    pub title: String,
    /// The label of the vertical axis.
    pub scale: &'static str,
    /// One curve per system.
    pub curves: Vec<Curve>,
    /// Names and scores of reference players, such as a random policy.
    pub references: Vec<(&'static str, f64)>,
}

/// The learning curve of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its index in [`Report::systems`](crate::Report::systems).
    pub system: usize,
    /// Environment steps and the mean score of all runs, at steps where all runs were evaluated.
    pub points: Vec<(u64, Estimate)>,
    /// Environment steps and scores of each run. Empty for all games together.
    pub runs: Vec<Vec<(u64, f64)>>,
}

/// A panel for all games of the benchmark together, if a system has more than one of them, and a panel for each game.
pub fn panels(systems: &[System], bootstrap: &Bootstrap) -> Vec<Panel> {
    let mut games: Vec<&GameName> = Vec::new();
    for run in systems.iter().flat_map(System::runs) {
        if !run.evaluations.is_empty() && !games.contains(&&run.game) {
            games.push(&run.game);
        }
    }
    games.sort_by_key(|game| (matches!(game, GameName::Other(_)), game.to_string()));
    let singles = games.into_iter().map(|game| of_game(systems, game));
    of_benchmark(systems, bootstrap)
        .into_iter()
        .chain(singles)
        .collect()
}

fn of_game(systems: &[System], game: &GameName) -> Panel {
    let mut references = Vec::new();
    match game {
        GameName::Benchmark(game) => {
            references.extend([("random", game.random()), ("human", game.human())]);
        }
        GameName::Other(_) => {
            let mut runs = systems.iter().flat_map(System::runs);
            let protocol = runs.find_map(|run| run.protocol.as_ref().filter(|_| run.game == *game));
            let number = |key| protocol.and_then(|protocol| protocol.number(key));
            references.extend(number("random_player").map(|score| ("random", score)));
            references.extend(number("scripted_player").map(|score| ("scripted", score)));
        }
    }
    let curves = systems.iter().enumerate().filter_map(|(system, of)| {
        let runs: Vec<&Run> = with_evaluations(of)
            .filter(|run| run.game == *game)
            .collect();
        let mean = |steps| {
            let scores = runs.iter().filter_map(|run| at(run, steps));
            Estimate {
                value: scores.sum::<f64>() / runs.len() as f64,
                interval: None,
            }
        };
        (!runs.is_empty()).then(|| Curve {
            system,
            points: shared_steps(&runs)
                .into_iter()
                .map(|steps| (steps, mean(steps)))
                .collect(),
            runs: runs
                .iter()
                .map(|run| run.evaluations.iter().map(|e| (e.steps, e.mean)).collect())
                .collect(),
        })
    });
    Panel {
        title: game.to_string(),
        scale: "Score",
        curves: curves.collect(),
        references,
    }
}

/// The interquartile mean of all runs on games of the benchmark, with its interval.
fn of_benchmark(systems: &[System], bootstrap: &Bootstrap) -> Option<Panel> {
    let curves: Vec<Curve> = systems
        .iter()
        .enumerate()
        .filter_map(|(system, of)| {
            let runs: Vec<(&'static Game, &Run)> = with_evaluations(of)
                .filter_map(|run| match run.game {
                    GameName::Benchmark(game) => Some((game, run)),
                    GameName::Other(_) => None,
                })
                .collect();
            let only: Vec<_> = runs.iter().map(|(_, run)| *run).collect();
            let iqm = |steps| {
                let index = Metric::ALL
                    .iter()
                    .position(|metric| *metric == Metric::Iqm)?;
                Some((steps, bootstrap.metrics(&matrix(&runs, steps))[index]))
            };
            let several = runs.iter().any(|(game, _)| *game != runs[0].0);
            several.then(|| Curve {
                system,
                points: shared_steps(&only).into_iter().filter_map(iqm).collect(),
                runs: Vec::new(),
            })
        })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Panel {
        title: "All games of the benchmark".into(),
        scale: "IQM, human-normalized",
        curves,
        references: vec![("human", 1.0)],
    })
}

/// The human-normalized scores of all runs at `steps`.
fn matrix(runs: &[(&'static Game, &Run)], steps: u64) -> Matrix {
    let mut columns: Vec<(&'static Game, Vec<f64>)> = Vec::new();
    for (game, run) in runs {
        let score = game.normalize(at(run, steps).expect("all runs were evaluated there"));
        match columns.iter_mut().find(|(other, _)| other == game) {
            Some((_, scores)) => scores.push(score),
            None => columns.push((game, vec![score])),
        }
    }
    Matrix::new(columns)
}

fn with_evaluations(system: &System) -> impl Iterator<Item = &Run> {
    system
        .runs()
        .iter()
        .filter(|run| !run.evaluations.is_empty())
}

/// The steps at which all runs were evaluated.
fn shared_steps(runs: &[&Run]) -> Vec<u64> {
    let Some((first, others)) = runs.split_first() else {
        return Vec::new();
    };
    let steps = first.evaluations.iter().map(|evaluation| evaluation.steps);
    steps
        .filter(|steps| others.iter().all(|run| at(run, *steps).is_some()))
        .collect()
}

/// The score of the evaluation at `steps`.
fn at(run: &Run, steps: u64) -> Option<f64> {
    let found = run
        .evaluations
        .iter()
        .find(|evaluation| evaluation.steps == steps);
    found.map(|evaluation| evaluation.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Evaluation;

    fn run(game: &str, seed: u64, evaluations: &[(u64, f64)]) -> Run {
        Run {
            evaluations: evaluations
                .iter()
                .map(|&(steps, mean)| Evaluation { steps, mean })
                .collect(),
            ..Run::example(game, seed)
        }
    }

    fn system(runs: Vec<Run>) -> System {
        System::of_runs("ours".into(), runs).unwrap()
    }

    const FEW: Bootstrap = Bootstrap {
        replicates: 100,
        seed: 0,
        level: 0.95,
    };

    #[test]
    fn means_are_over_steps_at_which_all_runs_were_evaluated() {
        let catch = system(vec![
            run("catch", 1, &[(100, 0.0), (200, 1.0), (300, 1.0)]),
            run("catch", 2, &[(100, 0.5), (200, 0.0)]),
        ]);
        let panels = panels(&[catch], &FEW);
        assert_eq!(panels.len(), 1);
        let points = &panels[0].curves[0].points;
        let points: Vec<_> = points.iter().map(|(steps, e)| (*steps, e.value)).collect();
        assert_eq!(points, [(100, 0.25), (200, 0.5)]);
        assert_eq!(panels[0].curves[0].runs[0].len(), 3);
    }

    #[test]
    fn games_of_the_benchmark_share_a_panel() {
        // Boxing: random 0.1, human 12.1.
        let ours = system(vec![
            run("boxing", 1, &[(100, 0.1), (200, 12.1)]),
            run("pong", 1, &[(100, -20.7), (200, 14.6)]),
            run("catch", 1, &[(100, 0.0)]),
        ]);
        let panels = panels(&[ours], &FEW);
        let titles: Vec<_> = panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(
            titles,
            ["All games of the benchmark", "Boxing", "Pong", "catch"]
        );
        let points: Vec<_> = panels[0].curves[0]
            .points
            .iter()
            .map(|(_, e)| e.value)
            .collect();
        assert!(
            points[0].abs() < 1e-9 && (points[1] - 1.0).abs() < 1e-9,
            "{points:?}"
        );
        assert_eq!(panels[1].references, [("random", 0.1), ("human", 12.1)]);
    }
}
