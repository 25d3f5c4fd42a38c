//! What the paper prints, beside what we compute.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::main_table::{self, MainRow};
use crate::report::Report;
use crate::system::Origin;
use crate::table::Marks;

/// A table of the paper, and where our numbers are others.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub table: &'static str,
    /// How many printed numbers were compared.
    pub compared: usize,
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub row: String,
    pub system: String,
    pub printed: String,
    /// None where we compute nothing.
    pub ours: Option<String>,
    pub why: Option<&'static str>,
    pub of: Of,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Number,
    /// Bold face or underline.
    Marks,
}

impl Comparison {
    pub fn numbers_that_differ(&self) -> usize {
        let numbers = self
            .differences
            .iter()
            .filter(|difference| difference.of == Of::Number);
        numbers.count()
    }
}

struct PaperTable {
    name: &'static str,
    text: &'static str,
}

const TABLES: [PaperTable; 2] = [
    PaperTable {
        name: "main results",
        text: include_str!("../../../data/paper/main-results.json"),
    },
    PaperTable {
        name: "ablations",
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

/// The comparison with each table of the paper that is on the report's games and has one of its published systems.
pub fn compare(report: &Report) -> Vec<Comparison> {
    let rows = main_table::rows(report);
    let titles: Vec<_> = report.games.iter().map(|game| game.title()).collect();
    let comparisons = TABLES.iter().filter_map(|table| {
        let printed: Vec<PrintedRow> =
            serde_json::from_str(table.text).expect("the embedded tables are well formed");
        let games = printed
            .iter()
            .map(|row| row.row.as_str())
            .take_while(|row| *row != "Superhuman");
        let is_on_same_games = games.eq(titles.iter().copied());
        let comparison = is_on_same_games.then(|| beside(report, table.name, &printed, &rows))?;
        (comparison.compared > 0).then_some(comparison)
    });
    comparisons.collect()
}

fn beside(
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
    // Who is marked depends on who is there.
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
        assert_eq!(row.label.name(), printed.row, "our rows are the paper's");
        for (index, summary) in report.summaries.iter().enumerate() {
            let system = report.system(summary);
            let Origin::Published(_) = system.origin else {
                continue;
            };
            let Some(cell) = printed.cells.get(&system.name) else {
                continue;
            };
            comparison.compared += 1;
            let ours = row.values[index].map(|value| row.shown(value));
            let mut differ = |of, printed: String, ours: Option<String>, why| {
                comparison.differences.push(Difference {
                    row: row.label.name().into(),
                    system: system.name.clone(),
                    printed,
                    ours,
                    why,
                    of,
                });
            };
            if ours.as_deref() != Some(cell.printed.as_str()) {
                let why = why(row.label.name(), &system.name, ours.is_none());
                differ(Of::Number, cell.printed.clone(), ours, why);
            }
            if same_systems && marks_of(cell) != row.marks[index] {
                let ours = words(row.marks[index]);
                let unknown = row.values.iter().any(Option::is_none);
                let why = match unknown {
                    true => "who is best is decided among the systems whose value is known",
                    false => "all that are as good as the best are marked",
                };
                let why = Some(why);
                differ(
                    Of::Marks,
                    words(marks_of(cell)).into(),
                    Some(ours.into()),
                    why,
                );
            }
        }
    }
    comparison
}

/// What we know about single differences.
fn why(row: &str, system: &str, missing: bool) -> Option<&'static str> {
    match (row, system) {
        _ if missing => Some("needs the scores of single runs, which are not published"),
        ("Superhuman", "IRIS") => {
            Some("on Pong its mean is the human score, 14.6, which we do not count as above it")
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

fn words(marks: Marks) -> &'static str {
    match (marks.bold, marks.underline) {
        (false, false) => "not marked",
        (true, false) => "bold",
        (false, true) => "underlined",
        (true, true) => "bold and underlined",
    }
}
