//! Computes a [`Report`]: statistics, comparisons and notes.

use rem_stats::baselines::Family;
use rem_stats::{Bootstrap, Game, Matrix, Metric, common_games, superhuman};

use crate::curves;
use crate::error::{Error, Result};
use crate::loss_curves;
use crate::notes;
use crate::paper;
use crate::report::{Improvement, Report, Summary};
use crate::system::System;

/// Bootstrap replicates of a profile. A band of pointwise intervals needs fewer than a single number.
const PROFILE_REPLICATES: usize = 2_000;

/// A report on `systems`. `notes` are from reading them. Fails if two have the same name or there are none.
pub(crate) fn build(
    systems: Vec<System>,
    notes: Vec<String>,
    bootstrap: Bootstrap,
) -> Result<Report> {
    let systems = ordered(systems)?;
    let on_benchmark: Vec<_> = systems.iter().filter_map(|s| s.scores.as_ref()).collect();
    let games = common_games(&on_benchmark);
    let matrices: Vec<(usize, Matrix)> = systems
        .iter()
        .enumerate()
        .filter_map(|(index, system)| {
            let scores = system.scores.as_ref()?;
            Some((index, scores.normalized_on(&games)?))
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
    let mut report = Report {
        summaries: matrices.iter().map(summary).collect(),
        improvements: improvements(&systems, &matrices, &bootstrap),
        panels: curves::panels(&systems, &bootstrap),
        losses: loss_curves::panels(&systems),
        comparisons: Vec::new(),
        notes: Vec::new(),
        styles: styles(&systems),
        thresholds,
        games,
        systems,
        bootstrap,
    };
    report.comparisons = paper::compare(&report);
    report.notes = notes::all(&report, notes);
    Ok(report)
}

/// The series index of each system. The subject of the report (the systems of the user, else REM) has the first indices,
/// with solid lines. Systems without lines come last, because styles repeat.
fn styles(systems: &[System]) -> Vec<usize> {
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
    let style = |index| order.iter().position(|other| *other == index);
    (0..systems.len()).filter_map(style).collect()
}

/// Sorts systems in the order of the main table. Fails if two have the same name or there are none.
fn ordered(mut systems: Vec<System>) -> Result<Vec<System>> {
    if systems.is_empty() {
        return Err(Error::NoSystems);
    }
    for (index, system) in systems.iter().enumerate() {
        let same = |other: &System| other.name.to_lowercase() == system.name.to_lowercase();
        if systems[index + 1..].iter().any(same) {
            return Err(Error::DuplicateName(system.name.clone()));
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
        let runs = scores.of(game).expect("all systems have these games");
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

/// Thresholds from 0 to a score that at most 5% of runs exceed, between 2 and 8 times human.
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

/// Compares each system of the user with all others, each pair once. Without systems of the user, compares REM, or the
/// last system if REM is missing.
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
        build(published(&names).unwrap(), Vec::new(), few).unwrap()
    }

    #[test]
    fn systems_of_a_family_are_adjacent() {
        let report = report(&["rem", "iris", "simple", "storm"]);
        let names: Vec<_> = report.systems.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["SimPLe", "STORM", "REM", "IRIS"]);
        assert!(report.has_two_families());
    }

    #[test]
    fn systems_with_means_only_have_no_statistics_of_runs() {
        let report = report(&["storm", "rem"]);
        let storm = &report.summaries[0];
        let [mean, median, iqm, gap] = storm.metrics;
        assert!(mean.unwrap().interval.is_none() && median.unwrap().interval.is_none());
        assert!(iqm.is_none() && gap.is_none() && storm.profile.is_none());
        assert!(
            report.improvements.is_empty(),
            "STORM has no scores of runs"
        );
    }

    #[test]
    fn without_user_systems_rem_is_compared_with_all_others() {
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
    fn the_subject_of_the_report_has_the_first_style() {
        assert_eq!(report(&["simple", "iris", "rem"]).styles, [1, 2, 0]);
        assert_eq!(report(&["storm", "simple", "iris"]).styles, [2, 0, 1]);
    }

    #[test]
    fn no_systems_and_duplicate_names_are_rejected() {
        let few = Bootstrap::default();
        assert!(matches!(
            build(Vec::new(), Vec::new(), few),
            Err(Error::NoSystems)
        ));
        let twice = [
            published(&["rem".into()]).unwrap(),
            published(&["rem".into()]).unwrap(),
        ]
        .concat();
        let error = build(twice, Vec::new(), few).unwrap_err();
        assert_eq!(error.to_string(), "two systems are called `REM`");
    }
}
