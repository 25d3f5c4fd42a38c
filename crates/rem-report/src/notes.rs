//! Notes and warnings of a report.

use rem_stats::Game;
use rem_stats::baselines::Family;

use crate::departures::{self, Standard};
use crate::protocol::{Affects, Protocol};
use crate::report::{Note, Report, Severity};
use crate::run::{GameName, Run};
use crate::system::{Origin, System};

/// All notes of a report, warnings first. `input_notes` are from reading the inputs.
pub fn all(report: &Report, input_notes: Vec<String>) -> Vec<Note> {
    let mut notes: Vec<Note> = input_notes.into_iter().map(note).collect();
    notes.extend(games(report));
    for system in &report.systems {
        notes.extend(scores(report, system));
        notes.extend(runs(system));
    }
    notes.extend(protocols(report));
    notes.extend(departures(report));
    notes.extend(paper(report));
    if report.systems.iter().any(|system| !system.is_yours()) {
        notes.push(note(
            "published scores are copied from their sources; their evaluation protocols are not known".into(),
        ));
    }
    notes.sort_by_key(|note| note.severity);
    notes
}

fn note(text: String) -> Note {
    Note {
        severity: Severity::Note,
        text,
    }
}

fn warning(text: String) -> Note {
    Note {
        severity: Severity::Warning,
        text,
    }
}

/// Which games the aggregates cover, if not the whole benchmark.
fn games(report: &Report) -> Option<Note> {
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
            "the systems share no game: there are no aggregates, only scores per game".into(),
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

/// Limits of the scores of a system.
fn scores(report: &Report, system: &System) -> Vec<Note> {
    let name = &system.name;
    let mut notes = Vec::new();
    if let Some(scores) = &system.scores {
        let runs = |game: &&Game| scores.of(game).map_or(0, <[f64]>::len);
        let compared = || report.games.iter().map(runs);
        let (fewest, most) = (compared().min().unwrap_or(0), compared().max().unwrap_or(0));
        if system.has_means_only() {
            notes.push(note(format!(
                "{name} is published as one mean per game: no intervals, interquartile mean, optimality gap, profile or probability of improvement"
            )));
        } else if fewest != most {
            notes.push(note(format!(
                "{name} has {fewest} to {most} runs per game; all games have equal weight"
            )));
        }
        if system.is_yours() && scores.coverage().most_runs == 1 {
            notes.push(warning(format!(
                "{name} has one score per game: variance is unknown, and if the scores are means over runs, its interquartile mean and optimality gap are wrong"
            )));
        }
    }
    if let (Origin::File(_), Family::TokenBased) = (&system.origin, system.family) {
        notes.push(note(format!(
            "{name} counts as token-based; if it is not, pass `--not-token-based {name}`"
        )));
    }
    if matches!(system.origin, Origin::File(_)) {
        notes.push(note(format!(
            "{name} is a file of scores: its evaluation protocol is not known"
        )));
    }
    notes
}

/// Tables of the paper that are fully reproduced.
fn paper(report: &Report) -> impl Iterator<Item = Note> {
    let reproduced = report
        .comparisons
        .iter()
        .filter(|comparison| comparison.differences.is_empty());
    reproduced.map(|comparison| {
        note(format!(
            "all {} numbers that the REM paper prints for these systems in {} are reproduced",
            comparison.compared, comparison.table
        ))
    })
}

/// Runs of a system that are unfinished, not on the benchmark, without a protocol, or duplicates.
fn runs(system: &System) -> Vec<Note> {
    let name = &system.name;
    let runs = system.runs();
    let mut notes = Vec::new();
    let unfinished = listed(runs, |run| run.score.is_none());
    if let Some(list) = unfinished {
        notes.push(note(format!(
            "{name}: unfinished runs, only in the curves: {list}"
        )));
    }
    let others = listed(runs, |run| matches!(run.game, GameName::Other(_)));
    if let Some(list) = others {
        notes.push(note(format!(
            "{name}: games without a human score, not in aggregates: {list}"
        )));
    }
    if let Some(list) = listed(runs, |run| run.protocol.is_none()) {
        notes.push(warning(format!("{name}: no protocol.json: {list}")));
    }
    for (index, run) in runs.iter().enumerate() {
        let same = |other: &&Run| other.game == run.game && other.seed == run.seed;
        if let Some(other) = runs[index + 1..].iter().find(same) {
            notes.push(warning(format!(
                "{name}: {} and {} have the same game and seed: they are not independent",
                run.name, other.name
            )));
        }
    }
    notes
}

/// Differences between the protocols of compared runs.
fn protocols(report: &Report) -> Vec<Note> {
    let runs: Vec<(&Run, &Protocol)> = report
        .systems
        .iter()
        .flat_map(System::runs)
        .filter_map(|run| Some((run, run.protocol.as_ref()?)))
        .collect();
    let mut notes = Vec::new();
    for key in Protocol::keys(runs.iter().map(|(_, protocol)| *protocol)) {
        let value = |protocol: &Protocol| protocol.text(&key.key);
        let differs = |(run, protocol): &&(&Run, &Protocol)| {
            runs.iter()
                .any(|(other, others)| compared(run, other) && value(protocol) != value(others))
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
        notes.push(match key.affects {
            Affects::Scores => warning(text),
            Affects::Training | Affects::Game => note(text),
        });
    }
    notes
}

/// Whether two runs are compared: both on the benchmark, or both on the same other game.
fn compared(a: &Run, b: &Run) -> bool {
    match (&a.game, &b.game) {
        (GameName::Benchmark(_), GameName::Benchmark(_)) => true,
        (a, b) => a == b,
    }
}

/// Departures of runs from the protocol of the benchmark, from the paper and from the preset `atari100k`.
fn departures(report: &Report) -> Vec<Note> {
    let mut found: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in report.systems.iter().flat_map(System::runs) {
        let (settings, protocol): (Vec<_>, Vec<_>) = (run.departures.iter().cloned())
            .partition(|departure| departure.standard == Standard::Preset);
        let texts = protocol.iter().map(|departure| match departure.prescribed {
            Some(_) => format!("{} as in {}", departure.text(), departure.standard.name()),
            None => departure.text(),
        });
        let settings = (!settings.is_empty()).then(|| departures::summary(&settings));
        for text in texts.chain(settings) {
            match found.iter_mut().find(|(other, _)| *other == text) {
                Some((_, runs)) => runs.push(run),
                None => found.push((text, vec![run])),
            }
        }
    }
    let warn = |(text, runs): (String, Vec<&Run>)| warning(format!("{text}: {}", names(&runs)));
    found.into_iter().map(warn).collect()
}

/// The names of the runs that satisfy a predicate. `None` if there are none.
fn listed(runs: &[Run], is: impl Fn(&Run) -> bool) -> Option<String> {
    let found: Vec<_> = runs.iter().filter(|run| is(run)).collect();
    (!found.is_empty()).then(|| names(&found))
}

/// The names of the first runs and the number of the others.
fn names(runs: &[&Run]) -> String {
    const FEW: usize = 6;
    let mut names: Vec<_> = runs.iter().take(FEW).map(|run| run.name.clone()).collect();
    if runs.len() > FEW {
        names.push(format!("{} more", runs.len() - FEW));
    }
    names.join(", ")
}

/// A count with its noun: `1 run`, `2 runs`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
