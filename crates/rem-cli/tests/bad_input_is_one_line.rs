//! Every command refuses bad input with one error line and one hint, and writes nothing.

mod support;

use std::path::Path;
use std::process::Output;

use support::*;

/// Commands with what they print, each in a paragraph: `$ rem …`, the error, the hint, and the exit code. `RUN` is a run of
/// two epochs, and `DIR` an empty directory. The code is 2 if the command line is not valid, and 1 if what it asks for is
/// not possible.
const CASES: &str = "tests/support/bad_input.txt";

/// The directories that the names in a case stand for.
struct Places<'a> {
    run: &'a str,
    dir: &'a str,
}

impl Places<'_> {
    /// The words of a command.
    fn words(&self, command: &str) -> Vec<String> {
        let words = command.split_whitespace();
        let words = words.map(|word| word.replace("RUN", self.run).replace("DIR", self.dir));
        words.collect()
    }

    /// What a command prints, and its exit code, as in a case.
    fn shown(&self, command: &str, output: &Output) -> String {
        let text = format!("{}{}", stdout(output), stderr(output));
        let text = text.replace(self.run, "RUN").replace(self.dir, "DIR");
        let code = output.status.code();
        let code = code.map_or("a signal".into(), |code| code.to_string());
        format!("$ rem {command}\n{text}exit {code}")
    }
}

#[test]
fn bad_input_prints_one_error_and_one_hint() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let places = Places {
        run: run.dir().to_str().unwrap(),
        dir: temp.path().to_str().unwrap(),
    };
    let before = all_files(run.dir());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    let text = std::fs::read_to_string(file).unwrap();
    let cases: Vec<&str> = text.trim().split("\n\n").collect();
    assert!(cases.len() >= 30);
    let mut wrong = Vec::new();
    for case in cases {
        let lines: Vec<&str> = case.lines().collect();
        let [command, error, hint, code] = lines[..] else {
            panic!("not four lines:\n{case}");
        };
        assert!(
            error.starts_with("error: ") && hint.starts_with("hint: "),
            "{case}"
        );
        assert!(["exit 1", "exit 2"].contains(&code), "{case}");
        let command = command.strip_prefix("$ rem ").unwrap();
        let mut rem = rem();
        // Not in the directory of this source, where `runs` may exist.
        rem.current_dir(temp.path()).args(places.words(command));
        let found = places.shown(command, &output_of(&mut rem));
        if found != case {
            wrong.push(format!("{found}\n--- expected\n{case}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
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

/// What no machine has, or nobody waits for. The numbers depend on the machine.
#[test]
fn absurd_sizes_are_refused_before_the_run_starts() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    for (set, part, advice) in [
        (
            "collect.steps_per_epoch=9000000000000000000",
            "GiB of memory, but this machine has",
            "reduce collect.steps_per_epoch or collect.epochs",
        ),
        (
            "world_model.layers=1000000000000",
            "GiB of memory, but this machine has",
            "reduce world_model.layers",
        ),
        (
            "evaluate.final_episodes=9000000000000000000",
            "GiB of memory, but this machine has",
            "reduce evaluate.episodes and evaluate.final_episodes",
        ),
        (
            "tokenizer.optimizer.steps_per_epoch=9000000000000000",
            "the run would train for about",
            "reduce train.epochs, the steps_per_epoch",
        ),
    ] {
        let (error, hint) = fails(&mut debug_run(&dir, &format!("--set {set}")));
        assert!(error.contains(part), "{set}: {error}");
        assert!(hint.starts_with(advice), "{set}: {hint}");
        assert!(!dir.exists(), "{set}: created the run directory");
    }
}
