//! The directory of a study.

use std::path::{Path, PathBuf};

use rem::config::Config;
use rem_run::{read_json, write_json};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::manifest::{Manifest, STUDY};

/// The directory of what runs print, one file per run.
const LOGS: &str = "logs";
/// The directory of failures, one file per failed run.
const FAILED: &str = "failed";
/// The directory of job scripts, of their output, and of the list of submitted jobs.
const SLURM: &str = "slurm";
/// The directory of scores by game, one file per variant.
const SCORES: &str = "scores";
/// The directory of the report.
const REPORT: &str = "report";

/// A study: its directory and manifest.
#[derive(Clone, Debug)]
pub struct Study {
    dir: PathBuf,
    /// All runs.
    pub manifest: Manifest,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Study {
    /// Makes a study in `dir`, which may exist.
    ///
    /// # Errors
    ///
    /// If it already is a study, or cannot be written.
    pub fn create(dir: &Path, manifest: Manifest) -> Result<Self> {
        if dir.join(STUDY).exists() {
            return Err(Error::Study {
                path: dir.into(),
                reason: "it already exists, and a study does not change".into(),
                hint: format!(
                    "run it with `rem sweep run {}`, or choose another directory",
                    dir.display()
                ),
            });
        }
        std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
        manifest.write(dir)?;
        Self::open(dir)
    }

    /// Opens the study in `dir`.
    ///
    /// # Errors
    ///
    /// If there is none, or its manifest is damaged.
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self {
            manifest: Manifest::read(dir)?,
            dir: dir.into(),
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The name of the directory.
    pub fn name(&self) -> String {
        let full = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let name = full.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The directory of a run.
    pub fn run_dir(&self, run: usize) -> PathBuf {
        self.dir.join(&self.manifest.runs[run].name)
    }

    /// What a run prints.
    pub fn log_file(&self, run: usize) -> PathBuf {
        self.file_of(LOGS, run, "log")
    }

    /// The number of a run by its name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn find(&self, name: &str) -> Result<usize> {
        let mut runs = self.manifest.runs.iter();
        runs.position(|run| run.name == name)
            .ok_or_else(|| Error::Study {
                path: self.dir.clone(),
                reason: format!("it has no run `{name}`"),
                hint: format!("`rem sweep status {}` lists them", self.dir.display()),
            })
    }

    /// The config of a run.
    ///
    /// # Errors
    ///
    /// If this version of `rem` does not accept it.
    pub fn config(&self, run: usize) -> Result<Config> {
        self.manifest.config(&self.manifest.runs[run])
    }

    /// Why a run failed, when it was last trained.
    pub fn failure(&self, run: usize) -> Option<Failure> {
        let file = self.file_of(FAILED, run, "json");
        read_json(&file, "delete this file").ok().flatten()
    }

    /// Records a failure. Without room for it, the run looks interrupted instead of failed.
    pub fn set_failure(&self, run: usize, failure: &Failure) {
        let file = self.file_of(FAILED, run, "json");
        let made = std::fs::create_dir_all(rem_run::files::parent(&file));
        let _ = made.map(|()| write_json(&file, failure));
    }

    /// Forgets the failure of a run that starts again.
    pub fn clear_failure(&self, run: usize) {
        let _ = std::fs::remove_file(self.file_of(FAILED, run, "json"));
    }

    /// A file for a run in a directory that mirrors the runs.
    fn file_of(&self, folder: &str, run: usize, extension: &str) -> PathBuf {
        let name = format!("{}.{extension}", self.manifest.runs[run].name);
        self.dir.join(folder).join(name)
    }

    pub(crate) fn slurm_dir(&self) -> PathBuf {
        self.dir.join(SLURM)
    }

    pub(crate) fn scores_dir(&self) -> PathBuf {
        self.dir.join(SCORES)
    }

    /// The directory of the report.
    pub fn report_dir(&self) -> PathBuf {
        self.dir.join(REPORT)
    }
}
