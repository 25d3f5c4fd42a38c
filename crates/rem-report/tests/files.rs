//! The written files: complete, reproducible, and without leftovers of older reports.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rem_report::write;
use support::{quick, runs, write_losses};

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inside = self::files(&path).into_iter();
            files.extend(inside.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn text(files: &BTreeMap<String, Vec<u8>>, name: &str) -> String {
    String::from_utf8(files[name].clone()).unwrap()
}

#[test]
fn every_format_is_written_with_reproducible_bytes() {
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    let out = place.path().join("deep/report");
    let report = quick(&[&dir], &["rem", "storm"]).unwrap();
    let written = write(&report, &out).unwrap();
    assert_eq!((written.tables, written.figures), (7, 4));
    assert_eq!(written.page, out.join("report.html"));
    let first = files(&out);
    for table in [
        "main",
        "aggregates",
        "improvement",
        "other-games",
        "runs",
        "protocols",
        "systems",
    ] {
        for ending in ["md", "tex", "csv"] {
            assert!(
                first.contains_key(&format!("tables/{table}.{ending}")),
                "{table}.{ending}"
            );
        }
    }
    for data in ["scores", "profiles", "curves"] {
        assert!(first.contains_key(&format!("tables/{data}.csv")), "{data}");
    }
    for figure in ["aggregates", "profiles", "improvement", "curves"] {
        for theme in ["light", "dark"] {
            assert!(text(&first, &format!("figures/{figure}-{theme}.svg")).starts_with("<svg "));
            assert!(first[&format!("figures/{figure}-{theme}.png")].starts_with(b"\x89PNG"));
        }
    }
    assert_eq!(first.len(), 7 * 3 + 3 + 4 * 4 + 1);
    write(&report, &out).unwrap();
    assert!(files(&out) == first, "the second report has other bytes");
}

#[test]
fn observation_losses_are_drawn_and_written_for_each_game() {
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    for (seed, offset) in [(1, 0.0), (2, 0.5)] {
        write_losses(
            &dir.join(format!("pong-seed{seed}")),
            1.0 + offset,
            1.25 + offset,
        );
    }
    write_losses(&dir.join("boxing-seed1"), 0.5, 0.75);
    let report = quick(&[&dir], &["rem"]).unwrap();
    let titles: Vec<_> = report.losses.iter().map(|panel| &panel.title[..]).collect();
    assert_eq!(titles, ["Boxing", "Pong"]);
    let out = place.path().join("report");
    assert_eq!(write(&report, &out).unwrap().figures, 5);
    let files = files(&out);
    let figure = text(&files, "figures/losses-light.svg");
    for part in [
        "Pong",
        "Boxing",
        "ours, training",
        "ours, test",
        "<polygon",
        "Epoch",
    ] {
        assert!(figure.contains(part), "{part}");
    }
    assert!(files["figures/losses-dark.png"].starts_with(b"\x89PNG"));
    let csv = text(&files, "tables/losses.csv");
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!(rows[0], "game,system,split,runs,epoch,loss,sd");
    // 575 epochs of training and 12 evaluations of two games.
    assert_eq!(rows.len(), 1 + 2 * (575 + 12));
    // Two seeds that differ by 0.5.
    let sd = 0.5f64.sqrt() * 0.5;
    let last: Vec<_> = rows.last().unwrap().split(',').collect();
    assert_eq!(last[..5], ["Pong", "ours", "test", "2", "600"]);
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!(
        (number(last[5]) - (1.5 + 4.0 / 575.0)).abs() < 1e-12,
        "{last:?}"
    );
    assert!((number(last[6]) - sd).abs() < 1e-12, "{last:?}");
    assert!(rows.contains(&"Boxing,ours,training,1,26,4.5,"));
    assert!(text(&files, "report.html").contains("Observation loss of the world model"));
}

#[test]
fn stale_report_files_are_removed_and_other_files_kept() {
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    let out = place.path().join("report");
    write(&quick(&[&dir], &["rem"]).unwrap(), &out).unwrap();
    fs::write(out.join("tables/notes.txt"), "mine").unwrap();
    write(&quick(&[], &["rem", "iris"]).unwrap(), &out).unwrap();
    let after = files(&out);
    assert!(
        !after.contains_key("figures/curves-light.svg") && !after.contains_key("tables/runs.md")
    );
    assert_eq!(text(&after, "tables/notes.txt"), "mine");
}

#[test]
fn an_output_path_that_is_a_file_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("taken");
    fs::write(&file, "x").unwrap();
    let error = write(&quick(&[], &["rem"]).unwrap(), &file).unwrap_err();
    assert!(error.to_string().starts_with("cannot create `"), "{error}");
    assert_eq!(error.hint(), "choose another directory with `--out`");
}

#[test]
fn csv_has_all_digits_and_latex_and_markdown_have_marks() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("report");
    write(&quick(&[], &["paper"]).unwrap(), &out).unwrap();
    let files = files(&out);
    let rows = |name: &str| {
        text(&files, name)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(
        rows("tables/main.csv")
            .iter()
            .any(|row| row.starts_with("IQM (↑),0,1,0.12"))
    );
    let scores = rows("tables/scores.csv");
    // 26 games: 5 runs each of five systems, one mean of the sixth.
    assert_eq!(scores.len(), 1 + 26 * (5 * 5 + 1));
    assert!(
        scores
            .iter()
            .any(|row| row.starts_with("STORM,Pong,mean,11.3,"))
    );
    let latex = text(&files, "tables/main.tex");
    assert!(latex.contains("Assault & 222.4 & 742.0 & 527.2 & 705.6 & 682.6 & 801.0 & 1524.4 & \\underline{\\textbf{1764.2}} \\\\"));
    assert!(latex.contains("\\multicolumn{4}{c}{Not token-based} & \\multicolumn{2}{c}{Token-based} \\\\\n\\cmidrule(lr){4-7} \\cmidrule(lr){8-9}"));
    let markdown = text(&files, "tables/main.md");
    assert!(markdown.contains(
        "| Alien | 227.8 | 7127.7 | 616.9 | 959.4 | 674.6 | <ins>983.6</ins> | 420.0 | **607.2** |"
    ));
}

#[test]
fn system_names_are_escaped_in_html() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("<script>alert(1)<!--&.json");
    fs::write(&file, r#"{"Pong": [1, 2]}"#).unwrap();
    let page = rem_report::html(&quick(&[&file], &["rem"]).unwrap());
    assert!(!page.contains("<script") && !page.contains("<!--"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;!--&amp;"));
}
