//! Checkpoints: the complete state of a run, one directory per epoch.
//!
//! A checkpoint is written to a temporary directory, synced, and renamed to `checkpoints/epoch-N`, so it is either
//! complete or absent. Its manifest lists the length and checksum of each file, and the chunks of the replay. The last
//! two checkpoints are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::data::replay::ChunkInfo;
use crate::data::replay::archive::Archive;
use crate::error::{Error, Result};
use crate::model::weights::{self, Arrays};
use crate::run::metrics::LogLengths;
use crate::suggest;
use rem_run::files::{sync_dir, write_atomic};
use rem_run::layout::{self, MANIFEST, TRAINING_STATE};
use rem_run::{Score, write_json};

const FORMAT: &str = "rem-checkpoint-1";
/// Why an exported agent cannot be resumed.
const WEIGHTS_ONLY: &str = "it is an exported agent, which has only weights and cannot continue";
/// Number of checkpoints that a run keeps.
pub(crate) const KEPT: usize = 2;

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the checkpoint format.
    format: String,
    /// The epoch.
    pub(crate) epoch: u32,
    /// Checksum of the run's config, to detect a checkpoint of another run.
    config_crc32: u32,
    /// Number of steps of each optimizer.
    pub(crate) optimizer_steps: BTreeMap<String, u64>,
    /// The chunks of the replay.
    pub replay: Vec<ChunkInfo>,
    /// Lengths of the logs.
    pub(crate) logs: LogLengths,
    /// The scores so far.
    pub(crate) scores: Vec<Score>,
    /// Whether the checkpoint is an exported agent: weights in bfloat16, without what only training needs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) weights_only: bool,
    /// The files of the checkpoint, set by [`Checkpoint::write`].
    #[serde(default)]
    files: BTreeMap<String, FileInfo>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Length and checksum of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FileInfo {
    bytes: u64,
    crc32: u32,
}

impl Manifest {
    pub(crate) fn new(epoch: u32, config_crc32: u32) -> Self {
        Self {
            format: FORMAT.into(),
            epoch,
            config_crc32,
            optimizer_steps: BTreeMap::new(),
            replay: Vec::new(),
            logs: LogLengths::default(),
            scores: Vec::new(),
            weights_only: false,
            files: BTreeMap::new(),
        }
    }
}

/// Which files of a checkpoint to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All files.
    All,
    /// All but the optimizer moments and the rest of the training state.
    Weights,
}

/// A checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub(crate) manifest: Manifest,
    /// Arrays by file: `tokenizer`, `tokenizer.optimizer` and so on; `training_state` for what the settings of a run need
    /// besides.
    pub(crate) arrays: BTreeMap<String, Arrays>,
    /// The snapshot of the environment.
    pub(crate) environment: Vec<u8>,
}

/// The directory of an epoch's checkpoint.
pub fn directory(run: &Path, epoch: u32) -> PathBuf {
    run.join(layout::CHECKPOINTS)
        .join(layout::epoch_name(epoch))
}

/// The epochs with a checkpoint, in order. Unfinished checkpoints are not included.
pub fn epochs(run: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(run.join(layout::CHECKPOINTS));
    let names = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name());
    let epoch = |name: std::ffi::OsString| layout::parse_epoch_name(name.to_str()?);
    let mut epochs: Vec<u32> = names.filter_map(epoch).collect();
    epochs.sort_unstable();
    epochs
}

/// `epoch 3`, `epochs 3 and 4`.
fn listed(epochs: &[u32]) -> String {
    let numbers: Vec<String> = epochs.iter().map(u32::to_string).collect();
    let plural = if epochs.len() == 1 { "" } else { "s" };
    format!("epoch{plural} {}", suggest::and(&numbers))
}

/// The time at which the checkpoint of an epoch was written. Distinguishes two checkpoints of the same epoch.
pub fn written_at(run: &Path, epoch: u32) -> Option<SystemTime> {
    let manifest = directory(run, epoch).join(MANIFEST);
    manifest.metadata().ok()?.modified().ok()
}

