//! Completions, manual pages, the version, `rem config` and `--json`.

mod support;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::*;

/// What `rem` with these words prints.
fn printed(words: &str) -> String {
    stdout(&succeeds(rem().args(words.split_whitespace())))
}

fn json(words: &str) -> Value {
    let text = printed(words);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words}: {error}\n{text}"))
}

/// Each line is an object.
fn json_lines(words: &str) -> Vec<Value> {
    let text = printed(words);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn completions_name_all_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&format!("completions {shell}"));
        for word in ["train", "episodes", "export", "resume", "sweep"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}

/// bash itself completes `rem ex` to `rem export`.
#[test]
fn bash_completes_commands_and_options() {
    let temp = temp_dir();
    let file = temp.path().join("rem.bash");
    fs::write(&file, printed("completions bash")).unwrap();
    let complete = |words: &[&str]| {
        let script = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _rem rem '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).stdin(Stdio::null());
        stdout(&succeeds(&mut bash))
    };
    assert_eq!(complete(&["rem", "dia"]).trim(), "diagnose");
    assert!(complete(&["rem", "train", "--res"]).contains("--resume"));
}

#[test]
fn manual_pages_describe_all_commands() {
    let temp = temp_dir();
    let dir = temp.path().join("man1");
    succeeds(rem().arg("man").arg(&dir));
    for (page, words) in [
        ("rem.1", ["rem\\-train", "rem\\-watch"]),
        ("rem-train.1", ["\\-\\-resume", "Run directory"]),
        ("rem-sweep-run.1", ["\\-\\-jobs", "Slurm"]),
    ] {
        let text = fs::read_to_string(dir.join(page)).unwrap();
        for word in words {
            assert!(text.contains(word), "{page}: no {word} in\n{text}");
        }
    }
}

#[test]
fn the_verbose_version_says_what_was_built() {
    let short = printed("--version");
    assert_eq!(short.trim(), concat!("rem ", env!("CARGO_PKG_VERSION")));
    let text = printed("--version --verbose");
    assert_eq!(text, printed("--verbose --version"));
    assert!(text.starts_with(&short), "{text}");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).trim()
    };
    let revision = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    if let Some(output) = revision.ok().filter(|output| output.status.success()) {
        assert_eq!(field("git revision:").len(), stdout(&output).trim().len());
    }
    assert_eq!(
        field("features:").contains("atari"),
        cfg!(feature = "atari")
    );
    assert!(field("devices:").contains("flex"), "{text}");
    assert!(!field("instruction set:").is_empty());
}

#[test]
fn a_documented_config_is_valid_and_explains_every_key() {
    let text = printed("config atari100k --docs");
    let mut above = "";
    for line in text.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(above.starts_with("# "), "nothing above `{line}`");
        }
        above = line;
    }
    assert!(
        text.contains("# Learning rate of the first epoch."),
        "{text}"
    );
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        plain,
        printed("config atari100k").lines().collect::<Vec<_>>()
    );
}

#[test]
fn a_diff_has_only_the_keys_that_differ() {
    let text = printed("config --diff quick quick");
    assert!(text.is_empty(), "{text}");
    let found = json("config --diff atari100k atari100k,ablation-no-pop --json");
    let keys: Vec<&str> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["key"].as_str().unwrap())
        .collect();
    // POP has a mode and the plain RetNet has none.
    assert_eq!(
        keys,
        [
            "world_model.architecture.mode",
            "world_model.architecture.type"
        ]
    );
    assert_eq!(
        (&found[1]["a"], &found[1]["b"]),
        (&"pop".into(), &"retnet".into())
    );
    assert_eq!(found[0]["b"], Value::Null);

    let run = finished("--set train.epochs=1 --set tokenizer.vocabulary=17");
    let dir = run.dir().display();
    let text = printed(&format!("config --diff {dir} debug"));
    let line = text
        .lines()
        .find(|line| line.starts_with("tokenizer.vocabulary"));
    let cells: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(cells[1], "17");
    assert!(!text.contains("env.game"), "{text}");
    let of_run = fs::read_to_string(run.dir().join("config.toml")).unwrap();
    assert_eq!(printed(&format!("config {dir}")), of_run);
}

#[test]
fn commands_that_list_or_measure_print_json() {
    let run = finished(SHORT);
    let dir = run.dir().display();
    let episodes = json_lines(&format!("episodes {dir} --json"));
    assert_eq!(episodes[0]["episode"], 0);
    assert!(
        episodes
            .iter()
            .all(|e| e["outcome"].is_string() && e["return"].is_number())
    );
    let file = run.dir().join("../e.npz");
    let export = format!("episodes {dir} export 0 --to npz --out {}", file.display());
    printed(&export);
    let steps = json(&format!("episodes {} --json", file.display()));
    assert_eq!(
        steps["rewards"].as_array().unwrap().len() as u64,
        episodes[0]["steps"]
    );
    assert_eq!(steps["return"], episodes[0]["return"]);

    let score = json(&format!("eval {dir} --episodes 2 --json"));
    assert_eq!(score["returns"].as_array().unwrap().len(), 2);
    assert_eq!(json("config --json")["env"]["game"], "catch");
    let report = json(&format!(
        "report --replicates 10 --json --out {}",
        run.dir().join("../report").display()
    ));
    let systems = report["systems"].as_array().unwrap();
    assert!(
        systems.iter().any(|system| system["system"] == "REM"),
        "{report}"
    );
    assert_eq!(report["games"].as_array().unwrap().len(), 26);
    let runs = json_lines("sweep new nowhere --preset debug --seeds 1..3 --dry-run --json");
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[2]["config"]["seed"], 3);
}

#[test]
fn benchmarks_print_text_or_json() {
    let words = "bench --scale tiny --batches reference --only tokenizer --repeats 1 --threads 1";
    let text = printed(words);
    assert!(
        text.starts_with("phase ") && text.contains("tokenizer "),
        "{text}"
    );
    let lines = json_lines(&format!("{words} --json"));
    assert_eq!(lines[0]["phase"], "tokenizer");
    assert!(lines[0]["ms"].as_f64().unwrap() > 0.0);

    let text = printed("bench env --game catch --seconds 0.1");
    assert!(
        text.starts_with("catch: ") && text.contains("steps per second"),
        "{text}"
    );
    let line = json("bench env --game catch --seconds 0.1 --json");
    assert!(line["steps_per_second"].as_f64().unwrap() > 0.0);

    let words = "bench imagination --scale tiny --tokens 16 --horizons 2 --batch 2 --repeats 1";
    let lines = json_lines(&format!("{words} --json"));
    assert_eq!(
        (&lines[0]["tokens_per_frame"], &lines[0]["horizon"]),
        (&16.into(), &2.into())
    );
}

#[test]
fn doctor_prints_every_check_as_json() {
    let temp = temp_dir();
    let output = succeeds(
        rem()
            .args(["doctor", "--preset", "debug", "--json", "--run-dir"])
            .arg(temp.path()),
    );
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["ready"], true);
    let checks = found["checks"].as_array().unwrap();
    for check in ["machine", "device", "memory", "disk", "self-test"] {
        assert!(
            checks.iter().any(|found| found["check"] == check),
            "no {check}"
        );
    }
}
