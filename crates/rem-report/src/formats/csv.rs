//! Tables as CSV, with all digits and without marks.

use crate::table::Table;

/// The table without title and caption.
pub fn table(table: &Table) -> String {
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| match cell.exact {
            Some(number) => number.to_string(),
            None if cell.text == "–" => String::new(),
            None => cell.text.clone(),
        });
        cells.collect::<Vec<_>>()
    });
    records([table.columns.clone()].into_iter().chain(rows))
}

/// Records as lines, quoted where needed.
pub fn records(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer
            .write_record(&record)
            .expect("records have equal lengths");
    }
    let bytes = writer
        .into_inner()
        .expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("the records are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Row};

    #[test]
    fn numbers_have_all_digits_and_text_is_quoted() {
        let found = table(&Table {
            name: "t",
            title: String::new(),
            caption: String::new(),
            footnotes: Vec::new(),
            groups: Vec::new(),
            columns: vec!["Game".into(), "a, \"b\"".into()],
            rows: vec![
                Row::new(["Pong".into(), Cell::number(1.0 / 3.0, 1)]),
                Row::new(["Qbert".into(), Cell::none()]),
            ],
        });
        assert_eq!(
            found,
            "Game,\"a, \"\"b\"\"\"\nPong,0.3333333333333333\nQbert,\n"
        );
    }
}
