//! Every command in docs/reproduce.md, the README and the guides parses, every file that they name exists, and the tables
//! of docs/reproduce.md are those of `rem report`.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::*;

const PAGE: &str = "docs/reproduce.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The code of a page: lines of fenced blocks and inline spans, without comments.
fn code(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (i, block) in page.split("```").enumerate() {
        let outside = i % 2 == 0;
        let pieces: Vec<&str> = match outside {
            true => block.split('`').skip(1).step_by(2).collect(),
            // The first line is the language.
            false => block.lines().skip(1).collect(),
        };
        for piece in pieces {
            let piece = piece.split(" # ").next().unwrap_or_default();
            found.extend(piece.split(" && ").map(|part| part.trim().to_string()));
        }
    }
    found
}

/// The words of a command up to a pipe, a redirection or the end of the line. Quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let line = line.replace("2>&1", "");
    let line = line.split([';', '|', '>']).next().unwrap_or_default();
    let line = line.trim_end_matches(" \\");
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(i, part)| match i % 2 {
        1 => vec![part.to_string()],
        _ => part.split_whitespace().map(String::from).collect(),
    });
    words.collect()
}

/// The commands of a page.
fn commands(page: &str) -> Vec<Vec<String>> {
    let code = code(page);
    let words = code.iter().map(|line| words(line));
    let is_command = |words: &Vec<String>| {
        let first = words.first().map_or("", String::as_str);
        // A bare `cargo` or script name is a name, `rem` with a command is always checked.
        (first == "rem" && words.len() > 1)
            || (first == "cargo" && words.len() > 1)
            || first.starts_with("scripts/")
    };
    words.filter(is_command).collect()
}

/// What is wrong with a page in the folder `dir`.
fn problems(page: &str, dir: &str) -> Vec<String> {
    let mut problems: Vec<String> = missing_files(page, dir);
    let mut checked = BTreeSet::new();
    for words in commands(page) {
        if checked.insert(words.clone()) {
            let found = match words[0].as_str() {
                "rem" => rem_problem(&words[1..]),
                "cargo" => cargo_problem(&words),
                script => script_problem(script, &words[1..]),
            };
            problems.extend(found.map(|problem| format!("`{}`: {problem}", words.join(" "))));
        }
    }
    problems
}

/// The error of a command that must succeed.
fn error_of(command: &mut Command) -> Option<String> {
    let output = output_of(command);
    let text = stderr(&output);
    (!output.status.success()).then(|| text.lines().next().unwrap_or("no output").to_string())
}

/// With `--help` at the end, unknown commands and options and invalid values before it are errors, and nothing runs. Then
/// the config must load.
fn rem_problem(words: &[String]) -> Option<String> {
    error_of(rem().args(words).arg("--help")).or_else(|| {
        if words.len() > 2
            && words[..2] == ["sweep", "new"]
            && !words.iter().any(|word| is_placeholder(word))
        {
            return error_of(rem().args(words).arg("--dry-run"));
        }
        let config =
            config_of(words).filter(|words| !words.iter().any(|word| is_placeholder(word)))?;
        error_of(rem().arg("config").args(config))
    })
}

/// The arguments of `rem config` for the config that a command loads.
fn config_of(words: &[String]) -> Option<Vec<String>> {
    match words[0].as_str() {
        "config" => return Some(words[1..].to_vec()),
        "train" | "doctor" => {}
        _ => return None,
    }
    let mut config = vec!["quick".to_string()];
    for pair in words.windows(2) {
        let (option, value) = (pair[0].as_str(), &pair[1]);
        match option {
            "--preset" => config[0] = value.clone(),
            "--set" => config.extend(["--set".into(), value.clone()]),
            "--game" => config.extend(["--set".into(), format!("env.game={value}")]),
            _ => {}
        }
    }
    Some(config)
}

