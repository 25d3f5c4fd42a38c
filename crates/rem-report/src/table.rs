//! A table as a value, which every format is written from.

/// Named columns, maybe in groups, and rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Of its files.
    pub name: &'static str,
    pub title: String,
    pub caption: String,
    /// Headings over neighbouring columns, as many columns each; none, or for all columns.
    pub groups: Vec<(String, usize)>,
    /// The first names the rows.
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// A line above it.
    pub ruled: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub text: String,
    /// All digits, where the text has less.
    pub exact: Option<f64>,
    pub marks: Marks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub bold: bool,
    pub underline: bool,
}

impl Row {
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self {
            cells: cells.into_iter().collect(),
            ruled: false,
        }
    }
}

impl Cell {
    pub fn number(value: f64, decimals: usize) -> Self {
        Self {
            text: fixed(value, decimals),
            exact: Some(value),
            marks: Marks::default(),
        }
    }

    /// Nothing to show.
    pub fn none() -> Self {
        "–".into()
    }

    pub fn marked(self, marks: Marks) -> Self {
        Self { marks, ..self }
    }

    /// Numbers stand at the right of their column.
    pub fn is_number(&self) -> bool {
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
    /// Whether all that is in the column is numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.cells[column].is_number())
    }

    pub fn has_marks(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| cell.marks != Marks::default())
    }
}

/// `value` with so many decimals, and no minus before a zero.
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
    fn a_small_negative_number_is_zero() {
        assert_eq!(fixed(-0.0001, 3), "0.000");
        assert_eq!(fixed(-0.0006, 3), "-0.001");
        assert_eq!(fixed(12.0, 0), "12");
    }
}
