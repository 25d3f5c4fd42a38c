//! The pools that work on a study, so that they can be stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rem_run::{Owner, owner};

use crate::error::{Error, Result};
use crate::signals;
use crate::study::Study;

/// Prefix of the files that name pools, in the directory of the study.
const PREFIX: &str = ".pool-";

/// How long to wait for pools that were told to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pool of this process, which others can find while this value lives.
#[derive(Debug)]
pub struct RunningPool(PathBuf);

impl RunningPool {
    /// Makes this process known as a pool of a study.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn register(study: &Study) -> Result<Self> {
        for (file, owner) in files(study.dir()) {
            // Left by a pool that was killed.
            if owner.is_none() {
                let _ = std::fs::remove_file(file);
            }
        }
        let this = Owner::this_process();
        let file = study
            .dir()
            .join(format!("{PREFIX}{}-{}", this.host, this.pid));
        this.write(&File::create(&file).map_err(Error::io(&file))?);
        Ok(Self(file))
    }
}

impl Drop for RunningPool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The files of the pools of this machine, with their processes if they are alive.
fn files(dir: &Path) -> Vec<(PathBuf, Option<Owner>)> {
    let prefix = format!("{PREFIX}{}-", owner::host());
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    let paths = names.map(|entry| entry.path());
    paths
        .map(|path| {
            let owner = Owner::of_file(&path);
            (path, owner)
        })
        .collect()
}

/// Stops the pools on this machine that work on a study, and waits until they have ended. Returns their number.
pub fn stop_pools(study: &Study) -> usize {
    let pools = files(study.dir());
    let alive = pools.iter().filter_map(|(_, owner)| owner.as_ref());
    let stopped = alive.filter(|owner| signals::terminate(owner.pid)).count();
    let started = Instant::now();
    let any_alive = || pools.iter().any(|(file, _)| Owner::of_file(file).is_some());
    while any_alive() && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    stopped
}
