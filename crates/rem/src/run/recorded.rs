//! The episodes of a data set or a run.

use std::path::Path;

use rem_run::Protocol;

use super::checkpoint;
use crate::data::dataset::{DatasetError, DatasetInfo, FORMAT};

/// The episodes in a directory: a data set, or a run, whose last checkpoint lists them.
///
/// # Errors
/// If the directory is neither, or has no episodes.
pub fn recorded_episodes(dir: &Path) -> Result<DatasetInfo, DatasetError> {
    if let Some(info) = DatasetInfo::read(dir)? {
        return Ok(info);
    }
    let absent = || DatasetError::Absent { path: dir.into() };
    let protocol = Protocol::read(dir)?.ok_or_else(absent)?;
    let manifest = checkpoint::last_manifest(dir).ok_or_else(absent)?;
    let archive = checkpoint::archive(dir);
    let info = DatasetInfo {
        format: FORMAT,
        game: protocol.game,
        actions: protocol.actions,
        frame_size: protocol.frame_size,
        episodes: archive.episodes(),
        steps: archive.steps(),
        chunks: manifest.replay,
    };
    info.checked(dir)
}
