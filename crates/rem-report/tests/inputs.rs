//! Reports on runs, score files and published systems: what is compared, what is left out, and the notes about it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use rem_report::{Report, Request, Style, Table, html, tables, terminal};
use serde_json::json;
use support::{Run, change_config, quick, runs};

/// The terminal output without line breaks.
fn output(report: &Report) -> String {
    let text = terminal(report, Style::Plain);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_says(report: &Report, part: &str) {
    let output = output(report);
    assert!(output.contains(part), "no `{part}` in {output}");
}

fn names(report: &Report) -> Vec<&str> {
    report
        .systems
        .iter()
        .map(|system| system.name.as_str())
        .collect()
}

#[test]
fn runs_are_compared_with_published_systems_on_shared_games() {
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    let report = quick(&[&dir], &["rem", "storm"]).unwrap();
    assert_eq!(names(&report), ["STORM", "REM", "ours"]);
    let titles: Vec<_> = report.games.iter().map(|game| game.title()).collect();
    assert_eq!(titles, ["Boxing", "MsPacman", "Pong"]);
    assert_says(
        &report,
        "aggregates are over the 3 games that all systems have, not the benchmark's 26: Boxing, MsPacman, Pong; the others are missing from ours",
    );
    assert_says(
        &report,
        "ours has 2 to 3 runs per game; all games have equal weight",
    );
    assert_says(
        &report,
        "ours: unfinished runs, only in the curves: ms_pacman-seed3",
    );
    assert_says(
        &report,
        "ours: games without a human score, not in aggregates: catch-seed1, catch-seed2",
    );
    assert_says(&report, "STORM is published as one mean per game");
    // Boxing of seed 1 to 3: 0.4, 0.6 and 0.8 of human.
    let ours = report.summaries.last().unwrap();
    assert!((ours.means[0] - 0.6 * 12.1).abs() < 1e-9);
    assert_eq!(report.improvements.len(), 1);
    let names: Vec<_> = tables(&report).iter().map(|table| table.name).collect();
    assert_eq!(
        names,
        [
            "main",
            "aggregates",
            "improvement",
            "other-games",
            "runs",
            "protocols",
            "systems"
        ]
    );
    // The benchmark, three of its games, and catch.
    assert_eq!(report.panels.len(), 5);
}

#[test]
fn published_systems_are_the_default_only_for_benchmark_games() {
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    let request = |inputs: Vec<PathBuf>| Request {
        inputs,
        replicates: 100,
        ..Request::default()
    };
    let all = request(vec![dir.clone()]).report().unwrap();
    assert_eq!(names(&all).len(), 7, "the paper's systems are the default");
    let catch = request(vec![dir.join("catch-seed1")]).report().unwrap();
    assert_eq!(names(&catch), ["ours"]);
    assert!(catch.summaries.is_empty() && catch.panels.len() == 1);
    let names: Vec<_> = tables(&catch).iter().map(|table| table.name).collect();
    assert_eq!(names, ["other-games", "runs", "protocols", "systems"]);
    assert_eq!(request(Vec::new()).report().unwrap().games.len(), 26);
}

#[test]
fn protocols_that_differ_are_warned_about() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("mine");
    let run = |seed| Run {
        game: "pong",
        seed,
        evaluations: &[(100_000, 3.0)],
        finished: true,
    };
    run(1).write(&dir.join("a"), json!({}));
    run(2).write(
        &dir.join("b"),
        json!({"sticky_actions": 0.25, "precision": "mixed"}),
    );
    run(2).write(&dir.join("c"), json!({"environment_steps": 50000}));
    let report = quick(&[&dir], &["rem"]).unwrap();
    assert_says(
        &report,
        "warning: protocols differ in sticky actions: 0.0 (a, c), 0.25 (b)",
    );
    assert_says(
        &report,
        "warning: protocols differ in environment steps: 100000 (a, b), 50000 (c)",
    );
    assert_says(
        &report,
        "note: protocols differ in precision: f32 (a, c), mixed (b)",
    );
    assert_says(
        &report,
        "warning: sticky actions 0.25, not 0 as in the benchmark: b",
    );
    assert_says(
        &report,
        "warning: environment steps 50000, not 100000 as in the benchmark: c",
    );
    assert_says(
        &report,
        "warning: mine: b and c have the same game and seed: they are not independent",
    );
    let protocols = tables(&report)
        .into_iter()
        .find(|table| table.name == "protocols")
        .unwrap();
    assert_eq!(protocols.columns, ["Setting", "A", "B", "C"]);

    // Catch and Pong have different frame skips, but are not compared with each other.
    let both = runs(place.path());
    assert!(
        !output(&quick(&[&both], &["rem"]).unwrap()).contains("protocols differ in frame skip")
    );
}

