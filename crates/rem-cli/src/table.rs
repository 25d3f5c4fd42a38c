//! Tables for the terminal and for Markdown pages.

use comfy_table::{CellAlignment, presets};

/// A table of text. The first `words` columns are aligned to the left, numbers to the right.
pub struct Table {
    header: Vec<String>,
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: &[&str], words: usize) -> Self {
        Self {
            header: header.iter().map(|title| title.to_string()).collect(),
            words,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If it does not have a cell for each column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    /// Aligned columns.
    pub fn terminal(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(&self.header);
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if i >= self.words {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.add_rows(&self.rows);
        let lines = table.lines();
        lines.map(|line| format!("{}\n", line.trim_end())).collect()
    }

    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = |i: usize| if i < self.words { "---" } else { "---:" }.to_string();
        let rules: Vec<String> = (0..self.header.len()).map(rule).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{}{rows}", line(&self.header), line(&rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let mut table = Table::new(&["phase", "ms"], 1);
        table.push(vec!["world model".into(), "12.5".into()]);
        table.push(vec!["tokenizer".into(), "3.5".into()]);
        assert_eq!(
            table.terminal(),
            "phase          ms\nworld model  12.5\ntokenizer     3.5\n"
        );
        assert_eq!(
            table.markdown(),
            "| phase | ms |\n| --- | ---: |\n| world model | 12.5 |\n| tokenizer | 3.5 |\n"
        );
    }
}