/// The replay of a run, as its last readable checkpoint lists it. The directory may also hold chunks of epochs that were
/// undone. Without a readable checkpoint, all chunks of the directory.
pub fn archive(run: &Path) -> Archive {
    let dir = run.join(layout::REPLAY);
    match last_manifest(run) {
        Some(manifest) => Archive::from_chunks(&dir, &manifest.replay),
        None => Archive::open(&dir),
    }
}

/// The manifest of the last checkpoint with a valid one. Does not check the other files.
pub(super) fn last_manifest(run: &Path) -> Option<Manifest> {
    let read = |epoch: &u32| {
        let bytes = std::fs::read(directory(run, *epoch).join(MANIFEST)).ok()?;
        let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
        (manifest.format == FORMAT).then_some(manifest)
    };
    epochs(run).iter().rev().find_map(read)
}

impl Checkpoint {
    /// Writes the checkpoint, then removes older ones except the last [`KEPT`].
    pub(crate) fn write(mut self, run: &Path) -> Result<()> {
        let target = directory(run, self.manifest.epoch);
        let parent = run.join(layout::CHECKPOINTS);
        let temporary = target.with_extension("tmp");
        if temporary.exists() {
            std::fs::remove_dir_all(&temporary).map_err(Error::io(&temporary))?;
        }
        std::fs::create_dir_all(&temporary).map_err(Error::io(&temporary))?;
        let serialize = match self.manifest.weights_only {
            true => weights::to_bf16_safetensors,
            false => weights::to_safetensors,
        };
        let mut contents: Vec<(String, Vec<u8>)> = self
            .arrays
            .iter()
            .map(|(name, arrays)| (format!("{name}.safetensors"), serialize(arrays)))
            .collect();
        if !self.manifest.weights_only {
            contents.push(("environment.bin".into(), self.environment));
        }
        for (name, bytes) in &contents {
            let info = FileInfo {
                bytes: bytes.len() as u64,
                crc32: crc32fast::hash(bytes),
            };
            self.manifest.files.insert(name.clone(), info);
            let path = temporary.join(name);
            write_atomic(&path, bytes).map_err(Error::File)?;
        }
        write_json(&temporary.join(MANIFEST), &self.manifest)?;
        sync_dir(&temporary).map_err(Error::File)?;
        std::fs::rename(&temporary, &target).map_err(Error::io(&target))?;
        sync_dir(&parent).map_err(Error::File)?;
        prune(run, self.manifest.epoch)
    }

    /// Reads and verifies the checkpoint of an epoch, by default the last one. It must name the checksum of one of the
    /// configs that the run had.
    pub(crate) fn read(
        run: &Path,
        epoch: Option<u32>,
        configs: &[u32],
        part: Part,
    ) -> Result<Self> {
        let all = epochs(run);
        let Some(epoch) = epoch.or(all.last().copied()) else {
            return Err(Error::Checkpoint {
                path: run.join(layout::CHECKPOINTS),
                reason: "no checkpoint found".into(),
                hint: Some("start a new run".into()),
            });
        };
        let path = directory(run, epoch);
        if !path.exists() {
            return Err(Error::Checkpoint {
                path,
                reason: format!("no checkpoint of epoch {epoch}"),
                hint: Some(format!("checkpoints exist for {}", listed(&all))),
            });
        }
        read_checked(&path, configs, part).map_err(|reason| {
            if reason == WEIGHTS_ONLY {
                let hint = "use it with `rem play`, `rem watch` and `rem eval`, or start a new run";
                return Error::Checkpoint {
                    path: path.clone(),
                    reason,
                    hint: Some(hint.into()),
                };
            }
            let good = all
                .iter()
                .rev()
                .filter(|e| **e < epoch)
                .find(|e| read_checked(&directory(run, **e), configs, part).is_ok());
            let hint = match good {
                Some(e) => format!(
                    "the last valid checkpoint is of epoch {e}: `rem train --resume {} --from-epoch {e}`",
                    run.display()
                ),
                None => "this run has no older valid checkpoint".into(),
            };
            Error::Checkpoint {
                path,
                reason,
                hint: Some(hint),
            }
        })
    }
}