/// Whether a word stands for something, such as `PRESET` or `env.game=GAME`.
fn is_placeholder(word: &str) -> bool {
    let value = word.rsplit(['=', ',']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    value.contains('…') || (value.len() > 1 && value.chars().all(is_name))
}

/// The tests that `cargo test --test NAME` names must exist, and so must what `cargo run` passes to `rem`.
fn cargo_problem(words: &[String]) -> Option<String> {
    if words[1] == "run" && !words.contains(&"--example".to_string()) {
        let rem_words = words.iter().position(|word| word == "--")? + 1;
        let rem_words = Some(&words[rem_words..]).filter(|words| !words.is_empty())?;
        return rem_problem(rem_words);
    }
    let position = words.iter().position(|word| word == "--test")?;
    let name = words.get(position + 1)?;
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut tests = crates.map(|entry| entry.unwrap().path().join("tests"));
    let exists = tests.any(|dir| {
        dir.join(format!("{name}.rs")).exists() || dir.join(name).join("main.rs").exists()
    });
    (!exists).then(|| format!("no test `{name}`"))
}

/// A script must exist and know its options.
fn script_problem(script: &str, words: &[String]) -> Option<String> {
    let Ok(text) = fs::read_to_string(root().join(script)) else {
        return Some("no such script".into());
    };
    let options = words.iter().filter(|word| word.starts_with("--"));
    let mut names = options.map(|word| word.split('=').next().unwrap_or(word));
    let unknown = names.find(|name| !text.contains(*name));
    unknown.map(|name| format!("no option {name}"))
}

/// Targets of links and paths in code that do not exist.
fn missing_files(page: &str, dir: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for link in page.split("](").skip(1) {
        let target = link.split(')').next().unwrap_or_default();
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        if target.starts_with("http") {
            continue;
        }
        if !root().join(dir).join(file).exists() {
            missing.push(format!("link to {file}: no such file"));
        }
        if file.is_empty() && !headings(page).contains(&heading.to_string()) {
            missing.push(format!("link to #{heading}: no such heading"));
        }
    }
    let folders = [
        "crates/", "configs/", "data/", "docs/", "results/", "scripts/",
    ];
    for word in code(page).iter().flat_map(|line| line.split_whitespace()) {
        let is_path = folders.iter().any(|folder| word.starts_with(folder)) && !word.contains('*');
        if is_path && !root().join(word).exists() {
            missing.push(format!("{word}: no such file"));
        }
    }
    missing
}

/// The anchors of a page's headings.
fn headings(page: &str) -> Vec<String> {
    let titles = page.lines().filter_map(|line| line.strip_prefix("## "));
    titles
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect()
}

#[test]
fn every_command_parses_and_every_file_exists() {
    let page = read(PAGE);
    let commands = commands(&page);
    assert!(commands.len() >= 40, "{} commands", commands.len());
    let problems = problems(&page, "docs");
    assert!(problems.is_empty(), "{PAGE}:\n{}", problems.join("\n"));
}

/// What the guides name and nobody has: names to be chosen, files to be made, options named without their value, and a
/// command of builds with the feature `atari`.
const NOT_THERE: [&str; 6] = [
    "NAME",
    "COMMAND",
    "mygame",
    "data/catch",
    "needs a value",
    "rem bench emulation",
];

#[test]
fn commands_and_links_of_readme_and_guides_are_right() {
    let guides = fs::read_dir(root().join("docs/guide")).unwrap();
    let mut pages: Vec<(String, &str)> = (guides.map(|entry| entry.unwrap().file_name()))
        .map(|name| {
            (
                format!("docs/guide/{}", name.to_str().unwrap()),
                "docs/guide",
            )
        })
        .collect();
    pages.extend([("README.md".into(), "."), ("CONTRIBUTING.md".into(), ".")]);
    pages.extend(["ablations.md", "precision.md"].map(|name| (format!("docs/{name}"), "docs")));
    pages.sort();
    let mut found = Vec::new();
    for (page, dir) in pages {
        let mut problems = problems(&read(&page), dir);
        problems.retain(|problem| !NOT_THERE.iter().any(|name| problem.contains(name)));
        found.extend(problems.iter().map(|problem| format!("{page}: {problem}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The check finds what it looks for.
#[test]
fn wrong_commands_and_files_are_found() {
    for (page, problem) in [
        ("`rem trian --preset quick`", "trian"),
        ("`rem train --no-such-option`", "--no-such-option"),
        ("`rem bench --repeats many`", "many"),
        ("```sh\nrem train --preset quikc   # comment\n```", "quikc"),
        ("`rem train --set world_model.layer=3`", "world_model.layer"),
        ("`rem config no-such-preset`", "no-such-preset"),
        (
            "`cargo run --release -- train --preset no-such-preset`",
            "no-such-preset",
        ),
        ("`cargo test --release --test no_such_test`", "no_such_test"),
        ("`scripts/no-such-script`", "no such script"),
        ("`scripts/setup-atari --no-such-option`", "--no-such-option"),
        (
            "`rem sweep new runs/x --grid preset=no-such-preset`",
            "no-such-preset",
        ),
        (
            "`rem sweep new runs/x --games no_such_game`",
            "no_such_game",
        ),
        (
            "`rem sweep run runs/x --no-such-option`",
            "--no-such-option",
        ),
        ("[a link](no-such-page.md)", "no-such-page.md"),
        ("[a link](#no-such-heading)", "#no-such-heading"),
        ("`configs/no-such.toml`", "configs/no-such.toml"),
    ] {
        let found = problems(page, "docs");
        assert!(!found.is_empty(), "nothing found in {page}");
        let named = found.iter().any(|text| text.contains(problem));
        assert!(named, "{page}: {found:?}");
    }
    let fine = "## A heading\n`rem train --preset debug --game catch --set seed=3` [a](#a-heading) [b](README.md)";
    assert_eq!(problems(fine, "docs"), [""; 0]);
}

#[test]
fn every_figure_and_table_has_a_row_with_a_command() {
    let page = read(PAGE);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let figures = (1..=15).map(|n| format!("Figure {n}"));
    for name in figures.chain((1..=9).map(|n| format!("Table {n}"))) {
        let row = rows.iter().find(|row| {
            let first = row[2..].split('|').next().unwrap_or_default().trim();
            first == name || first.starts_with(&format!("{name},"))
        });
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        assert!(!commands(row).is_empty(), "no command for {name}");
    }
}

/// Tables and figures in docs/reproduce are what `rem report` writes. `REM_UPDATE_DOCS=1` writes them anew.
#[test]
fn committed_tables_and_figures_are_those_of_the_report() {
    for (name, against) in [("benchmark", "paper"), ("ablations", "ablations")] {
        let temp = temp_dir();
        succeeds(
            rem()
                .args(["report", "--against", against, "--out"])
                .arg(temp.path()),
        );
        let kept = root().join("docs/reproduce").join(name);
        let mut compared = 0;
        for folder in ["tables", "figures"] {
            for entry in fs::read_dir(kept.join(folder)).unwrap() {
                let old = entry.unwrap().path();
                let new = temp.path().join(folder).join(old.file_name().unwrap());
                if std::env::var_os("REM_UPDATE_DOCS").is_some() {
                    fs::copy(&new, &old).unwrap();
                }
                let [old_text, new_text] =
                    [&old, &new].map(|file| fs::read_to_string(file).unwrap());
                assert!(old_text == new_text, "{} has changed", old.display());
                compared += 1;
            }
        }
        assert_eq!(compared, 7, "files in {}", kept.display());
    }
}
