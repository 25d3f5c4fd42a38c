//! Tables, independent of the output format.

/// A table: columns, optionally in groups, and rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name of its files, without extension.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The text below it.
    pub caption: String,
    /// The footnotes to which its cells refer.
    pub footnotes: Vec<Footnote>,
    /// Headings with the number of adjacent columns that they span. Empty, or covers all columns.
    pub groups: Vec<(String, usize)>,
    /// Column titles. The first column names the rows.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// Whether there is a line above it.
    pub ruled: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The displayed text.
    pub text: String,
    /// The exact value, if the text is rounded.
    pub exact: Option<f64>,
    /// Its marks.
    pub marks: Marks,
    /// The numbers of its footnotes, in ascending order.
    pub footnotes: Vec<usize>,
}

/// Marks of the best values in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The best of the token-based systems.
    pub bold: bool,
    /// The best of all systems.
    pub underline: bool,
}

/// A footnote of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Footnote {
    /// Its number in the report, from 0.
    pub number: usize,
    /// One sentence without a full stop.
    pub text: String,
}

impl Footnote {
    /// Its mark.
    pub(crate) fn mark(&self) -> String {
        footnote_mark(self.number)
    }
}

/// The mark of a footnote: `†`, `‡`, `§`, `¶`, `††`, …
pub(crate) fn footnote_mark(number: usize) -> String {
    const MARKS: [&str; 4] = ["†", "‡", "§", "¶"];
    MARKS[number % MARKS.len()].repeat(1 + number / MARKS.len())
}

impl Row {
    /// A row without a line above it.
    pub(crate) fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self {
            cells: cells.into_iter().collect(),
            ruled: false,
        }
    }
}

impl Cell {
    /// A number with this many decimals.
    pub(crate) fn number(value: f64, decimals: usize) -> Self {
        Self {
            text: fixed(value, decimals),
            exact: Some(value),
            ..Self::default()
        }
    }

    /// A dash for a missing value.
    pub(crate) fn none() -> Self {
        "–".into()
    }

    /// The same cell with these marks.
    pub(crate) fn marked(self, marks: Marks) -> Self {
        Self { marks, ..self }
    }

    /// The same cell with references to these footnotes.
    pub(crate) fn noted(self, footnotes: Vec<usize>) -> Self {
        Self { footnotes, ..self }
    }

    /// The marks of its footnotes.
    pub(crate) fn footnote_marks(&self) -> String {
        self.footnotes.iter().map(|n| footnote_mark(*n)).collect()
    }

    /// Whether it is a number or a dash, which are aligned to the right.
    pub(crate) fn is_number(&self) -> bool {
        self.exact.is_some() || self.text == "–"
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Table {
    /// Whether all cells of a column are numbers.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.cells[column].is_number())
    }

    /// Whether any cell is marked.
    pub(crate) fn has_marks(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| cell.marks != Marks::default())
    }
}

/// `value` with this many decimals. Zero has no minus sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_footnotes_are_distinct() {
        let marks: Vec<_> = (0..9).map(footnote_mark).collect();
        assert_eq!(marks, ["†", "‡", "§", "¶", "††", "‡‡", "§§", "¶¶", "†††"]);
    }

    #[test]
    fn rounded_zero_has_no_minus_sign() {
        assert_eq!(fixed(-0.0001, 3), "0.000");
        assert_eq!(fixed(-0.0006, 3), "-0.001");
        assert_eq!(fixed(12.0, 0), "12");
    }
}
