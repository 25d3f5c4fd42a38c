//! `rem bench imagination --compare` counts the calls and tokens of the paper's Table 6 and writes a page.

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
            .arg("--page")
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
    let (error, hint) = fails(rem().args(words).args(["--tokens", "17"]));
    assert!(
        error.contains("17 tokens") && hint.contains("16, 64 and 256"),
        "{error}"
    );
}
