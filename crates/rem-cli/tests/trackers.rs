//! `--log` and `rem export` write the metrics of a run for other programs, with every epoch exactly once.
//!
//! W&B's and MLflow's own packages read what is written, with the Python of `scripts/setup-trackers` or of
//! `REM_TRACKERS_PYTHON`. Without them these tests are skipped, and with `REM_REQUIRE_TRACKERS` set they fail.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::*;

/// Every tracker.
const ALL: &str = "--log tensorboard,csv,wandb,mlflow";

/// A Python with the packages.
fn python() -> Option<PathBuf> {
    let ours = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../third-party/trackers/bin/python"
    );
    let named = std::env::var_os("REM_TRACKERS_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| ours.into());
    if python.exists() {
        return Some(python);
    }
    let required = std::env::var_os("REM_REQUIRE_TRACKERS").is_some();
    assert!(
        !required,
        "no {}: run scripts/setup-trackers",
        python.display()
    );
    eprintln!("skipped: run scripts/setup-trackers, or set REM_TRACKERS_PYTHON");
    None
}

/// What a script in `support/trackers` prints.
fn script(python: &Path, name: &str, args: &[&Path]) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/trackers");
    let output = Command::new(python)
        .arg(file.join(name))
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The metrics of `metrics.jsonl`: by epoch, `phase/name` and value.
fn logged(run: &Path) -> BTreeMap<u64, BTreeMap<String, Value>> {
    let mut epochs: BTreeMap<u64, BTreeMap<String, Value>> = BTreeMap::new();
    for line in fs::read_to_string(run.join("metrics.jsonl"))
        .unwrap()
        .lines()
    {
        let Value::Object(mut line) = serde_json::from_str(line).unwrap() else {
            panic!("{line}");
        };
        let epoch = line.remove("epoch").unwrap().as_u64().unwrap();
        let phase = line.remove("phase").unwrap();
        let phase = phase.as_str().unwrap();
        let values = line.into_iter();
        let tagged = values.map(|(name, value)| (format!("{phase}/{name}"), value));
        epochs.entry(epoch).or_default().extend(tagged);
    }
    epochs
}

/// The cells of `metrics.csv` that are not empty, by epoch.
fn csv(file: &Path) -> BTreeMap<u64, BTreeMap<String, Value>> {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(names[0], "epoch");
    let mut epochs = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), names.len(), "{line}");
        let row = names.iter().zip(&cells).skip(1);
        let row = row.filter(|(_, cell)| !cell.is_empty());
        let row = row.map(|(name, cell)| {
            let number = cell.parse::<f64>().unwrap();
            ((*name).to_owned(), Value::from(number))
        });
        let epoch = cells[0].parse().unwrap();
        assert!(
            epochs.insert(epoch, row.collect()).is_none(),
            "{epoch} is there twice"
        );
    }
    epochs
}

/// Without the times, which differ between runs.
fn without_times(
    mut epochs: BTreeMap<u64, BTreeMap<String, Value>>,
) -> BTreeMap<u64, BTreeMap<String, Value>> {
    for row in epochs.values_mut() {
        row.retain(|tag, _| !tag.starts_with("time/"));
    }
    epochs
}

/// Numbers as `f64`: 3 and 3.0 are the same.
fn as_numbers(
    epochs: &BTreeMap<u64, BTreeMap<String, Value>>,
) -> BTreeMap<u64, BTreeMap<String, Option<f64>>> {
    let row = |row: &BTreeMap<String, Value>| {
        let cells = row.iter();
        cells.map(|(tag, v)| (tag.clone(), v.as_f64())).collect()
    };
    epochs.iter().map(|(epoch, r)| (*epoch, row(r))).collect()
}

/// Steps and values by metric in MLflow's file store.
fn mlflow(store: &Path) -> BTreeMap<String, Vec<(u64, f64)>> {
    let mut found = BTreeMap::new();
    for (name, bytes) in all_files(store) {
        let Some((_, metric)) = name.split_once("/metrics/") else {
            continue;
        };
        let text = String::from_utf8(bytes).unwrap();
        let point = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[2].parse().unwrap(), words[1].parse().unwrap())
        };
        let points: Vec<(u64, f64)> = text.lines().map(point).collect();
        found.insert(metric.to_owned(), points);
    }
    found
}

