//! `rem bench imagination` counts the calls and tokens of the paper's Table 6, and compares POP with token-by-token
//! generation at many batch sizes.

mod support;

use support::*;

/// The cells of the first table.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip(2).take_while(|l| l.starts_with('|'));
    lines
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_string()).collect()
        })
        .collect()
}

#[test]
fn calls_and_tokens_match_the_paper() {
    let temp = temp_dir();
    let page = temp.path().join("page.md");
    std::fs::write(
        &page,
        "# Kept\n\nAbove.\n\n<!-- measured -->\nold numbers\n",
    )
    .unwrap();
    let output = succeeds(
        rem()
            .args(["bench", "imagination", "--compare", "--scale", "tiny"])
            .args([
                "--tokens",
                "16,64",
                "--horizons",
                "2,4",
                "--batch",
                "2",
                "--repeats",
                "1",
            ])
            .arg("--out")
            .arg(&page),
    );
    let text = stdout(&output);
    let rows = rows(&text);
    assert_eq!(rows.len(), 2 * 5 + 2 * 4, "{text}");
    for row in &rows {
        let number = |i: usize| -> u64 { row[i].parse().unwrap() };
        let (k, h, calls, tokens) = (number(0), number(1), number(3), number(5));
        let expected = match row[2].as_str() {
            "POP (default)" => (2 * h, (2 * k + 1) * h, format!("2H = {}", 2 * h)),
            "POP (alternative)" => (h, (2 * k + 1) * h, format!("H = {h}")),
            "No POP" | "IRIS" | "IRIS (its own sizes)" => {
                (k * h, (k + 1) * h, format!("KH = {}", k * h))
            }
            other => panic!("unknown imagination mode: {other}"),
        };
        assert_eq!((calls, tokens, row[4].clone()), expected, "{row:?}");
        assert!(row[7].parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
    let own: Vec<_> = rows.iter().filter(|r| r[2].contains("own")).collect();
    assert!(own.len() == 2 && own.iter().all(|r| r[0] == "16"));

    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written.starts_with("# Kept\n\nAbove.\n\n<!-- measured -->\n"));
    assert!(written.contains(text.lines().nth(2).unwrap()) && !written.contains("old numbers"));
    let figure = std::fs::read_to_string(temp.path().join("page.svg")).unwrap();
    assert_eq!(
        figure.matches(", H = ").count(),
        10,
        "a line for each mode and horizon"
    );
}

#[test]
fn default_is_pop_only_and_other_token_counts_are_rejected() {
    let words = [
        "bench",
        "imagination",
        "--scale",
        "tiny",
        "--horizons",
        "1",
        "--batch",
        "1",
    ];
    let output = succeeds(rem().args(words).args(["--tokens", "16"]));
    let rows = rows(&stdout(&output));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][2], "POP (default)");
    let output = output_of(rem().args(words).args(["--tokens", "17"]));
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("must be 16, 64 or 256"), "{error}");
}

#[test]
fn a_sweep_compares_pop_with_token_by_token_generation_at_each_batch_size() {
    let temp = temp_dir();
    let page = temp.path().join("pop.md");
    let words = ["bench", "imagination", "--sweep", "--scale", "tiny"];
    let sizes = ["--tokens", "64,16", "--batch", "1,4", "--horizons", "2"];
    let output = succeeds(
        rem()
            .args(words)
            .args(sizes)
            .args(["--repeats", "1", "--out"])
            .arg(&page),
    );
    assert!(stdout(&output).contains("speedup of POP"));
    let text = std::fs::read_to_string(&page).unwrap();
    let table: Vec<Vec<String>> = (text.lines().filter(|l| l.starts_with("| ")).skip(2))
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_string()).collect()
        })
        .collect();
    let sizes: Vec<_> = table.iter().map(|row| (&row[0][..], &row[1][..])).collect();
    assert_eq!(sizes, [("16", "1"), ("16", "4"), ("64", "1"), ("64", "4")]);
    for row in &table {
        let number = |i: usize| -> f64 { row[i].trim_end_matches('%').parse().unwrap() };
        let pop = number(2).min(number(3));
        assert!((number(4) / pop / number(5) - 1.0).abs() < 0.1, "{row:?}");
        // About twice the multiply-adds: prediction tokens beside those of the block.
        let more = number(6) / number(7);
        assert!((1.5..2.6).contains(&more), "{row:?}");
        // GFLOP/s are twice the multiply-adds over the time.
        let rate = 2.0 * number(6) / pop;
        assert!((number(8) - rate).abs() < 0.1 * rate + 1.0, "{row:?}");
    }
    assert!(text.contains("- K = 64: POP has "), "{text}");
    let figure = std::fs::read_to_string(temp.path().join("pop.svg")).unwrap();
    // Three lines and two bounds per panel, in the grid's and the legend's company.
    assert_eq!(figure.matches("K = ").count(), 2);
    assert_eq!(figure.matches("stroke-dasharray").count(), 2 * 2 + 1);
}

#[test]
fn options_of_sweeps_are_not_mixed_with_others() {
    let words = ["bench", "imagination", "--scale", "tiny"];
    let rejected = |args: &[&str]| fails(rem().args(words).args(args)).0;
    assert!(rejected(&["--batch", "1,2"]).contains("--sweep"));
    assert!(rejected(&["--sweep", "--horizons", "1,2"]).contains("one horizon"));
    let both = output_of(rem().args(words).args(["--sweep", "--compare"]));
    assert_eq!(both.status.code(), Some(2));
}