fn table(report: &Report, name: &str) -> Table {
    let mut all = tables(report).into_iter();
    all.find(|table| table.name == name).unwrap()
}

#[test]
fn departures_are_marked_beside_every_score_of_the_runs() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("mine");
    let run = |game, seed| Run {
        game,
        seed,
        evaluations: &[(100_000, 3.0)],
        finished: true,
    };
    for game in ["pong", "boxing", "ms_pacman"] {
        run(game, 1).write(&dir.join(game), json!({}));
    }
    let clean = quick(&[&dir], &["rem"]).unwrap();
    assert!(
        tables(&clean)
            .iter()
            .all(|table| table.footnotes.is_empty())
    );
    assert!(!output(&clean).contains('†') && !html(&clean).contains('†'));

    run("boxing", 2).write(
        &dir.join("boxing-2"),
        json!({"sticky_actions": 0.25, "perceptual_loss": false}),
    );
    change_config(
        &dir.join("ms_pacman"),
        "vocabulary = 512",
        "vocabulary = 256",
    );
    let report = quick(&[&dir], &["rem"]).unwrap();
    let main = table(&report, "main");
    let marks = |row: &str| {
        let row = main.rows.iter().find(|r| r.cells[0].text.starts_with(row));
        let cells = &row.unwrap().cells;
        assert!(cells[..4].iter().all(|cell| cell.footnotes.is_empty()));
        cells[4].footnotes.clone()
    };
    assert_eq!(main.columns[3..], ["REM", "mine"]);
    assert_eq!(marks("Boxing"), [0]);
    assert_eq!(marks("MsPacman"), [1]);
    assert_eq!(marks("Pong"), [0; 0]);
    assert_eq!(marks("IQM"), [0, 1]);
    let texts = [
        "mine: sticky actions 0.25, not 0; perceptual loss no, not yes",
        "mine: tokenizer.vocabulary 256, not 512",
    ];
    for name in ["main", "aggregates", "improvement", "runs"] {
        let footnotes = table(&report, name).footnotes;
        let found: Vec<_> = footnotes.iter().map(|f| f.text.as_str()).collect();
        assert_eq!(found, texts, "{name}");
    }
    let runs = table(&report, "runs");
    let scores: Vec<_> = runs
        .rows
        .iter()
        .map(|row| &row.cells[4].footnotes[..])
        .collect();
    assert_eq!(scores, [&[][..], &[0], &[1], &[]]);
    // Of one table only the footnotes that it refers to.
    let pong = quick(&[&dir.join("pong"), &dir.join("ms_pacman")], &["rem"]).unwrap();
    assert_eq!(table(&pong, "main").footnotes.len(), 1);

    assert_says(&report, &format!("† {}", texts[0]));
    assert_says(&report, &format!("‡ {}", texts[1]));
    assert_says(
        &report,
        "warning: perceptual loss no, not yes as in the paper: boxing-2",
    );
    let page = html(&report);
    for text in texts {
        assert!(page.contains(text), "{text}");
    }
    let departures = table(&report, "departures");
    assert_eq!(departures.columns[3..], ["† mine", "‡ mine"]);
    let rows: Vec<Vec<_>> = departures
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| cell.text.as_str()).collect())
        .collect();
    assert_eq!(
        rows,
        [
            [
                "sticky actions",
                "0",
                "the benchmark",
                "0.25",
                "as prescribed"
            ],
            ["perceptual loss", "yes", "the paper", "no", "as prescribed"],
            [
                "tokenizer.vocabulary",
                "512",
                "atari100k",
                "as prescribed",
                "256"
            ],
        ]
    );
}

