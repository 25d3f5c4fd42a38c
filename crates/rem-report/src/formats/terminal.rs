//! A report for the terminal: aligned columns.

use crate::report::Report;
use crate::table::{Cell, Row, Table};
use crate::tables;

/// How marks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As bold face and underline.
    Ansi,
    /// As `*` and `_` behind the number.
    Plain,
}

/// The tables that fit a terminal, and the remarks. What is left out is in the files.
pub fn report(report: &Report, style: Style) -> String {
    const LEFT_OUT: [&str; 3] = ["runs", "protocols", "systems"];
    let mut text = String::new();
    for shown in tables::all(report)
        .iter()
        .filter(|table| !LEFT_OUT.contains(&table.name))
    {
        text.push_str(&table(shown, style));
        text.push_str(&wrap(&shown.caption, ROOM, ""));
        text.push('\n');
        if style == Style::Plain && shown.has_marks() {
            text.push_str(if report.has_two_families() {
                "Bold is shown as *, underlined as _.\n"
            } else {
                "Bold is shown as *.\n"
            });
        }
        text.push('\n');
    }
    for remark in &report.remarks {
        let line = format!("{}: {}", remark.weight.word(), remark.text);
        text.push_str(&wrap(&line, ROOM, "  "));
        text.push('\n');
    }
    text
}

/// Letters in a line of prose.
const ROOM: usize = 110;

pub fn table(table: &Table, style: Style) -> String {
    let marks = match style {
        Style::Plain if table.has_marks() => 2,
        _ => 0,
    };
    // A title may be as wide as what is below it, or as a short word.
    let titles: Vec<Vec<String>> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| width(&row.cells[column].text));
            let room = cells.max().unwrap_or(0).max(12);
            let lines = wrap(&table.columns[column], room, "");
            lines.lines().map(str::to_owned).collect()
        })
        .collect();
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| row.cells[column].text.as_str());
            let all = cells.chain(titles[column].iter().map(String::as_str));
            all.map(width).max().unwrap_or(0) + if column > 0 { marks } else { 0 }
        })
        .collect();
    let mut text = format!("{}\n", table.title);
    if let Some(line) = groups(table, &widths) {
        text.push_str(&line);
    }
    let tallest = titles.iter().map(Vec::len).max().unwrap_or(1);
    for index in 0..tallest {
        let part = |lines: &Vec<String>| {
            let from_top = (index + lines.len()).checked_sub(tallest);
            from_top.map_or(Cell::default(), |line| lines[line].clone().into())
        };
        let row = Row::new(titles.iter().map(part));
        line(&mut text, table, &widths, &row, style, marks);
    }
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
    text.push_str(&format!("{rule}\n"));
    for row in &table.rows {
        if row.ruled {
            text.push_str(&format!("{rule}\n"));
        }
        line(&mut text, table, &widths, row, style, marks);
    }
    text
}

/// Headings in the middle of their columns.
fn groups(table: &Table, widths: &[usize]) -> Option<String> {
    if table.groups.is_empty() {
        return None;
    }
    let mut text = String::new();
    let mut column = 0;
    for (title, columns) in &table.groups {
        let room = widths[column..column + columns].iter().sum::<usize>() + 2 * (columns - 1);
        text.push_str(&format!("{title:^room$}  "));
        column += columns;
    }
    Some(format!("{}\n", text.trim_end()))
}

fn line(text: &mut String, table: &Table, widths: &[usize], row: &Row, style: Style, marks: usize) {
    let mut line = String::new();
    for (column, (cell, room)) in row.cells.iter().zip(widths).enumerate() {
        let behind = match (marks, column) {
            (0, _) | (_, 0) => String::new(),
            _ => format!("{:<marks$}", marks_behind(cell)),
        };
        let padding = " ".repeat(room - width(&cell.text) - behind.chars().count());
        let shown = match style {
            Style::Ansi => ansi(cell),
            Style::Plain => cell.text.clone(),
        };
        if column > 0 && table.is_numeric(column) {
            line.push_str(&format!("{padding}{shown}{behind}  "));
        } else {
            line.push_str(&format!("{shown}{behind}{padding}  "));
        }
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn marks_behind(cell: &Cell) -> &'static str {
    match (cell.marks.bold, cell.marks.underline) {
        (false, false) => "",
        (true, false) => "*",
        (false, true) => "_",
        (true, true) => "*_",
    }
}

fn ansi(cell: &Cell) -> String {
    let start = match (cell.marks.bold, cell.marks.underline) {
        (false, false) => return cell.text.clone(),
        (true, false) => "\x1b[1m",
        (false, true) => "\x1b[4m",
        (true, true) => "\x1b[1;4m",
    };
    format!("{start}{}\x1b[0m", cell.text)
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// `text` in lines of at most `room` letters, those after the first indented.
pub fn wrap(text: &str, room: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        if !last.trim().is_empty() && width(last) + 1 + width(word) > room {
            lines.push(format!("{indent}{word}"));
        } else {
            if !last.trim().is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Marks;

    fn example() -> Table {
        let best = Marks {
            bold: true,
            underline: true,
        };
        Table {
            name: "example",
            title: "Example".into(),
            caption: String::new(),
            groups: vec![(String::new(), 1), ("Both".into(), 2)],
            columns: vec!["Game".into(), "Δ-A".into(), "B".into()],
            rows: vec![
                Row::new([
                    "Pong".into(),
                    Cell::number(-1.25, 1),
                    Cell::number(20.0, 1).marked(best),
                ]),
                Row {
                    ruled: true,
                    ..Row::new(["Mean".into(), Cell::none(), Cell::number(3.0, 1)])
                },
            ],
        }
    }

    #[test]
    fn columns_are_aligned() {
        let expected = "\
Example
           Both
Game   Δ-A       B
────────────────────
Pong  -1.2    20.0*_
────────────────────
Mean     –     3.0
";
        assert_eq!(table(&example(), Style::Plain), expected);
    }

    #[test]
    fn long_titles_are_broken() {
        let mut long = example();
        long.columns[2] = "Controller without action inputs".into();
        let expected = "\
Example
              Both
              Controller
                 without
                  action
Game   Δ-A        inputs
──────────────────────────
Pong  -1.2          20.0*_
";
        let found = table(&long, Style::Plain);
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn a_terminal_gets_bold_and_underline() {
        let found = table(&example(), Style::Ansi);
        assert!(found.contains("\x1b[1;4m20.0\x1b[0m"), "{found}");
        assert!(!found.contains('*'));
    }

    #[test]
    fn long_lines_are_broken() {
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three");
        assert_eq!(wrap("short", 80, "  "), "short");
    }
}
