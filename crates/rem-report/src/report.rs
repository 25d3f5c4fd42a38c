//! Everything that a report says, computed once; the formats only write it down.

use rem_stats::baselines::Family;
use rem_stats::{Bootstrap, Estimate, Game, Matrix, Metric, common_games, superhuman};

use crate::curves::{self, Panel};
use crate::error::{Error, Result};
use crate::paper::{self, Comparison};
use crate::remarks::{self, Remark};
use crate::system::System;

/// Replicates of a profile, which has an interval at each of its thresholds: a band needs fewer than a single number.
const PROFILE_REPLICATES: usize = 2_000;

#[derive(Debug)]
pub struct Report {
    /// All systems: those that are not token-based, then those that are, then the user's.
    pub systems: Vec<System>,
    /// For each system, which of the colours and dashes it has in figures.
    pub looks: Vec<usize>,
    /// What the systems with scores on the benchmark are compared on: the games that all of them have.
    pub games: Vec<&'static Game>,
    /// Of the systems with scores on the benchmark, if they share a game.
    pub summaries: Vec<Summary>,
    /// The thresholds of the profiles.
    pub thresholds: Vec<f64>,
    pub improvements: Vec<Improvement>,
    pub panels: Vec<Panel>,
    pub comparisons: Vec<Comparison>,
    pub remarks: Vec<Remark>,
    pub bootstrap: Bootstrap,
}

/// A system on the games that all have.
#[derive(Debug)]
pub struct Summary {
    /// Its place among the report's systems.
    pub system: usize,
    /// Raw, of each game.
    pub means: Vec<f64>,
    pub superhuman: usize,
    /// In the order of [`Metric::ALL`]; none where single runs are needed and not there.
    pub metrics: [Option<Estimate>; 4],
    /// At each threshold.
    pub profile: Option<Vec<Estimate>>,
}

/// The probability that `x` improves on `y`, both places among the report's systems.
#[derive(Debug)]
pub struct Improvement {
    pub x: usize,
    pub y: usize,
    pub estimate: Estimate,
}

impl Report {
    /// A report on `systems`, whose names must differ. `said` is what reading them left to be said.
    pub fn new(systems: Vec<System>, said: Vec<String>, bootstrap: Bootstrap) -> Result<Self> {
        let systems = ordered(systems)?;
        let on_benchmark: Vec<_> = systems.iter().filter_map(|s| s.scores.as_ref()).collect();
        let games = common_games(&on_benchmark);
        let matrices: Vec<(usize, Matrix)> = systems
            .iter()
            .enumerate()
            .filter_map(|(index, system)| {
                let scores = system.scores.as_ref()?;
                Some((index, scores.normalised_on(&games)?))
            })
            .collect();
        let thresholds = thresholds(&systems, &matrices);
        let summary = |(index, matrix): &(usize, Matrix)| {
            summary(
                *index,
                &systems[*index],
                matrix,
                &games,
                &thresholds,
                &bootstrap,
            )
        };
        let mut report = Self {
            summaries: matrices.iter().map(summary).collect(),
            improvements: improvements(&systems, &matrices, &bootstrap),
            panels: curves::panels(&systems, &bootstrap),
            comparisons: Vec::new(),
            remarks: Vec::new(),
            looks: looks(&systems),
            thresholds,
            games,
            systems,
            bootstrap,
        };
        report.comparisons = paper::compare(&report);
        report.remarks = remarks::of(&report, said);
        Ok(report)
    }

    pub fn system(&self, summary: &Summary) -> &System {
        &self.systems[summary.system]
    }

    /// Not all systems are token-based: it makes a difference who is best of which.
    pub fn has_two_families(&self) -> bool {
        let family = |summary: &Summary| self.system(summary).family;
        let has = |wanted| {
            self.summaries
                .iter()
                .any(|summary| family(summary) == wanted)
        };
        has(Family::TokenBased) && has(Family::Other)
    }
}

/// The first looks, solid lines among them, are for what the report is about: the user's systems, or else REM. Looks
/// repeat some time: systems that have no lines come last.
fn looks(systems: &[System]) -> Vec<usize> {
    let yours = systems.iter().any(System::is_yours);
    let mut order: Vec<usize> = (0..systems.len()).collect();
    order.sort_by_key(|&index| {
        let system = &systems[index];
        let is_subject = if yours {
            system.is_yours()
        } else {
            system.name == "REM"
        };
        (!is_subject, system.has_means_only())
    });
    let look = |index| order.iter().position(|other| *other == index);
    (0..systems.len()).filter_map(look).collect()
}

/// In the order of the table; equal names are refused.
fn ordered(mut systems: Vec<System>) -> Result<Vec<System>> {
    if systems.is_empty() {
        return Err(Error::Nothing);
    }
    for (index, system) in systems.iter().enumerate() {
        let same = |other: &System| other.name.to_lowercase() == system.name.to_lowercase();
        if systems[index + 1..].iter().any(same) {
            return Err(Error::SameName(system.name.clone()));
        }
    }
    systems.sort_by_key(|system| (system.is_yours(), system.family == Family::TokenBased));
    Ok(systems)
}

