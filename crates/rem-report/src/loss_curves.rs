//! The world model's observation loss in training and on test episodes, over epochs.

use rem_stats::Distribution;

use crate::losses::Split;
use crate::run::{GameName, Run};
use crate::system::System;

/// The losses of all systems on one game.
#[derive(Clone, Debug, PartialEq)]
pub struct LossPanel {
    /// The name of the game.
    pub title: String,
    /// The curves: two per system, or one if its runs have no losses on test episodes.
    pub curves: Vec<LossCurve>,
}

/// The mean loss of a system's runs on one game.
#[derive(Clone, Debug, PartialEq)]
pub struct LossCurve {
    /// The index of the system in [`Report::systems`](crate::Report::systems).
    pub system: usize,
    /// What the losses are computed on.
    pub split: Split,
    /// Number of runs.
    pub runs: usize,
    /// The mean at each epoch at which all runs have a loss.
    pub points: Vec<LossPoint>,
}

/// The losses of several runs at one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    /// The epoch.
    pub epoch: u32,
    /// The mean over runs.
    pub mean: f64,
    /// The sample standard deviation over runs. `None` for a single run.
    pub deviation: Option<f64>,
}

impl LossPoint {
    /// The mean minus and plus one standard deviation.
    pub(crate) fn band(&self) -> Option<(f64, f64)> {
        let deviation = self.deviation?;
        Some((self.mean - deviation, self.mean + deviation))
    }
}

/// A panel for each game with losses.
pub fn panels(systems: &[System]) -> Vec<LossPanel> {
    let mut games: Vec<&GameName> = Vec::new();
    for run in systems.iter().flat_map(System::runs) {
        if !run.losses.training.is_empty() && !games.contains(&&run.game) {
            games.push(&run.game);
        }
    }
    games.sort_by_key(|game| (matches!(game, GameName::Other(_)), game.to_string()));
    let panel = |game: &GameName| LossPanel {
        title: game.to_string(),
        curves: systems
            .iter()
            .enumerate()
            .flat_map(|(system, of)| Split::ALL.map(|split| curve(system, of, game, split)))
            .flatten()
            .collect(),
    };
    let panels = games.into_iter().map(panel);
    panels.filter(|panel| !panel.curves.is_empty()).collect()
}

fn curve(system: usize, of: &System, game: &GameName, split: Split) -> Option<LossCurve> {
    let runs = of.runs().iter().filter(|run| run.game == *game);
    let runs: Vec<&Run> = runs.filter(|r| !r.losses.of(split).is_empty()).collect();
    let (first, _) = runs.split_first()?;
    let at = |run: &Run, epoch: u32| {
        let points = run.losses.of(split);
        let index = points.binary_search_by_key(&epoch, |(epoch, _)| *epoch);
        Some(points[index.ok()?].1)
    };
    let point = |epoch: u32| {
        let losses: Option<Vec<f64>> = runs.iter().map(|run| at(run, epoch)).collect();
        let over_runs = Distribution::of(&losses?);
        Some(LossPoint {
            epoch,
            mean: over_runs.mean,
            deviation: over_runs.standard_deviation,
        })
    };
    let epochs = first.losses.of(split).iter().map(|(epoch, _)| *epoch);
    let points: Vec<_> = epochs.filter_map(point).collect();
    (!points.is_empty()).then_some(LossCurve {
        system,
        split,
        runs: runs.len(),
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::ObservationLosses;

    fn run(game: &str, seed: u64, training: &[(u32, f64)], test: &[(u32, f64)]) -> Run {
        Run {
            losses: ObservationLosses {
                training: training.into(),
                test: test.into(),
            },
            ..Run::example(game, seed)
        }
    }

    fn system(runs: Vec<Run>) -> System {
        System::of_runs("ours".into(), runs).unwrap()
    }

    #[test]
    fn points_are_means_over_seeds_with_their_deviation() {
        let pong = system(vec![
            run("pong", 1, &[(1, 3.0), (2, 2.0), (3, 1.0)], &[(2, 4.0)]),
            run("pong", 2, &[(1, 5.0), (2, 2.0)], &[(2, 6.0)]),
        ]);
        let panels = panels(&[pong]);
        assert_eq!((panels.len(), &panels[0].title[..]), (1, "Pong"));
        let [training, test] = &panels[0].curves[..] else {
            panic!("{panels:?}");
        };
        let point = |epoch, mean, deviation| LossPoint {
            epoch,
            mean,
            deviation: Some(deviation),
        };
        // The third epoch is missing in the second run.
        let root = 2f64.sqrt();
        assert_eq!(training.points, [point(1, 4.0, root), point(2, 2.0, 0.0)]);
        assert_eq!(test.points, [point(2, 5.0, root)]);
        assert_eq!((test.split, test.runs), (Split::Test, 2));
        assert_eq!(test.points[0].band(), Some((5.0 - root, 5.0 + root)));
    }

    #[test]
    fn runs_without_test_losses_have_a_training_curve_only() {
        let old = system(vec![
            run("pong", 1, &[(1, 3.0)], &[]),
            run("catch", 1, &[(1, 2.0)], &[(1, 2.5)]),
            run("boxing", 1, &[], &[]),
        ]);
        let panels = panels(&[old]);
        let found: Vec<_> = panels
            .iter()
            .map(|panel| (&panel.title[..], panel.curves.len()))
            .collect();
        assert_eq!(found, [("Pong", 1), ("catch", 2)]);
        assert_eq!(panels[0].curves[0].points[0].band(), None);
    }
}
