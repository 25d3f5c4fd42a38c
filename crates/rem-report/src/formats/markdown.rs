//! Tables as GitHub-flavored Markdown.

use crate::table::{Cell, Table};

/// The table with title and caption. Underlines are `<ins>`, because Markdown has none.
pub fn table(table: &Table) -> String {
    let mut text = format!(
        "### {}\n\n{}\n\n",
        escape(&table.title),
        escape(&table.caption)
    );
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(table
        .columns
        .iter()
        .map(|title| escape(title))
        .collect()));
    let rules = (0..table.columns.len()).map(|column| {
        let right = column > 0 && table.is_numeric(column);
        if right { "---:" } else { "---" }.to_owned()
    });
    text.push_str(&row(rules.collect()));
    for line in &table.rows {
        text.push_str(&row(line.cells.iter().map(cell).collect()));
    }
    for footnote in &table.footnotes {
        text.push_str(&format!(
            "\n{} {}\n",
            footnote.mark(),
            escape(&footnote.text)
        ));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let mut text = escape(&cell.text);
    if cell.marks.bold {
        text = format!("**{text}**");
    }
    if cell.marks.underline {
        text = format!("<ins>{text}</ins>");
    }
    text + &cell.footnote_marks()
}

/// Escapes special characters.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '#' => escaped.extend(['\\', letter]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Footnote, Marks, Row};

    #[test]
    fn marks_and_escapes_are_written() {
        let both = Marks {
            bold: true,
            underline: true,
        };
        let found = table(&Table {
            name: "t",
            title: "A | B".into(),
            caption: "Words.".into(),
            footnotes: vec![Footnote {
                number: 1,
                text: "a_b: frame skip 1".into(),
            }],
            groups: Vec::new(),
            columns: vec!["Game".into(), "X".into()],
            rows: vec![
                Row::new(["up_n_down".into(), Cell::number(1.0, 1).marked(both)]),
                Row::new(["<b>".into(), Cell::none().noted(vec![1])]),
            ],
        });
        let expected = "### A \\| B\n\nWords.\n\n| Game | X |\n| --- | ---: |\n\
            | up\\_n\\_down | <ins>**1.0**</ins> |\n| &lt;b> | –‡ |\n\n‡ a\\_b: frame skip 1\n";
        assert_eq!(found, expected);
    }
}