/// The offline run in a directory of W&B.
fn offline_run(wandb: &Path) -> PathBuf {
    let runs: Vec<PathBuf> = fs::read_dir(wandb)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

#[test]
fn trackers_have_the_numbers_of_the_log_and_change_none() {
    let temp = temp_dir();
    let [plain, tracked] = ["plain", "tracked"].map(|name| temp.path().join(name));
    succeeds(&mut debug_run(&plain, SHORT));
    let printed = succeeds(&mut debug_run(&tracked, &format!("{SHORT} {ALL}")));
    for place in ["metrics.csv", "wandb/offline-run-", "mlruns/"] {
        assert!(stderr(&printed).contains(place), "{}", stderr(&printed));
    }

    let logged = logged(&tracked);
    assert_eq!(logged.len(), 2);
    let table = csv(&tracked.join("metrics.csv"));
    assert_eq!(
        as_numbers(&without_times(table.clone())),
        as_numbers(&logged)
    );
    assert!(table[&2].contains_key("time/tokenizer"), "{table:?}");
    for (metric, points) in mlflow(&temp.path().join("mlruns")) {
        let expected: Vec<(u64, Option<f64>)> = (table.iter())
            .filter_map(|(epoch, row)| Some((*epoch, row.get(&metric)?.as_f64())))
            .collect();
        let points: Vec<_> = points.into_iter().map(|(s, v)| (s, Some(v))).collect();
        assert_eq!(points, expected, "{metric}");
    }

    // The config, its checksum and every result are the same bytes.
    let own = ["trackers.json", "metrics.csv"];
    let mut files = reproducible_files(&tracked);
    files.retain(|name, _| !own.contains(&name.as_str()) && !name.starts_with("wandb/"));
    assert_same(&files, &reproducible_files(&plain));
}

/// Killed in three epochs and resumed, a run has every epoch once, as an uninterrupted one.
#[test]
fn a_killed_run_has_no_step_twice() {
    let settings = format!(
        "--set train.epochs=4 --set collect.epochs=4 --set evaluate.every=2 {ALL} \
         --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0"
    );
    let temp = temp_dir();
    let whole = temp.path().join("whole/run");
    fs::create_dir(temp.path().join("whole")).unwrap();
    succeeds(&mut debug_run(&whole, &settings));
    let run = temp.path().join("run");
    let kills = [(2, "collect"), (3, "tokenizer"), (4, "world_model")];
    kill_and_resume(&run, &settings, &kills);

    let table = without_times(csv(&run.join("metrics.csv")));
    let epochs: Vec<u64> = table.keys().copied().collect();
    assert_eq!(epochs, [1, 2, 3, 4]);
    assert_eq!(table, without_times(csv(&whole.join("metrics.csv"))));
    let store = temp.path().join("mlruns");
    let untimed = |store: &Path| {
        let mut metrics = mlflow(store);
        metrics.retain(|name, _| !name.starts_with("time/"));
        metrics
    };
    assert_eq!(untimed(&store), untimed(&temp.path().join("whole/mlruns")));
    assert_eq!(untimed(&store)["collect/steps"].len(), 4);
    // A second run of W&B or MLflow would be a double run on their pages.
    offline_run(&run.join("wandb"));

    let Some(python) = python() else { return };
    let synced = script(
        &python,
        "wandb_sync.py",
        &[&offline_run(&run.join("wandb"))],
    );
    let steps = synced["history"].as_array().unwrap().iter();
    let steps: Vec<u64> = steps.map(|line| line["_step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4]);
    let read = script(&python, "mlflow_read.py", &[&store, "run".as_ref()]);
    assert_eq!(read["status"], "FINISHED");
    let points = read["history"]["collect/steps"].as_array().unwrap();
    assert_eq!(points.len(), 4, "{points:?}");
}

#[test]
fn wandb_syncs_every_value() {
    let Some(python) = python() else { return };
    let run = finished(&format!("{SHORT} --log wandb"));
    assert!(!run.dir().join("tensorboard").exists());
    let synced = script(
        &python,
        "wandb_sync.py",
        &[&offline_run(&run.dir().join("wandb"))],
    );
    let logged = logged(run.dir());
    let history = synced["history"].as_array().unwrap();
    assert_eq!(history.len(), logged.len());
    for (line, (epoch, row)) in history.iter().zip(&logged) {
        assert_eq!(line["_step"].as_u64(), Some(*epoch));
        for (tag, value) in row {
            assert_eq!(line[tag].as_f64(), value.as_f64(), "{tag}");
        }
        assert!(line["_runtime"].as_f64().unwrap() > 0.0);
    }
    let about = &synced["run"];
    assert_eq!(
        (&about["name"], &about["project"]),
        (&"run".into(), &"rem".into())
    );
    let vocabulary = &about["config"]["tokenizer"]["value"]["vocabulary"];
    assert!(vocabulary.as_u64().unwrap() > 1, "{about}");
    assert_eq!(synced["summary"]["_step"], 2);
}

#[test]
fn mlflow_reads_every_value() {
    let Some(python) = python() else { return };
    let temp = temp_dir();
    // Two runs in one store, and its own experiment.
    for name in ["one", "two"] {
        let dir = temp.path().join(name);
        succeeds(&mut debug_run(&dir, &format!("{SHORT} --log mlflow")));
    }
    let store = temp.path().join("mlruns");
    let read = script(&python, "mlflow_read.py", &[&store, "two".as_ref()]);
    assert_eq!(read["experiments"], 1);
    assert_eq!(read["status"], "FINISHED");
    assert_eq!(read["params"]["train.epochs"], "2");
    assert_eq!(read["params"]["env.game"], "catch");
    for (epoch, row) in logged(&temp.path().join("two")) {
        for (tag, value) in row {
            let points = read["history"][&tag].as_array().unwrap();
            let point = points.iter().find(|p| p[0].as_u64() == Some(epoch));
            assert_eq!(point.unwrap()[1].as_f64(), value.as_f64(), "{tag}");
        }
    }
}

/// Also of a run that was trained without `--log`, and the same every time.
#[test]
fn export_writes_what_training_would_have_written() {
    let temp = temp_dir();
    let run = temp.path().join("run");
    succeeds(&mut debug_run(&run, SHORT));
    let files = reproducible_files(&run);
    let export = |words: &str| {
        let mut command = rem();
        command
            .arg("export")
            .arg(&run)
            .args(words.split_whitespace());
        stdout(&succeeds(&mut command))
    };
    assert!(export("").contains("metrics.csv"));
    let table = csv(&run.join("metrics.csv"));
    assert_eq!(as_numbers(&without_times(table)), as_numbers(&logged(&run)));
    let first = export("--to csv,wandb,mlflow");
    let exported = all_files(temp.path());
    assert_eq!(export("--to csv,wandb,mlflow"), first);
    let again = all_files(temp.path());
    assert_same(&again, &exported);
    let mut left = reproducible_files(&run);
    left.retain(|name, _| files.contains_key(name));
    assert_same(&left, &files);

    let elsewhere = temp.path().join("elsewhere");
    export(&format!("--to csv,mlflow --out {}", elsewhere.display()));
    assert!(elsewhere.join("metrics.csv").exists() && elsewhere.join("mlruns").exists());
}

/// A resumed run keeps its trackers; another choice replaces them, with all epochs.
#[test]
fn the_choice_can_change_when_a_run_resumes() {
    let temp = temp_dir();
    let run = temp.path().join("run");
    let settings = "--set train.epochs=4 --set collect.epochs=4 --log csv";
    let child = start(&mut debug_run(&run, settings));
    kill_when(child, || checkpoint(&run, 1).exists());
    assert!(!run.join("tensorboard").exists());
    succeeds(resume(&run).args(["--log", "tensorboard,mlflow"]));
    assert!(run.join("tensorboard").exists());
    let steps = &mlflow(&temp.path().join("mlruns"))["collect/steps"];
    let epochs: Vec<u64> = steps.iter().map(|(epoch, _)| *epoch).collect();
    assert_eq!(epochs, [1, 2, 3, 4]);
    let (error, hint) = {
        let output = output_of(resume(&run).args(["--log", "none,csv"]));
        let text = stderr(&output);
        let mut lines = text.lines().map(str::to_owned);
        (lines.next().unwrap(), lines.next().unwrap())
    };
    assert!(
        error.contains("`--log none` is for nothing else"),
        "{error}"
    );
    assert!(hint.contains("--log csv,mlflow"), "{hint}");
}