fn summary(
    index: usize,
    system: &System,
    matrix: &Matrix,
    games: &[&'static Game],
    thresholds: &[f64],
    bootstrap: &Bootstrap,
) -> Summary {
    let scores = system
        .scores
        .as_ref()
        .expect("a system with a matrix has scores");
    let mean = |game: &&Game| {
        let runs = scores.of(game).expect("these games all have");
        runs.iter().sum::<f64>() / runs.len() as f64
    };
    let metrics = bootstrap.metrics(matrix);
    let means_only = system.has_means_only();
    let known = |metric: usize| {
        let needs_runs = matches!(Metric::ALL[metric], Metric::Iqm | Metric::OptimalityGap);
        (!(means_only && needs_runs)).then_some(metrics[metric])
    };
    let few = Bootstrap {
        replicates: bootstrap.replicates.min(PROFILE_REPLICATES),
        ..*bootstrap
    };
    Summary {
        system: index,
        means: games.iter().map(mean).collect(),
        superhuman: superhuman(matrix),
        metrics: std::array::from_fn(known),
        profile: (!means_only).then(|| few.profile(matrix, thresholds)),
    }
}

/// From 0 to where nearly no run is better, at most 8 times human.
fn thresholds(systems: &[System], matrices: &[(usize, Matrix)]) -> Vec<f64> {
    const STEP: f64 = 0.05;
    let with_runs = matrices
        .iter()
        .filter(|(index, _)| !systems[*index].has_means_only());
    let rare = |matrix: &Matrix, end: f64| rem_stats::profile(matrix, &[end])[0] <= 0.05;
    let ends = with_runs.map(|(_, matrix)| {
        let end = (2..8).map(f64::from).find(|end| rare(matrix, *end));
        end.unwrap_or(8.0)
    });
    let end = ends.fold(2.0, f64::max);
    let steps = (end / STEP).round() as usize;
    (0..=steps).map(|step| step as f64 * STEP).collect()
}

/// The user's systems against all others, each pair once; without any, REM or else the last one.
fn improvements(
    systems: &[System],
    matrices: &[(usize, Matrix)],
    bootstrap: &Bootstrap,
) -> Vec<Improvement> {
    let with_runs: Vec<_> = matrices
        .iter()
        .filter(|(index, _)| !systems[*index].has_means_only())
        .collect();
    let mut subjects: Vec<_> = with_runs
        .iter()
        .filter(|(index, _)| systems[*index].is_yours())
        .collect();
    if subjects.is_empty() {
        let rem = with_runs
            .iter()
            .find(|(index, _)| systems[*index].name == "REM");
        subjects.extend(rem.or(with_runs.last()));
    }
    let pairs = subjects
        .into_iter()
        .flat_map(|x| with_runs.iter().map(move |y| (x, y)));
    pairs
        .filter(|(x, y)| x.0 != y.0 && !(systems[y.0].is_yours() && y.0 < x.0))
        .map(|(x, y)| Improvement {
            x: x.0,
            y: y.0,
            estimate: bootstrap.probability_of_improvement(&x.1, &y.1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::published;

    fn report(names: &[&str]) -> Report {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let few = Bootstrap {
            replicates: 200,
            ..Bootstrap::default()
        };
        Report::new(published(&names).unwrap(), Vec::new(), few).unwrap()
    }

    #[test]
    fn families_are_together() {
        let report = report(&["rem", "iris", "simple", "storm"]);
        let names: Vec<_> = report.systems.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["SimPLe", "STORM", "REM", "IRIS"]);
        assert!(report.has_two_families());
    }

    #[test]
    fn means_get_no_statistics_of_runs() {
        let report = report(&["storm", "rem"]);
        let storm = &report.summaries[0];
        let [mean, median, iqm, gap] = storm.metrics;
        assert!(mean.unwrap().interval.is_none() && median.unwrap().interval.is_none());
        assert!(iqm.is_none() && gap.is_none() && storm.profile.is_none());
        assert!(
            report.improvements.is_empty(),
            "REM has no one to be compared with"
        );
    }

    #[test]
    fn without_runs_of_the_user_rem_is_compared_with_all_others() {
        let report = report(&["iris", "twm", "rem", "storm"]);
        let names = |i: &Improvement| {
            (
                report.systems[i.x].name.clone(),
                report.systems[i.y].name.clone(),
            )
        };
        let pairs: Vec<_> = report.improvements.iter().map(names).collect();
        assert_eq!(
            pairs,
            [("REM".into(), "TWM".into()), ("REM".into(), "IRIS".into())]
        );
    }

    #[test]
    fn ablations_are_compared_on_their_eight_games() {
        let report = report(&["ablations"]);
        assert_eq!(report.games.len(), 8);
        assert!(!report.has_two_families());
    }

    #[test]
    fn what_it_is_about_has_the_first_look() {
        assert_eq!(report(&["simple", "iris", "rem"]).looks, [1, 2, 0]);
        assert_eq!(report(&["storm", "simple", "iris"]).looks, [2, 0, 1]);
    }

    #[test]
    fn nothing_and_equal_names_are_refused() {
        let few = Bootstrap::default();
        assert!(matches!(
            Report::new(Vec::new(), Vec::new(), few),
            Err(Error::Nothing)
        ));
        let twice = [
            published(&["rem".into()]).unwrap(),
            published(&["rem".into()]).unwrap(),
        ]
        .concat();
        let error = Report::new(twice, Vec::new(), few).unwrap_err();
        assert_eq!(error.to_string(), "two systems are called `REM`");
    }
}
