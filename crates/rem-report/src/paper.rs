//! Comparison with the numbers printed in Tables 1 and 9 of the paper.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::main_table::{self, MainRow};
use crate::report::{Comparison, Difference, DifferenceKind, Report};
use crate::system::Origin;
use crate::table::Marks;

struct PaperTable {
    name: &'static str,
    text: &'static str,
}

const TABLES: [PaperTable; 2] = [
    PaperTable {
        name: "Table 1",
        text: include_str!("../../../data/paper/main-results.json"),
    },
    PaperTable {
        name: "Table 9",
        text: include_str!("../../../data/paper/ablations.json"),
    },
];

#[derive(Deserialize)]
struct PrintedRow {
    row: String,
    cells: BTreeMap<String, Printed>,
}

#[derive(Deserialize)]
struct Printed {
    printed: String,
    #[serde(default)]
    marks: Vec<Mark>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mark {
    Bold,
    Underline,
}

/// The comparison with each table of the paper that has the games and at least one published system of the report.
pub fn compare(report: &Report) -> Vec<Comparison> {
    let rows = main_table::rows(report);
    let titles: Vec<_> = report.games.iter().map(|game| game.title()).collect();
    let comparisons = TABLES.iter().filter_map(|table| {
        let printed: Vec<PrintedRow> =
            serde_json::from_str(table.text).expect("the embedded tables are valid");
        let games = printed
            .iter()
            .map(|row| row.row.as_str())
            .take_while(|row| *row != "Superhuman");
        let is_on_same_games = games.eq(titles.iter().copied());
        let comparison =
            is_on_same_games.then(|| compare_table(report, table.name, &printed, &rows))?;
        (comparison.compared > 0).then_some(comparison)
    });
    comparisons.collect()
}

fn compare_table(
    report: &Report,
    table: &'static str,
    printed: &[PrintedRow],
    rows: &[MainRow],
) -> Comparison {
    let mut comparison = Comparison {
        table,
        compared: 0,
        differences: Vec::new(),
    };
    // Marks are comparable only between the same set of systems.
    let same_systems = printed.first().is_some_and(|row| {
        let ours = report
            .summaries
            .iter()
            .map(|summary| report.system(summary).name.as_str());
        let mut ours: Vec<_> = ours.chain(["Human", "Random"]).collect();
        ours.sort();
        row.cells.keys().map(String::as_str).eq(ours)
    });
    for (row, printed) in rows.iter().zip(printed) {
        assert_eq!(
            row.label.name(),
            printed.row,
            "rows must be in the order of the paper"
        );
        for (index, summary) in report.summaries.iter().enumerate() {
            let system = report.system(summary);
            let Origin::Published(_) = system.origin else {
                continue;
            };
            let Some(cell) = printed.cells.get(&system.name) else {
                continue;
            };
            comparison.compared += 1;
            let ours = row.values[index].map(|value| row.formatted(value));
            let mut differ = |kind, printed: String, ours: Option<String>, reason| {
                comparison.differences.push(Difference {
                    row: row.label.name().into(),
                    system: system.name.clone(),
                    printed,
                    ours,
                    reason,
                    kind,
                });
            };
            if ours.as_deref() != Some(cell.printed.as_str()) {
                let reason = known_reason(row.label.name(), &system.name, ours.is_none());
                differ(DifferenceKind::Number, cell.printed.clone(), ours, reason);
            }
            if same_systems && marks_of(cell) != row.marks[index] {
                let ours = describe(row.marks[index]);
                let unknown = row.values.iter().any(Option::is_none);
                let reason = match unknown {
                    true => "only systems with a known value are marked",
                    false => "ties with the best are marked",
                };
                differ(
                    DifferenceKind::Marks,
                    describe(marks_of(cell)).into(),
                    Some(ours.into()),
                    Some(reason),
                );
            }
        }
    }
    comparison
}

/// The reason for a difference in a number, if known.
fn known_reason(row: &str, system: &str, missing: bool) -> Option<&'static str> {
    match (row, system) {
        _ if missing => Some("requires scores of single runs, which are not published"),
        ("Superhuman", "IRIS") => {
            Some("its mean on Pong equals the human score, 14.6, which does not count as above")
        }
        _ => None,
    }
}

fn marks_of(cell: &Printed) -> Marks {
    Marks {
        bold: cell.marks.contains(&Mark::Bold),
        underline: cell.marks.contains(&Mark::Underline),
    }
}

fn describe(marks: Marks) -> &'static str {
    match (marks.bold, marks.underline) {
        (false, false) => "not marked",
        (true, false) => "bold",
        (false, true) => "underlined",
        (true, true) => "bold and underlined",
    }
}
