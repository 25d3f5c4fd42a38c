//! The tables of a report.

mod games;
mod runs;

use rem_stats::baselines::Family;
use rem_stats::{Estimate, Metric};

use crate::footnotes::Footnotes;
use crate::main_table::{self, Label};
use crate::notes::counted;
use crate::report::{Report, Summary};
use crate::system::Origin;
use crate::table::{Cell, Row, Table, fixed};

/// The tables of a report, in order, without empty ones.
pub fn all(report: &Report) -> Vec<Table> {
    let tables = [
        main(report),
        aggregates(report),
        improvement(report),
        games::further(report),
        games::other(report),
        paper(report),
        runs::runs(report),
        runs::departures(report),
        runs::protocols(report),
        systems(report),
    ];
    tables
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

/// The names of all tables that any report may have.
pub const NAMES: [&str; 10] = [
    "main",
    "aggregates",
    "improvement",
    "further-games",
    "other-games",
    "paper",
    "runs",
    "departures",
    "protocols",
    "systems",
];

/// Scores per game and metrics, as in Table 1.
pub fn main(report: &Report) -> Table {
    let footnotes = Footnotes::of(report);
    let of_row = |label: Label, summary: &Summary| {
        let games = report.games.iter().copied();
        let in_row = games.filter(|game| match label {
            Label::Game(title) => game.title() == title,
            Label::Superhuman | Label::Metric(_) => true,
        });
        footnotes.of_games(report.system(summary), &in_row.collect::<Vec<_>>())
    };
    let rows = main_table::rows(report).into_iter().map(|row| {
        let number = |value: Option<f64>| {
            value.map_or(Cell::none(), |value| Cell::number(value, row.decimals))
        };
        let values = row.values.iter().zip(&row.marks);
        let values = values.map(|(value, marks)| number(*value).marked(*marks));
        let values = values
            .zip(&report.summaries)
            .map(|(cell, summary)| cell.noted(of_row(row.label, summary)));
        let players = [
            row.label.title().into(),
            number(row.random),
            number(row.human),
        ];
        Row {
            cells: players.into_iter().chain(values).collect(),
            ruled: row.label == Label::Superhuman,
        }
    });
    let rows: Vec<_> = rows.collect();
    let names = report
        .summaries
        .iter()
        .map(|summary| report.system(summary).name.clone());
    let columns = ["Game", "Random", "Human"]
        .map(str::to_owned)
        .into_iter()
        .chain(names);
    let marks = if report.has_two_families() {
        "Bold marks the best token-based system, underline the best of all."
    } else {
        "Bold marks the best system."
    };
    let means_only = report
        .summaries
        .iter()
        .any(|summary| report.system(summary).has_means_only());
    let dash = if means_only {
        " A dash marks metrics that cannot be computed from means over runs."
    } else {
        ""
    };
    Table {
        name: "main",
        title: "Scores and human-normalized metrics".into(),
        caption: format!(
            "Mean scores over runs on {} and metrics of human-normalized scores. {marks}{dash}",
            counted(report.games.len(), "game")
        ),
        footnotes: footnotes.below(&rows),
        groups: groups(report),
        columns: columns.collect(),
        rows,
    }
}

fn groups(report: &Report) -> Vec<(String, usize)> {
    let mut groups = vec![(String::new(), 3)];
    for summary in &report.summaries {
        let system = report.system(summary);
        let title = match (system.is_yours(), system.family) {
            (true, _) => "Yours",
            (false, Family::Other) => "Not token-based",
            (false, Family::TokenBased) => "Token-based",
        };
        match groups.last_mut() {
            Some((last, columns)) if last == title => *columns += 1,
            _ => groups.push((title.into(), 1)),
        }
    }
    groups
}

/// Aggregate metrics with intervals in the same cell.
pub fn aggregates(report: &Report) -> Table {
    let columns = Metric::ALL.map(|metric| Label::Metric(metric).title());
    let footnotes = Footnotes::of(report);
    let rows = report.summaries.iter().map(|summary| {
        let metrics = summary
            .metrics
            .iter()
            .map(|estimate| estimate.as_ref().map_or(Cell::none(), with_interval));
        let system = report.system(summary);
        let name = Cell::from(system.name.as_str());
        let name = name.noted(footnotes.of_games(system, &report.games));
        Row::new([name].into_iter().chain(metrics))
    });
    let rows: Vec<_> = rows.collect();
    Table {
        name: "aggregates",
        title: format!(
            "Aggregate metrics with {} intervals",
            confidence_level(report)
        ),
        caption: format!(
            "Human-normalized scores over {}, with {} stratified bootstrap replicates. A dash marks metrics that need scores of single runs, which are not published.",
            counted(report.games.len(), "game"),
            report.bootstrap.replicates
        ),
        footnotes: footnotes.below(&rows),
        groups: Vec::new(),
        columns: ["System".to_owned()].into_iter().chain(columns).collect(),
        rows,
    }
}

/// The same with intervals in separate columns, for CSV.
pub fn aggregates_in_columns(report: &Report) -> Table {
    let columns = Metric::ALL.iter().flat_map(|metric| {
        let name = Label::Metric(*metric).name();
        [
            name.to_owned(),
            format!("{name}, low"),
            format!("{name}, high"),
        ]
    });
    let rows = report.summaries.iter().map(|summary| {
        let metrics = summary.metrics.iter().flat_map(|estimate| match estimate {
            None => [Cell::none(), Cell::none(), Cell::none()],
            Some(estimate) => estimate_cells(estimate),
        });
        let superhuman = Cell::number(summary.superhuman as f64, 0);
        Row::new(
            [report.system(summary).name.as_str().into(), superhuman]
                .into_iter()
                .chain(metrics),
        )
    });
    let names = ["System", "Superhuman"].map(str::to_owned);
    Table {
        columns: names.into_iter().chain(columns).collect(),
        rows: rows.collect(),
        ..aggregates(report)
    }
}

fn with_interval(estimate: &Estimate) -> Cell {
    let value = fixed(estimate.value, 3);
    match estimate.interval {
        Some(interval) => format!(
            "{value} ({} to {})",
            fixed(interval.low, 3),
            fixed(interval.high, 3)
        )
        .into(),
        None => value.into(),
    }
}

fn estimate_cells(estimate: &Estimate) -> [Cell; 3] {
    let end = |value: Option<f64>| value.map_or(Cell::none(), |value| Cell::number(value, 3));
    [
        Cell::number(estimate.value, 3),
        end(estimate.interval.map(|interval| interval.low)),
        end(estimate.interval.map(|interval| interval.high)),
    ]
}

/// Probabilities of improvement with intervals.
pub fn improvement(report: &Report) -> Table {
    let footnotes = Footnotes::of(report);
    let rows = report.improvements.iter().map(|improvement| {
        let name = |index: usize| {
            let system = &report.systems[index];
            let numbers = footnotes.of_games(system, &report.games);
            Cell::from(system.name.as_str()).noted(numbers)
        };
        let [value, low, high] = estimate_cells(&improvement.estimate);
        Row::new([name(improvement.x), name(improvement.y), value, low, high])
    });
    let rows: Vec<_> = rows.collect();
    Table {
        name: "improvement",
        title: "Probability of improvement".into(),
        caption: format!(
            "Probability that a run of X scores higher than a run of Y on a random one of {} games, with {} stratified bootstrap intervals. A tie counts as one half.",
            report.games.len(),
            confidence_level(report)
        ),
        footnotes: footnotes.below(&rows),
        groups: Vec::new(),
        columns: ["X", "Y", "P(X > Y)", "low", "high"]
            .map(str::to_owned)
            .into(),
        rows,
    }
}

/// The confidence level of all intervals: `95%`.
pub fn confidence_level(report: &Report) -> String {
    format!("{}%", fixed(100.0 * report.bootstrap.level, 0))
}

/// Cells that differ from the tables of the paper.
pub fn paper(report: &Report) -> Table {
    let differences = report.comparisons.iter().flat_map(|comparison| {
        comparison
            .differences
            .iter()
            .map(move |difference| (comparison.table, difference))
    });
    let rows = differences.map(|(table, difference)| {
        Row::new([
            table.into(),
            difference.row.as_str().into(),
            difference.system.as_str().into(),
            difference.printed.as_str().into(),
            difference.ours.as_deref().unwrap_or("–").into(),
            difference.reason.unwrap_or("").into(),
        ])
    });
    let compared: Vec<_> = report
        .comparisons
        .iter()
        .map(|comparison| {
            let same = comparison.compared - comparison.numbers_that_differ();
            format!("{same} of {} in {}", comparison.compared, comparison.table)
        })
        .collect();
    Table {
        name: "paper",
        title: "Differences from the paper".into(),
        caption: format!(
            "Reproduced numbers of the REM paper for these systems: {}.",
            compared.join(" and ")
        ),
        footnotes: Vec::new(),
        groups: Vec::new(),
        columns: ["Table", "Row", "System", "Paper", "Report", "Reason"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
    }
}

/// All systems with the source of their scores.
pub fn systems(report: &Report) -> Table {
    let rows = report.systems.iter().map(|system| {
        let coverage = match &system.scores {
            _ if system.has_means_only() => "26 games, one mean each".into(),
            Some(scores) => scores.coverage().to_string(),
            None => "no game of the benchmark".into(),
        };
        let source = match &system.origin {
            Origin::Published(baseline) => baseline.source.to_owned(),
            Origin::File(file) => file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            Origin::Runs(runs) => counted(runs.len(), "run"),
        };
        let family = match system.family {
            Family::TokenBased => "token-based",
            Family::Other => "not token-based",
        };
        Row::new([
            system.name.as_str().into(),
            family.into(),
            coverage.into(),
            source.into(),
        ])
    });
    Table {
        name: "systems",
        title: "Systems and sources".into(),
        caption: "Coverage of the benchmark and source of the scores.".into(),
        footnotes: Vec::new(),
        groups: Vec::new(),
        columns: ["System", "Family", "Scores", "Source"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
    }
}
