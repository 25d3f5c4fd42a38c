//! What a reader of the numbers must know.

use rem_stats::Game;
use rem_stats::baselines::Family;

use crate::protocol::{Bearing, Protocol};
use crate::report::Report;
use crate::run::{GameName, Run};
use crate::system::{Origin, System};
use crate::table::fixed;

#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    pub weight: Weight,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Numbers may not be comparable.
    Warning,
    Note,
}

impl Weight {
    pub fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Warnings first.
pub fn of(report: &Report, said: Vec<String>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = said.into_iter().map(note).collect();
    remarks.extend(games(report));
    for system in &report.systems {
        remarks.extend(scores(report, system));
        remarks.extend(runs(system));
    }
    remarks.extend(protocols(report));
    remarks.extend(departures(report));
    remarks.extend(paper(report));
    if report.systems.iter().any(|system| !system.is_yours()) {
        remarks.push(note(
            "published scores are as their sources give them; by what protocol they were played is not known here".into(),
        ));
    }
    remarks.sort_by_key(|remark| remark.weight);
    remarks
}

fn note(text: String) -> Remark {
    Remark {
        weight: Weight::Note,
        text,
    }
}

fn warning(text: String) -> Remark {
    Remark {
        weight: Weight::Warning,
        text,
    }
}

/// What is compared on what.
fn games(report: &Report) -> Option<Remark> {
    let on_benchmark: Vec<_> = report
        .systems
        .iter()
        .filter(|s| s.scores.is_some())
        .collect();
    let fewer = on_benchmark.iter().filter(|system| {
        let games = system
            .scores
            .iter()
            .flat_map(|scores| scores.games())
            .count();
        games < Game::benchmark().len()
    });
    let fewer: Vec<_> = fewer.map(|system| system.name.as_str()).collect();
    match report.games.len() {
        _ if fewer.is_empty() => None,
        0 => Some(warning(
            "the systems have no game in common: there are no aggregates, only the scores of each game".into(),
        )),
        compared => {
            let titles: Vec<_> = report.games.iter().map(|game| game.title()).collect();
            Some(note(format!(
                "aggregates are over {}, not the benchmark's {}: {}; the others are missing from {}",
                match on_benchmark.len() {
                    1 => counted(compared, "game"),
                    _ => format!("the {} that all systems have", counted(compared, "game")),
                },
                Game::benchmark().len(),
                titles.join(", "),
                fewer.join(", ")
            )))
        }
    }
}

fn scores(report: &Report, system: &System) -> Vec<Remark> {
    let name = &system.name;
    let mut remarks = Vec::new();
    if let Some(scores) = &system.scores {
        let runs = |game: &&Game| scores.of(game).map_or(0, <[f64]>::len);
        let compared = || report.games.iter().map(runs);
        let (fewest, most) = (compared().min().unwrap_or(0), compared().max().unwrap_or(0));
        if system.has_means_only() {
            remarks.push(note(format!(
                "{name} is published as one number a game: no intervals, and no interquartile mean, optimality gap, profile or probability of improvement"
            )));
        } else if fewest != most {
            remarks.push(note(format!(
                "{name} has {fewest} to {most} runs of a game; every game weighs the same"
            )));
        }
        if system.is_yours() && scores.coverage().most_runs == 1 {
            remarks.push(warning(format!(
                "{name} has one score a game: nothing can be said of how its runs spread, and if these are means of runs, its interquartile mean and optimality gap are not those of the runs"
            )));
        }
    }
    if let (Origin::File(_), Family::TokenBased) = (&system.origin, system.family) {
        remarks.push(note(format!(
            "{name} counts as token-based; if it is not, say so by `--not-token-based {name}`"
        )));
    }
    remarks
}

/// Where every number of a table of the paper is met: there is nothing else that would tell.
fn paper(report: &Report) -> impl Iterator<Item = Remark> {
    let met = report
        .comparisons
        .iter()
        .filter(|comparison| comparison.differences.is_empty());
    met.map(|comparison| {
        note(format!(
            "all {} numbers that the REM paper prints for these systems in its table of {} are met",
            comparison.compared, comparison.table
        ))
    })
}

fn runs(system: &System) -> Vec<Remark> {
    let name = &system.name;
    let runs = system.runs();
    let mut remarks = Vec::new();
    let unfinished = listed(runs, |run| run.score.is_none());
    if let Some(list) = unfinished {
        remarks.push(note(format!(
            "{name}: not finished, and so in the curves only: {list}"
        )));
    }
    let others = listed(runs, |run| matches!(run.game, GameName::Other(_)));
    if let Some(list) = others {
        remarks.push(note(format!(
            "{name}: games without a human score, and so in no aggregate: {list}"
        )));
    }
    if let Some(list) = listed(runs, |run| run.protocol.is_none()) {
        remarks.push(warning(format!("{name}: no protocol.json: {list}")));
    }
    for (index, run) in runs.iter().enumerate() {
        let same = |other: &&Run| other.game == run.game && other.seed == run.seed;
        if let Some(other) = runs[index + 1..].iter().find(same) {
            remarks.push(warning(format!(
                "{name}: {} and {} are of the same game and seed: they are not independent runs",
                run.name, other.name
            )));
        }
    }
    remarks
}

/// Where the protocols of runs differ whose scores are put together or side by side.
fn protocols(report: &Report) -> Vec<Remark> {
    let runs: Vec<(&Run, &Protocol)> = report
        .systems
        .iter()
        .flat_map(System::runs)
        .filter_map(|run| Some((run, run.protocol.as_ref()?)))
        .collect();
    let mut remarks = Vec::new();
    for key in Protocol::keys(runs.iter().map(|(_, protocol)| *protocol)) {
        let value = |protocol: &Protocol| protocol.text(&key.key);
        let differs = |(run, protocol): &&(&Run, &Protocol)| {
            runs.iter()
                .any(|(other, others)| together(run, other) && value(protocol) != value(others))
        };
        let mut values: Vec<(String, Vec<&Run>)> = Vec::new();
        for (run, protocol) in runs.iter().filter(differs) {
            let value = value(protocol);
            match values.iter_mut().find(|(other, _)| *other == value) {
                Some((_, with)) => with.push(run),
                None => values.push((value, vec![run])),
            }
        }
        if values.is_empty() {
            continue;
        }
        let parts: Vec<_> = values
            .iter()
            .map(|(value, with)| format!("{value} ({})", names(with)))
            .collect();
        let text = format!("protocols differ in {}: {}", key.label, parts.join(", "));
        remarks.push(match key.bearing {
            Bearing::Meaning => warning(text),
            Bearing::Making | Bearing::Game => note(text),
        });
    }
    remarks
}

/// All runs on the benchmark, and all of one other game.
fn together(a: &Run, b: &Run) -> bool {
    match (&a.game, &b.game) {
        (GameName::Benchmark(_), GameName::Benchmark(_)) => true,
        (a, b) => a == b,
    }
}

/// Where runs on the benchmark are not played by its protocol.
fn departures(report: &Report) -> Vec<Remark> {
    let mut found: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in report.systems.iter().flat_map(System::runs) {
        let (GameName::Benchmark(_), Some(protocol)) = (&run.game, &run.protocol) else {
            continue;
        };
        for (label, has, asked) in protocol.departures() {
            let text = format!(
                "{label} {}, the benchmark's are {}",
                plain(has),
                plain(asked)
            );
            match found.iter_mut().find(|(other, _)| *other == text) {
                Some((_, runs)) => runs.push(run),
                None => found.push((text, vec![run])),
            }
        }
    }
    let remark = |(text, runs): (String, Vec<&Run>)| warning(format!("{text}: {}", names(&runs)));
    found.into_iter().map(remark).collect()
}

fn plain(number: f64) -> String {
    fixed(number, if number.fract() == 0.0 { 0 } else { 2 })
}

fn listed(runs: &[Run], is: impl Fn(&Run) -> bool) -> Option<String> {
    let found: Vec<_> = runs.iter().filter(|run| is(run)).collect();
    (!found.is_empty()).then(|| names(&found))
}

/// At most a few by name.
fn names(runs: &[&Run]) -> String {
    const FEW: usize = 6;
    let mut names: Vec<_> = runs.iter().take(FEW).map(|run| run.name.clone()).collect();
    if runs.len() > FEW {
        names.push(format!("{} more", runs.len() - FEW));
    }
    names.join(", ")
}

pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
