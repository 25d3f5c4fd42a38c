//! The status of a study: what the page of a study shows.

use std::collections::HashMap;
use std::path::Path;

use rem_study::{RunStatus, Status, Study};
use serde::Serialize;

use crate::error::ApiError;
use rem_study::Found;

/// The status of a study.
#[derive(Debug, Serialize)]
pub(crate) struct StudyStatus {
    #[serde(flatten)]
    status: Status,
    /// The names of the runs in the list of runs, in the order of the study. `None` if a run has not started.
    pages: Vec<Option<String>>,
}

impl StudyStatus {
    /// The status of the study with this name. `None` if there is none.
    pub fn read(name: &str, found: &Found) -> Option<Result<Self, ApiError>> {
        let dir = found.studies.get(name)?;
        Some(Self::of(dir, found))
    }

    fn of(dir: &Path, found: &Found) -> Result<Self, ApiError> {
        let study = Study::open(dir)?;
        // Queued runs are shown as waiting: the server asks no other program.
        let status = Status::read(&study, &[]);
        let names: HashMap<&Path, &String> = (found.runs.iter())
            .map(|(name, dir)| (dir.as_path(), name))
            .collect();
        let page = |run: &RunStatus| {
            let name = names.get(dir.join(&run.name).as_path());
            name.map(|name| (*name).clone())
        };
        Ok(Self {
            pages: status.runs.iter().map(page).collect(),
            status,
        })
    }
}
