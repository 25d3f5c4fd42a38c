//! The runs of the user and their protocols.

use crate::protocol::Protocol;
use crate::report::Report;
use crate::system::System;
use crate::table::{Cell, Row, Table};

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
                number(run.score, 3),
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
        groups: Vec::new(),
        columns: ["Run", "System", "Game", "Seed", "Score", "Steps", "Random", "Protocol"].map(str::to_owned).into(),
        rows,
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
        groups: Vec::new(),
        columns: ["Setting".to_owned()].into_iter().chain(letters).collect(),
        rows: rows.collect(),
    }
}