#[test]
fn runs_without_protocol_or_config_are_marked_as_unknown() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("mine/pong");
    let run = Run {
        game: "pong",
        seed: 1,
        evaluations: &[(100_000, 3.0)],
        finished: true,
    };
    run.write(&dir, json!({}));
    fs::remove_file(dir.join("protocol.json")).unwrap();
    fs::remove_file(dir.join("config.toml")).unwrap();
    assert_says(
        &quick(&[&dir], &["rem"]).unwrap(),
        "† mine: protocol not known (no protocol.json); settings of training not known (no config.toml)",
    );
}

#[test]
fn score_files_may_lack_games_and_have_unequal_runs() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let one = write(
        "one.json",
        r#"{"Pong": [20, 10], "Boxing": [50], "Alien": [900, 800, 700]}"#,
    );
    let two = write("two.json", r#"{"pong": [15], "boxing": [30]}"#);
    let report = quick(&[&one, &two], &["iris"]).unwrap();
    assert_eq!(names(&report), ["IRIS", "one", "two"]);
    assert_eq!(report.games.len(), 2);
    assert_says(&report, "one has 1 to 2 runs per game");
    assert_says(&report, "warning: two has one score per game");
    assert_says(&report, "one counts as token-based");
    assert_says(
        &report,
        "note: one is a file of scores: its evaluation protocol is not known",
    );
    let further = tables(&report)
        .into_iter()
        .find(|table| table.name == "further-games")
        .unwrap();
    let cells: Vec<_> = further.rows[0]
        .cells
        .iter()
        .map(|cell| cell.text.as_str())
        .collect();
    assert_eq!(cells, ["Alien", "227.8", "7127.7", "420.0", "800.0", "–"]);
    assert!(report.summaries[2].metrics[0].unwrap().interval.is_none());

    let apart = write("apart.json", r#"{"Qbert": [100, 200]}"#);
    let report = quick(&[&two, &apart], &["none"]).unwrap();
    assert!(report.summaries.is_empty());
    assert_says(&report, "warning: the systems share no game");
    assert_eq!(tables(&report)[0].rows.len(), 3);
}

#[test]
fn a_system_that_is_not_token_based_is_never_bold() {
    let place = tempfile::tempdir().unwrap();
    let best = place.path().join("best.json");
    fs::write(&best, r#"{"Pong": [21, 21], "Boxing": [100, 100]}"#).unwrap();
    let report = |not_token_based: &[&str]| {
        let request = Request {
            inputs: vec![best.clone()],
            against: Some(vec!["iris".into()]),
            not_token_based: not_token_based
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            replicates: 100,
        };
        request.report()
    };
    let marks = |report: &Report| {
        tables(report)[0].rows[0]
            .cells
            .iter()
            .map(|c| (c.marks.bold, c.marks.underline))
            .collect::<Vec<_>>()
    };
    // Columns: game, random, human, IRIS, best.
    assert_eq!(
        marks(&report(&[]).unwrap())[3..],
        [(false, false), (true, false)]
    );
    assert_eq!(
        marks(&report(&["best"]).unwrap())[3..],
        [(true, false), (false, true)]
    );
    let error = report(&["bets"]).unwrap_err();
    assert_eq!(error.to_string(), "none of your systems is named `bets`");
    assert_eq!(error.hint(), "your systems are `best`");
}

/// Asserts that the inputs are rejected with this error and hint.
#[track_caller]
fn assert_rejected(inputs: &[&Path], error: &str, hint: &str) {
    let found = quick(inputs, &["rem"]).unwrap_err();
    let message = found.to_string();
    assert!(message.contains(error), "{message}");
    assert!(found.hint().contains(hint), "{}", found.hint());
}

#[test]
fn errors_name_the_file_and_the_key() {
    let place = tempfile::tempdir().unwrap();
    let table = [
        (
            r#"{"Pong": [1"#,
            "my.json`: cannot be read as scores: in `Pong`: EOF while parsing",
            "scores look like",
        ),
        (
            r#"[1, 2]"#,
            "my.json`: cannot be read as scores: invalid type: sequence",
            "scores look like",
        ),
        (
            r#"{"Pogn": [1]}"#,
            "my.json`: `Pogn` is not a game of the benchmark",
            "did you mean `Pong`",
        ),
        (
            r#"{"Pong": [1, "twelve"]}"#,
            "my.json`: `Pong`, run 2: a score must be a number, not the text \"twelve\"",
            "scores look like",
        ),
        (
            r#"{"Pong": [1, NaN]}"#,
            "my.json`: cannot be read as scores: in `Pong`: NaN is not a number in JSON, at line 1 column 14",
            "leave out runs that have no score",
        ),
        (
            r#"{"Pong": [null]}"#,
            "my.json`: `Pong`, run 1: a score must be a number, not null",
            "scores look like",
        ),
        (
            r#"{"Pong": []}"#,
            "my.json`: `Pong` has an empty list of scores",
            "leave out games",
        ),
        (
            r#"{}"#,
            "my.json`: the file has no games",
            "scores look like",
        ),
    ];
    let file = place.path().join("my.json");
    for (text, error, hint) in table {
        fs::write(&file, text).unwrap();
        assert_rejected(&[&file], error, hint);
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_rejected(
        &[&file],
        "my.json`: stream did not contain valid UTF-8",
        "is it a text file?",
    );
    assert_rejected(
        &[&place.path().join("absent.json")],
        "cannot read `",
        "check the path",
    );
    let rem = place.path().join("rem.json");
    fs::write(&rem, r#"{"Pong": [1]}"#).unwrap();
    assert_rejected(&[&rem], "two systems are called `REM`", "my-REM=PATH");
    let run = place.path().join("runs/broken");
    fs::create_dir_all(&run).unwrap();
    fs::write(
        run.join("scores.json"),
        r#"{"game": "pong", "seed": "one", "evaluations": [], "final": null}"#,
    )
    .unwrap();
    assert_rejected(
        &[&run],
        "broken/scores.json`: `seed`: invalid type: string \"one\"",
        "leave the run out",
    );
    fs::write(
        run.join("scores.json"),
        r#"{"game": "pong", "seed": 1, "evaluations": [], "final": null}"#,
    )
    .unwrap();
    fs::write(run.join("scores.json"), r#"{"Pong": [1]}"#).unwrap();
    assert_rejected(
        &[&run],
        "broken/scores.json`: missing field `game`",
        "pass the file itself",
    );
    fs::write(
        run.join("scores.json"),
        r#"{"game": "pong", "seed": 1, "evaluations": [], "final": null}"#,
    )
    .unwrap();
    fs::write(run.join("protocol.json"), "{").unwrap();
    assert_rejected(
        &[&run],
        "broken/protocol.json`: EOF",
        "writes this file at the start",
    );
}

#[test]
fn two_systems_of_the_user_are_compared_once() {
    let place = tempfile::tempdir().unwrap();
    let files = ["a", "b"].map(|name| {
        let path = place.path().join(format!("{name}.json"));
        fs::write(&path, r#"{"Pong": [1, 2], "Boxing": [3, 4]}"#).unwrap();
        path
    });
    let report = quick(&[&files[0], &files[1]], &["rem"]).unwrap();
    let pairs: Vec<_> = report
        .improvements
        .iter()
        .map(|pair| (pair.x, pair.y))
        .collect();
    // REM, a, b: a and b against REM, a against b.
    assert_eq!(pairs, [(1, 0), (1, 2), (2, 0)]);
}
