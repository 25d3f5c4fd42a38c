//! The runs of the user, their protocols, and their departures from the benchmark and the paper.

use crate::departures::Departure;
use crate::footnotes::Footnotes;
use crate::protocol::Protocol;
use crate::report::Report;
use crate::system::System;
use crate::table::{Cell, Row, Table, footnote_mark};

/// The distinct protocols of all runs, without values that are determined by the game. Tables name them by letters.
fn distinct(report: &Report) -> Vec<&Protocol> {
    let mut distinct: Vec<&Protocol> = Vec::new();
    for run in report.systems.iter().flat_map(System::runs) {
        if let Some(protocol) = &run.protocol
            && !distinct.iter().any(|other| other.agrees(protocol))
        {
            distinct.push(protocol);
        }
    }
    distinct
}

fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(small @ 0..26) => char::from(b'A' + small).to_string(),
        _ => format!("P{}", index + 1),
    }
}

/// All runs with score and protocol.
pub fn runs(report: &Report) -> Table {
    let distinct = distinct(report);
    let footnotes = Footnotes::of(report);
    let mut rows = Vec::new();
    for system in &report.systems {
        for run in system.runs() {
            let number = |value: Option<f64>, decimals| {
                value.map_or(Cell::none(), |value| Cell::number(value, decimals))
            };
            let protocol = run.protocol.as_ref();
            let of = protocol
                .and_then(|protocol| distinct.iter().position(|other| other.agrees(protocol)));
            rows.push(Row::new([
                run.name.as_str().into(),
                system.name.as_str().into(),
                run.game.to_string().into(),
                run.seed.to_string().into(),
                number(run.score, 3).noted(footnotes.of_run(run)),
                Cell::number(run.last_steps() as f64, 0),
                number(
                    protocol.and_then(|protocol| protocol.number("random_player")),
                    3,
                ),
                of.map_or(Cell::none(), |index| letter(index).into()),
            ]));
        }
    }
    Table {
        name: "runs",
        title: "Runs".into(),
        caption: "Final score of each run (a dash if it is not finished), environment steps at its last evaluation, score of a random policy, and protocol.".into(),
        footnotes: footnotes.below(&rows),
        groups: Vec::new(),
        columns: ["Run", "System", "Game", "Seed", "Score", "Steps", "Random", "Protocol"].map(str::to_owned).into(),
        rows,
    }
}

/// All departures of scored runs from the benchmark and the paper, in a column for each footnote.
pub fn departures(report: &Report) -> Table {
    let footnotes = Footnotes::of(report);
    let lists = footnotes.lists();
    let mut all: Vec<&Departure> = Vec::new();
    for departure in lists.iter().flat_map(|(run, _)| &run.departures) {
        if !all.iter().any(|other| other.subject == departure.subject) {
            all.push(departure);
        }
    }
    all.sort_by_key(|departure| departure.standard);
    let rows = all.into_iter().map(|departure| {
        let prescribed = departure.prescribed.as_deref();
        let known = [
            departure.subject.as_str().into(),
            prescribed.map_or(Cell::none(), Cell::from),
            departure.standard.name().into(),
        ];
        let values = lists.iter().map(|(run, _)| {
            let same = |other: &&Departure| other.subject == departure.subject;
            let found = run.departures.iter().find(same);
            Cell::from(found.map_or("as prescribed", |found| &found.value))
        });
        Row::new(known.into_iter().chain(values))
    });
    let columns = ["Setting", "Prescribed", "As in"].map(str::to_owned);
    let systems = lists
        .iter()
        .enumerate()
        .map(|(number, (_, systems))| format!("{} {}", footnote_mark(number), systems.join(", ")));
    Table {
        name: "departures",
        title: "Departures from the benchmark and the paper".into(),
        caption: "Values behind the scores marked † and so on that differ from those of the Atari 100K benchmark, from those of the paper, or from the preset atari100k, which has the paper's settings of training.".into(),
        footnotes: Vec::new(),
        groups: Vec::new(),
        columns: columns.into_iter().chain(systems).collect(),
        rows: rows.collect(),
    }
}

/// The settings of each distinct protocol.
pub fn protocols(report: &Report) -> Table {
    let distinct = distinct(report);
    let rows = Protocol::keys(distinct.iter().copied())
        .into_iter()
        .map(|key| {
            let values = distinct
                .iter()
                .map(|protocol| Cell::from(protocol.text(&key.key)));
            Row::new([key.label.as_str().into()].into_iter().chain(values))
        });
    let letters = (0..distinct.len()).map(letter);
    Table {
        name: "protocols",
        title: "Protocols".into(),
        caption: "Settings of the runs, without those that are determined by the game.".into(),
        footnotes: Vec::new(),
        groups: Vec::new(),
        columns: ["Setting".to_owned()].into_iter().chain(letters).collect(),
        rows: rows.collect(),
    }
}
