//! [`RunDir`]: a locked run directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use rem_run::{Owner, Protocol, files, layout};

use super::checkpoint;
use crate::config::Config;
use crate::error::{Error, Result};

/// The reason of the error for a run that another process has locked.
const LOCKED: &str = "another process is using it";

/// A run directory, locked until this value is dropped.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// The lock. The operating system releases it if the process dies.
    lock: File,
    /// Whether training writes TensorBoard events.
    tensorboard: bool,
}

impl Drop for RunDir {
    /// The process may live on without the run.
    fn drop(&mut self) {
        let _ = self.lock.set_len(0);
    }
}

impl RunDir {
    /// Creates the directory of a new run.
    ///
    /// # Errors
    /// If the directory already contains a run, is locked, or cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        if path.join(layout::CONFIG).exists() {
            return Err(Error::Run {
                path: path.into(),
                reason: "it already contains a run".into(),
                hint: format!(
                    "continue it with `rem train --resume {}`, or choose another directory",
                    path.display()
                ),
            });
        }
        std::fs::create_dir_all(path).map_err(Error::io(path))?;
        let run = Self::lock(path)?;
        let checkpoints = path.join(layout::CHECKPOINTS);
        if checkpoint::epochs(path).iter().any(|epoch| *epoch > 0) {
            return Err(Error::Run {
                path: path.into(),
                reason: "it contains checkpoints, but no config.toml".into(),
                hint: "restore that file, or choose another directory".into(),
            });
        }
        if checkpoints.exists() {
            // A start that was interrupted before the config was written.
            std::fs::remove_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        }
        // Created and synced now, so that it is on disk before a checkpoint lists its chunks.
        let replay = path.join(layout::REPLAY);
        std::fs::create_dir_all(&replay).map_err(Error::io(&replay))?;
        files::sync_dir(path).map_err(Error::File)?;
        files::sync_dir(files::parent(path)).map_err(Error::File)?;
        Ok(run)
    }

    /// Opens the directory of an existing run.
    ///
    /// # Errors
    /// If the directory does not contain a run, or is locked.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(layout::CONFIG).exists() {
            return Err(Error::Run {
                path: path.into(),
                reason: "it does not contain a run".into(),
                hint: "`rem train --run-dir DIR` starts one".into(),
            });
        }
        Self::lock(path)
    }

    /// Locks a directory with any file of a run, such as one of which only the scores remain.
    ///
    /// # Errors
    /// If it is locked.
    pub fn hold(path: &Path) -> Result<Self> {
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self> {
        let file = path.join(layout::LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .map_err(Error::io(&file))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::Run {
                path: path.into(),
                reason: LOCKED.into(),
                hint: "wait for that process, or stop it".into(),
            },
            TryLockError::Error(error) => Error::io(&file)(error),
        })?;
        Owner::this_process().write(&lock);
        Ok(Self {
            path: path.into(),
            lock,
            tensorboard: true,
        })
    }

    /// Whether an error is that of a run which another process has locked.
    pub fn is_locked(error: &Error) -> bool {
        matches!(error, Error::Run { reason, .. } if reason == LOCKED)
    }

    /// Turns TensorBoard events off or on; they are on by default. The events of earlier epochs stay.
    pub fn with_tensorboard(mut self, tensorboard: bool) -> Self {
        self.tensorboard = tensorboard;
        self
    }

    /// Whether training writes TensorBoard events.
    pub(crate) fn has_tensorboard(&self) -> bool {
        self.tensorboard
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads the config of the run in `path`.
///
/// # Errors
/// If the directory does not contain a run, or its config is invalid.
pub fn read_config(path: &Path) -> Result<Config> {
    let file = path.join(layout::CONFIG);
    if !file.exists() {
        return Err(Error::Run {
            path: path.into(),
            reason: "it does not contain a run".into(),
            hint: "pass the run directory that `rem train` prints".into(),
        });
    }
    let text = std::fs::read_to_string(&file).map_err(Error::io(&file))?;
    Ok(Config::from_toml(&text, &[]).map_err(|error| error.in_run(&file))?)
}

/// Reads the protocol of the run in `path`.
///
/// # Errors
/// If the file is missing or invalid.
pub fn read_protocol(path: &Path) -> Result<Protocol> {
    Protocol::read(path)?.ok_or_else(|| Error::Run {
        path: path.into(),
        reason: format!("`{}` is missing", layout::PROTOCOL),
        hint: "`rem train` writes it when a run starts; restore it from a backup".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_start_can_be_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let leftover = checkpoint::directory(dir.path(), 0);
        std::fs::create_dir_all(&leftover).unwrap();
        std::fs::write(leftover.join("manifest.json"), b"{}").unwrap();
        RunDir::create(dir.path()).unwrap();
        assert!(!leftover.exists());
    }

    #[test]
    fn checkpoints_without_a_config_are_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let kept = checkpoint::directory(dir.path(), 3);
        std::fs::create_dir_all(&kept).unwrap();
        let error = RunDir::create(dir.path()).unwrap_err();
        assert!(error.to_string().contains("no config.toml"), "{error}");
        assert!(kept.exists());
    }

    #[test]
    fn a_second_lock_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunDir::create(dir.path()).unwrap();
        let error = RunDir::create(dir.path()).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        assert!(RunDir::is_locked(&error));
        // The loser has not overwritten the owner.
        assert_eq!(Owner::of_run(dir.path()), Some(Owner::this_process()));
        drop(first);
        assert_eq!(Owner::of_run(dir.path()), None);
        RunDir::create(dir.path()).unwrap();
    }
}
