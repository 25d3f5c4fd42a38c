//! Tables for programs: every digit, no marks.

use crate::table::Table;

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

/// Quoted where needed, one line a record.
pub fn records(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer
            .write_record(&record)
            .expect("records in memory are of one length");
    }
    let bytes = writer.into_inner().expect("memory takes all bytes");
    String::from_utf8(bytes).expect("what went in was text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Row};

    #[test]
    fn every_digit_and_quotes() {
        let found = table(&Table {
            name: "t",
            title: String::new(),
            caption: String::new(),
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
