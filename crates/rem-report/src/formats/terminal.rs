//! The report as text for the terminal.

use comfy_table::{Attribute, CellAlignment};

use crate::report::Report;
use crate::table::{Cell, Marks, Table};
use crate::tables;

/// How the best values are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With ANSI codes: bold and underlined.
    Ansi,
    /// With `*` and `_` after the number.
    Plain,
}

/// The notes and the tables that fit a terminal.
pub fn report(report: &Report, style: Style) -> String {
    const LEFT_OUT: [&str; 4] = ["runs", "departures", "protocols", "systems"];
    let mut text = String::new();
    for shown in tables::all(report)
        .iter()
        .filter(|table| !LEFT_OUT.contains(&table.name))
    {
        text.push_str(&table(shown, style));
        text.push_str(&wrap(&shown.caption, LINE_LENGTH, ""));
        text.push('\n');
        if style == Style::Plain && shown.has_marks() {
            text.push_str(if report.has_two_families() {
                "* stands for bold, _ for underline.\n"
            } else {
                "* stands for bold.\n"
            });
        }
        for footnote in &shown.footnotes {
            let line = format!("{} {}", footnote.mark(), footnote.text);
            text.push_str(&wrap(&line, LINE_LENGTH, "  "));
            text.push('\n');
        }
        text.push('\n');
    }
    for note in &report.notes {
        let line = format!("{}: {}", note.severity.name(), note.text);
        text.push_str(&wrap(&line, LINE_LENGTH, "  "));
        text.push('\n');
    }
    text
}

/// Maximum line length of prose.
const LINE_LENGTH: usize = 110;

/// A table below its title.
fn table(table: &Table, style: Style) -> String {
    let laid_out = lay_out(table, style);
    let widths: Vec<usize> = (laid_out.column_max_content_widths().iter())
        .map(|width| usize::from(*width))
        .collect();
    let rule = "─".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1));
    let mut text = format!("{}\n", table.title);
    text.extend(groups(table, &widths));
    let lines: Vec<String> = laid_out.lines().collect();
    let (titles, rows) = lines.split_at(lines.len() - table.rows.len());
    let mut push = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    titles.iter().for_each(|line| push(line));
    push(&rule);
    for (row, line) in table.rows.iter().zip(rows) {
        if row.ruled {
            push(&rule);
        }
        push(line);
    }
    text
}

/// Spaces between columns.
const GAP: usize = 2;

/// Titles and rows in aligned columns. Every row is one line.
fn lay_out(table: &Table, style: Style) -> comfy_table::Table {
    let mut out = comfy_table::Table::new();
    out.load_style(comfy_table::presets::NOTHING);
    match style {
        Style::Ansi => {
            out.enforce_styling();
            out.style_text_only();
        }
        Style::Plain => {
            out.force_no_tty();
        }
    }
    let marks_as_text = style == Style::Plain && table.has_marks();
    out.set_header(titles(table, marks_as_text));
    for row in &table.rows {
        let cells = row.cells.iter().enumerate();
        out.add_row(cells.map(|(column, cell)| {
            let footnotes = footnotes_width(table, column);
            styled(cell, marks_as_text && column > 0, footnotes)
        }));
    }
    for (index, column) in out.column_iter_mut().enumerate() {
        column.set_padding((0, GAP as u16));
        if index > 0 && table.is_numeric(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    out
}

/// Column titles, wrapped to the width of the column or of a short word, and aligned at the bottom.
fn titles(table: &Table, marks_as_text: bool) -> Vec<String> {
    let wrapped = table.columns.iter().enumerate().map(|(column, title)| {
        let cells = table.rows.iter().map(|row| width(&row.cells[column].text));
        let title = wrap(title, cells.max().unwrap_or(0).max(12), "");
        // As wide as the marks below.
        let marks = if marks_as_text && column > 0 { 2 } else { 0 };
        let room = " ".repeat(marks + footnotes_width(table, column));
        let lines = title.lines().map(|line| format!("{line}{room}"));
        lines.collect()
    });
    let wrapped: Vec<Vec<String>> = wrapped.collect();
    let tallest = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    let lines = |title: &Vec<String>| "\n".repeat(tallest - title.len()) + &title.join("\n");
    wrapped.iter().map(lines).collect()
}

/// The width of the longest marks of footnotes in a column.
fn footnotes_width(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().map(|row| &row.cells[column]);
    let widths = cells.map(|cell| width(&cell.footnote_marks()));
    widths.max().unwrap_or(0)
}

/// A cell with its marks, as attributes or, with `marks_as_text`, as two characters. The marks of its footnotes take
/// `footnotes_width` characters.
fn styled(cell: &Cell, marks_as_text: bool, footnotes_width: usize) -> comfy_table::Cell {
    let footnotes = format!("{:<footnotes_width$}", cell.footnote_marks());
    let Marks { bold, underline } = cell.marks;
    if marks_as_text {
        let marks = match (bold, underline) {
            (false, false) => "",
            (true, false) => "*",
            (false, true) => "_",
            (true, true) => "*_",
        };
        return comfy_table::Cell::new(format!("{}{marks:<2}{footnotes}", cell.text));
    }
    let mut styled = comfy_table::Cell::new(format!("{}{footnotes}", cell.text));
    if bold {
        styled = styled.add_attribute(Attribute::Bold);
    }
    if underline {
        styled = styled.add_attribute(Attribute::Underlined);
    }
    styled
}

/// Headings centered over their columns.
fn groups(table: &Table, widths: &[usize]) -> Option<String> {
    if table.groups.is_empty() {
        return None;
    }
    let mut text = String::new();
    let mut column = 0;
    for (title, columns) in &table.groups {
        let room = widths[column..column + columns].iter().sum::<usize>() + GAP * (columns - 1);
        text.push_str(&format!("{title:^room$}  "));
        column += columns;
    }
    Some(format!("{}\n", text.trim_end()))
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Wraps `text` into lines of at most `max_length` characters. Lines after the first are indented.
fn wrap(text: &str, max_length: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        if !last.trim().is_empty() && width(last) + 1 + width(word) > max_length {
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
    use crate::table::Row;

    fn example() -> Table {
        let best = Marks {
            bold: true,
            underline: true,
        };
        Table {
            name: "example",
            title: "Example".into(),
            caption: String::new(),
            footnotes: Vec::new(),
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
    fn numbers_are_aligned_to_the_right() {
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
    fn marks_of_footnotes_keep_numbers_aligned() {
        let mut noted = example();
        noted.rows[0].cells[1].footnotes = vec![0, 1];
        noted.rows[1].cells[2].footnotes = vec![1];
        let expected = "\
Example
            Both
Game   Δ-A         B
───────────────────────
Pong  -1.2  †‡  20.0*_
───────────────────────
Mean     –       3.0  ‡
";
        assert_eq!(table(&noted, Style::Plain), expected);
        let ansi = table(&noted, Style::Ansi);
        assert!(ansi.contains("-1.2†‡"), "{ansi}");
    }

    #[test]
    fn long_titles_are_wrapped() {
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
    fn ansi_style_marks_with_bold_and_underline() {
        let found = table(&example(), Style::Ansi);
        assert!(found.contains("\x1b[1m\x1b[4m20.0\x1b[0m"), "{found}");
        assert!(!found.contains('*'));
    }

    #[test]
    fn long_lines_are_wrapped() {
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three");
        assert_eq!(wrap("short", 80, "  "), "short");
    }
}
