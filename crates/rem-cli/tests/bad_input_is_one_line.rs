//! Every command refuses bad input with one error line and one hint, and writes nothing.

mod support;

use std::path::Path;
use std::process::Output;

use support::*;

/// A command line, the exit code, the error and the hint. `RUN` is a run of two epochs, and `DIR` an empty directory.
type Case = (&'static str, i32, &'static str, &'static str);

/// The command line itself is not valid.
const USAGE: i32 = 2;
/// What it asks for is not possible.
const FAILURE: i32 = 1;

const CASES: &[Case] = &[CASES_HERE];

/// The words of a case, with its directories.
fn words(text: &str, run: &Path, dir: &Path) -> Vec<String> {
    let fill = |word: &str| {
        word.replace("RUN", run.to_str().unwrap())
            .replace("DIR", dir.to_str().unwrap())
    };
    text.split_whitespace().map(fill).collect()
}

/// Error and hint. Panics if there is anything else.
#[track_caller]
fn lines(command: &str, output: &Output) -> (String, String) {
    let text = stderr(output);
    assert!(output.stdout.is_empty(), "{command}: {}", stdout(output));
    let lines: Vec<&str> = text.lines().collect();
    let [error, hint] = lines[..] else {
        panic!("{command}: expected two lines:\n{text}");
    };
    let part = |line: &str, start: &str| match line.strip_prefix(start) {
        Some(rest) => rest.to_owned(),
        None => panic!("{command}: no `{start}` in `{line}`"),
    };
    (part(error, "error: "), part(hint, "hint: "))
}

#[test]
fn bad_input_prints_one_error_and_one_hint() {
    assert!(CASES.len() >= 30);
    let run = finished(SHORT);
    let temp = temp_dir();
    let before = all_files(run.dir());
    let mut wrong = Vec::new();
    for (command, code, error, hint) in CASES {
        let words = words(command, run.dir(), temp.path());
        let output = output_of(rem().current_dir(temp.path()).args(&words));
        let found = lines(command, &output);
        let shown = |text: &str| {
            text.replace(run.dir().to_str().unwrap(), "RUN")
                .replace(temp.path().to_str().unwrap(), "DIR")
        };
        let found = (output.status.code(), shown(&found.0), shown(&found.1));
        let expected = (Some(*code), (*error).to_owned(), (*hint).to_owned());
        if found != expected {
            wrong.push(format!(
                "{command}\n  found    {found:?}\n  expected {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_same(&all_files(run.dir()), &before);
    assert_eq!(all_files(temp.path()).len(), 0, "a file was written");
}

/// A damaged config names file and line.
#[test]
fn a_damaged_config_names_its_line() {
    for (from, to, part) in [
        (
            "vocabulary = ",
            "vocabulary = \"many\" #",
            "must be a whole number, 2 to 65536",
        ),
        ("horizon = ", "horizon", "not valid TOML"),
        ("[world_model]", "[world_model", "not valid TOML"),
        (
            "lambda = ",
            "lamda = ",
            "unknown config key `actor_critic.lamda`",
        ),
        ("discount = ", "discount = 2.0 #", "must be in [0, 1]"),
    ] {
        let run = finished(BRIEF).changed(|dir| {
            let file = dir.join("config.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{from}");
            std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        });
        let file = run.dir().join("config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let line = 1 + text.lines().position(|line| line.contains(to)).unwrap();
        let place = format!("`{}` line {line}: ", file.display());
        for mut command in [resume(run.dir()), {
            let mut eval = rem();
            eval.arg("eval").arg(run.dir());
            eval
        }] {
            let (error, hint) = fails(&mut command);
            assert!(error.starts_with(&place) && error.contains(part), "{error}");
            assert!(hint.contains("restore the file from a backup"), "{hint}");
        }
    }
}
