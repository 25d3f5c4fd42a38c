//! Reports on published scores reproduce Tables 1 and 9 of the paper.

mod support;

use rem_report::{DifferenceKind, Marks, Report, Table, tables};
use support::quick;

fn table(report: &Report, name: &str) -> Table {
    tables(report)
        .into_iter()
        .find(|table| table.name == name)
        .unwrap()
}

fn cell<'a>(table: &'a Table, row: &str, column: &str) -> &'a rem_report::Cell {
    let column = table
        .columns
        .iter()
        .position(|title| title == column)
        .unwrap();
    let row = table
        .rows
        .iter()
        .find(|line| line.cells[0].text.starts_with(row))
        .unwrap();
    &row.cells[column]
}

/// Row, system, printed value and our value of all differences of a kind.
fn differences(report: &Report, kind: DifferenceKind) -> Vec<[String; 4]> {
    let all = report
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.differences);
    let those = all.filter(|difference| difference.kind == kind);
    those
        .map(|d| {
            [
                d.row.clone(),
                d.system.clone(),
                d.printed.clone(),
                d.ours.clone().unwrap_or_default(),
            ]
        })
        .collect()
}

#[test]
fn table_1_is_reproduced_except_for_known_differences() {
    let report = quick(&[], &["rem", "iris", "simple", "dreamerv3", "twm", "storm"]).unwrap();
    assert_eq!(report.games.len(), 26);
    let [comparison] = &report.comparisons[..] else {
        panic!("one table of the paper is on these games");
    };
    // 26 games, 5 metrics, 6 systems.
    assert_eq!(comparison.compared, 31 * 6);
    let expected = [
        ["Superhuman", "IRIS", "10", "9"],
        ["IQM", "STORM", "0.561", ""],
        ["Optimality Gap", "STORM", "0.472", ""],
    ];
    assert_eq!(
        differences(&report, DifferenceKind::Number),
        expected.map(|row| row.map(str::to_owned))
    );
    // Without STORM's optimality gap the mark moves to REM. All other marks match the paper.
    let expected = [
        ["Optimality Gap", "STORM", "underlined", "not marked"],
        ["Optimality Gap", "REM", "bold", "bold and underlined"],
    ];
    assert_eq!(
        differences(&report, DifferenceKind::Marks),
        expected.map(|row| row.map(str::to_owned))
    );
    assert!(
        comparison
            .differences
            .iter()
            .all(|difference| difference.reason.is_some())
    );
}

#[test]
fn bold_is_best_of_token_based_and_underlined_best_of_all() {
    let report = quick(&[], &["paper"]).unwrap();
    let main = table(&report, "main");
    let marks = |row, column| {
        let Marks { bold, underline } = cell(&main, row, column).marks;
        (bold, underline)
    };
    assert_eq!(marks("Alien", "STORM"), (false, true));
    assert_eq!(marks("Alien", "REM"), (true, false));
    assert_eq!(marks("Assault", "REM"), (true, true));
    assert_eq!(marks("Assault", "IRIS"), (false, false));
    // Both are printed as 1.222; STORM's is larger before rounding.
    assert_eq!(marks("Mean", "STORM"), (false, true));
    assert_eq!(marks("Mean", "REM"), (true, false));
    assert_eq!(cell(&main, "IQM", "STORM").text, "–");
    assert_eq!(main.groups.len(), 3);
}

#[test]
fn table_9_is_reproduced_except_for_marks_of_ties() {
    let report = quick(&[], &["ablations"]).unwrap();
    let titles: Vec<_> = report.games.iter().map(|game| game.title()).collect();
    assert_eq!(titles.len(), 8);
    let [comparison] = &report.comparisons[..] else {
        panic!("one table of the paper is on these games");
    };
    // 8 games, 5 metrics, 7 systems.
    assert_eq!(comparison.compared, 13 * 7);
    assert_eq!(
        differences(&report, DifferenceKind::Number),
        Vec::<[String; 4]>::new()
    );
    // Four systems have six superhuman games; the paper marks one of them.
    let marks = differences(&report, DifferenceKind::Marks);
    assert_eq!(marks.len(), 3);
    assert!(
        marks
            .iter()
            .all(|[row, _, printed, ours]| row == "Superhuman"
                && printed == "not marked"
                && ours == "bold")
    );
}

#[test]
fn other_games_or_systems_are_not_compared_with_the_paper() {
    let report = quick(&[], &["delta-iris", "simulus"]).unwrap();
    assert!(report.comparisons.is_empty());
    let report = quick(&[], &["4x4-tokenizer", "storm"]).unwrap();
    assert_eq!(
        report.comparisons.len(),
        1,
        "the ablation is in the paper's table, STORM is not"
    );
    assert_eq!(report.comparisons[0].compared, 13);
    let output = rem_report::terminal(&report, rem_report::Style::Plain);
    assert!(
        output.contains("all 13 numbers that the REM paper prints"),
        "{output}"
    );
}