fn read_checked(
    path: &Path,
    configs: &[u32],
    part: Part,
) -> std::result::Result<Checkpoint, String> {
    let read = |name: &str| std::fs::read(path.join(name)).map_err(|e| format!("{name}: {e}"));
    let manifest = read(MANIFEST)?;
    let manifest: Manifest =
        serde_json::from_slice(&manifest).map_err(|e| format!("{MANIFEST} is damaged: {e}"))?;
    if manifest.format != FORMAT {
        return Err(format!(
            "unsupported format `{}`, expected `{FORMAT}`",
            manifest.format
        ));
    }
    if manifest.weights_only && part == Part::All {
        return Err(WEIGHTS_ONLY.into());
    }
    if !configs.contains(&manifest.config_crc32) {
        return Err("it belongs to a run with another config".into());
    }
    let (mut arrays, mut environment) = (BTreeMap::new(), None);
    let training = |name: &str| {
        name.contains(".optimizer.") || name.strip_suffix(".safetensors") == Some(TRAINING_STATE)
    };
    let wanted = |name: &str| part == Part::All || !training(name);
    for (name, info) in manifest.files.iter().filter(|(name, _)| wanted(name)) {
        let bytes = read(name)?;
        if bytes.len() as u64 != info.bytes {
            return Err(format!(
                "{name} is damaged: {} bytes instead of {}",
                bytes.len(),
                info.bytes
            ));
        }
        if crc32fast::hash(&bytes) != info.crc32 {
            return Err(format!("{name} is damaged: wrong checksum"));
        }
        match name.strip_suffix(".safetensors") {
            Some(component) => {
                let read = weights::from_safetensors(&bytes).map_err(|e| format!("{name}: {e}"))?;
                arrays.insert(component.to_string(), read);
            }
            None => environment = Some(bytes),
        }
    }
    let environment = match environment {
        None if manifest.weights_only => Vec::new(),
        environment => environment.ok_or("environment.bin is missing")?,
    };
    Ok(Checkpoint {
        manifest,
        arrays,
        environment,
    })
}

/// Removes the checkpoints after `epoch`, which no longer match the logs of a run that resumes from there, and leftovers
/// of interrupted writes and removals.
pub(crate) fn remove_after(run: &Path, epoch: u32) -> Result<()> {
    for e in epochs(run).into_iter().filter(|e| *e > epoch) {
        remove(&directory(run, e))?;
    }
    prune(run, epoch)
}

/// Renames a checkpoint before it removes it, so that a partly removed one is never read.
fn remove(checkpoint: &Path) -> Result<()> {
    let temporary = checkpoint.with_extension("tmp");
    std::fs::rename(checkpoint, &temporary).map_err(Error::io(checkpoint))?;
    std::fs::remove_dir_all(&temporary).map_err(Error::io(&temporary))
}

/// Removes all but the last [`KEPT`] checkpoints up to `epoch`, and leftovers of interrupted writes and removals.
fn prune(run: &Path, epoch: u32) -> Result<()> {
    let all = epochs(run);
    for e in all.iter().filter(|e| **e <= epoch).rev().skip(KEPT) {
        remove(&directory(run, *e))?;
    }
    let parent = run.join(layout::CHECKPOINTS);
    for entry in std::fs::read_dir(&parent)
        .map_err(Error::io(&parent))?
        .flatten()
    {
        if entry.path().extension().is_some_and(|e| e == "tmp") {
            std::fs::remove_dir_all(entry.path()).map_err(Error::io(&entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
