//! Tables as LaTeX with `booktabs` rules.

use crate::table::{Cell, Row, Table};

/// The table as a `table*` environment. The document needs `\usepackage{booktabs}`.
pub fn table(table: &Table) -> String {
    let alignment: String = (0..table.columns.len())
        .map(|column| {
            if column > 0 && table.is_numeric(column) {
                'r'
            } else {
                'l'
            }
        })
        .collect();
    let mut text = format!(
        "% Needs \\usepackage{{booktabs}}.\n\\begin{{table*}}[t]\n\\caption{{{} {}}}\n\\label{{table:{}}}\n\
         \\begin{{center}}\n\\begin{{small}}\n\\begin{{tabular}}{{{alignment}}}\n\\toprule\n",
        escape(&format!("{}.", table.title)),
        escape(&table.caption),
        table.name
    );
    if !table.groups.is_empty() {
        text.push_str(&groups(table));
    }
    let titles = table.columns.iter().map(|title| title.as_str().into());
    text.push_str(&line(&Row::new(titles)));
    text.push_str("\\midrule\n");
    for row in &table.rows {
        if row.ruled {
            text.push_str("\\midrule\n");
        }
        text.push_str(&line(row));
    }
    text.push_str("\\bottomrule\n\\end{tabular}\n");
    for footnote in &table.footnotes {
        let (mark, words) = (escape(&footnote.mark()), escape(&footnote.text));
        text.push_str(&format!("\\par\\smallskip {mark}~{words}.\n"));
    }
    text.push_str("\\end{small}\n\\end{center}\n\\end{table*}\n");
    text
}

fn groups(table: &Table) -> String {
    let (mut titles, mut rules, mut column) = (Vec::new(), Vec::new(), 1);
    for (title, columns) in &table.groups {
        titles.push(format!(
            "\\multicolumn{{{columns}}}{{c}}{{{}}}",
            escape(title)
        ));
        let last = column + columns - 1;
        if !title.is_empty() {
            rules.push(format!("\\cmidrule(lr){{{column}-{last}}}"));
        }
        column = last + 1;
    }
    format!("{} \\\\\n{}\n", titles.join(" & "), rules.join(" "))
}

fn line(row: &Row) -> String {
    let cells: Vec<_> = row.cells.iter().map(cell).collect();
    format!("{} \\\\\n", cells.join(" & "))
}

fn cell(cell: &Cell) -> String {
    let mut text = escape(&cell.text);
    if cell.marks.bold {
        text = format!("\\textbf{{{text}}}");
    }
    if cell.marks.underline {
        text = format!("\\underline{{{text}}}");
    }
    text + &escape(&cell.footnote_marks())
}

/// Escapes special characters, and replaces those that LaTeX lacks.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '–' => escaped.push_str("--"),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            'Δ' => escaped.push_str("$\\Delta$"),
            '†' => escaped.push_str("\\dag{}"),
            '‡' => escaped.push_str("\\ddag{}"),
            '§' => escaped.push_str("\\S{}"),
            '¶' => escaped.push_str("\\P{}"),
            '↑' => escaped.push_str("$\\uparrow$"),
            '↓' => escaped.push_str("$\\downarrow$"),
            '·' => escaped.push_str("$\\cdot$"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Footnote, Marks};

    #[test]
    fn groups_marks_and_special_characters_are_written() {
        let bold = Marks {
            bold: true,
            underline: false,
        };
        let found = table(&Table {
            name: "t",
            title: "T".into(),
            caption: "100% of {x}_1".into(),
            footnotes: vec![Footnote {
                number: 0,
                text: "ours: a_b 1".into(),
            }],
            groups: vec![(String::new(), 1), ("Token-based".into(), 2)],
            columns: vec!["Game".into(), "Δ-IRIS".into(), "a&b".into()],
            rows: vec![Row {
                ruled: true,
                ..Row::new([
                    "IQM (↑)".into(),
                    Cell::number(0.5, 3).marked(bold),
                    Cell::none().noted(vec![0]),
                ])
            }],
        });
        for part in [
            "\\caption{T. 100\\% of \\{x\\}\\_1}",
            "\\begin{tabular}{lrr}",
            "\\multicolumn{1}{c}{} & \\multicolumn{2}{c}{Token-based} \\\\\n\\cmidrule(lr){2-3}\n",
            "Game & $\\Delta$-IRIS & a\\&b \\\\\n",
            "IQM ($\\uparrow$) & \\textbf{0.500} & --\\dag{} \\\\\n",
            "\\end{tabular}\n\\par\\smallskip \\dag{}~ours: a\\_b 1.\n",
        ] {
            assert!(found.contains(part), "{part}\n{found}");
        }
    }
}
