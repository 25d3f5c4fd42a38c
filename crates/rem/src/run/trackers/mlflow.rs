//! A run in MLflow's file store.
//!
//! A directory per experiment and run: `meta.yaml`, a file per parameter and tag, and a file per metric with lines of time
//! in milliseconds, value and step. All runs are in the experiment `rem`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rem_run::files::{failed, write_atomic};
use serde_json::json;

use super::{About, History, Row};

const EXPERIMENT: &str = "rem";
/// Any number would do. With the same one for all, runs that start at the same time agree.
const EXPERIMENT_ID: &str = "736801984157205331";
/// Values of `RunStatus`.
const RUNNING: u32 = 1;
const FINISHED: u32 = 3;

/// A run in the store.
pub(super) struct Run {
    dir: PathBuf,
    experiment: String,
}

impl Run {
    /// Replaces the run in the store by the history.
    pub(super) fn create(store: &Path, about: &About, history: &History) -> io::Result<Self> {
        let experiment = experiment(store, about)?;
        let dir = store.join(&experiment).join(&about.id);
        let run = Self { dir, experiment };
        let metrics = run.dir.join("metrics");
        match fs::remove_dir_all(&metrics) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("replace", &metrics)(error));
            }
            _ => create_dir(&metrics)?,
        }
        for part in ["params", "tags", "artifacts"] {
            create_dir(&run.dir.join(part))?;
        }
        for (key, value) in about.config.json_values() {
            let text = value.as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| value.to_string());
            run.write(&format!("params/{key}"), &text)?;
        }
        run.write("tags/mlflow.runName", &about.name)?;
        run.write("tags/mlflow.source.name", "rem train")?;
        run.write("tags/mlflow.source.git.commit", crate::GIT_REVISION)?;
        run.write_meta(about, RUNNING, None)?;
        for row in &history.rows {
            run.append(about, row)?;
        }
        Ok(run)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    pub(super) fn append(&self, about: &About, row: &Row) -> io::Result<()> {
        let time = milliseconds(about.started + row.seconds);
        for (tag, value) in &row.values {
            let path = self.dir.join("metrics").join(tag);
            create_dir(rem_run::files::parent(&path))?;
            let value = match value.is_nan() {
                true => "nan".into(),
                false => value.to_string(),
            };
            let line = format!("{time} {value} {}\n", row.epoch);
            super::append(&path, line.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn finish(&self, about: &About, seconds: f64) -> io::Result<()> {
        let end = milliseconds(about.started + seconds);
        self.write_meta(about, FINISHED, Some(end))
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(failed("write", &path))
    }

    fn write_meta(&self, about: &About, status: u32, end: Option<u64>) -> io::Result<()> {
        let meta = json!({
            "artifact_uri": uri(&self.dir.join("artifacts")),
            "end_time": end,
            "entry_point_name": "",
            "experiment_id": self.experiment,
            "lifecycle_stage": "active",
            "run_id": about.id,
            "run_name": about.name,
            "source_name": "",
            "source_type": 4,
            "source_version": "",
            "start_time": milliseconds(about.started),
            "status": status,
            "tags": [],
            "user_id": "rem",
        });
        write_yaml(&self.dir.join("meta.yaml"), &meta)
    }
}

/// The identifier of the experiment in the store, which is made if it does not exist.
fn experiment(store: &Path, about: &About) -> io::Result<String> {
    create_dir(store)?;
    // MLflow may have made it.
    for entry in fs::read_dir(store)
        .map_err(failed("read", store))?
        .flatten()
    {
        let meta = fs::read_to_string(entry.path().join("meta.yaml")).unwrap_or_default();
        let named = |line: &str| {
            let name = line.trim().trim_end_matches(',');
            ["name: rem", "\"name\": \"rem\""].contains(&name)
        };
        if meta.lines().any(named) {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    let dir = store.join(EXPERIMENT_ID);
    create_dir(&dir)?;
    let time = milliseconds(about.started);
    let meta = json!({
        "artifact_location": uri(&dir),
        "creation_time": time,
        "experiment_id": EXPERIMENT_ID,
        "last_update_time": time,
        "lifecycle_stage": "active",
        "name": EXPERIMENT,
    });
    write_yaml(&dir.join("meta.yaml"), &meta)?;
    Ok(EXPERIMENT_ID.into())
}

fn create_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(failed("create directory", path))
}

/// JSON is YAML.
fn write_yaml(path: &Path, value: &serde_json::Value) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).expect("strings and numbers are valid JSON");
    write_atomic(path, format!("{text}\n").as_bytes())
}

fn uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let escaped: String = (path.display().to_string().chars())
        .map(|c| match c {
            ' ' => "%20".into(),
            '%' => "%25".into(),
            c => c.to_string(),
        })
        .collect();
    format!("file://{escaped}")
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}
