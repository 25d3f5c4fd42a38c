//! Checkpoints: everything that a run needs to go on exactly, one directory per epoch.
//!
//! A checkpoint is written beside, synced, and then renamed into place, so `checkpoints/epoch-N` is
//! either whole or not there. Its manifest lists every file with length and checksum; frames lie in the
//! append-only chunks of `replay/`, which the manifest lists too. The last two checkpoints are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{sync_dir, write_atomic};
use crate::metrics::LogLengths;
use crate::replay::ChunkInfo;
use crate::replay::archive::Archive;
use crate::run::Score;
use crate::weights::{self, Arrays};

const FORMAT: &str = "rem-checkpoint-1";
pub const KEPT: usize = 2;
const MANIFEST: &str = "manifest.json";

/// What a checkpoint holds besides arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub epoch: u32,
    /// The run's config, to tell a foreign checkpoint.
    pub config_crc32: u32,
    /// Steps that each optimiser has taken.
    pub optimiser_steps: BTreeMap<String, u64>,
    pub replay: Vec<ChunkInfo>,
    pub logs: LogLengths,
    pub scores: Vec<Score>,
    /// Filled in when the checkpoint is written.
    #[serde(default)]
    pub files: BTreeMap<String, FileInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileInfo {
    pub bytes: u64,
    pub crc32: u32,
}

impl Manifest {
    pub fn new(epoch: u32, config_crc32: u32) -> Self {
        Self {
            format: FORMAT.into(),
            epoch,
            config_crc32,
            optimiser_steps: BTreeMap::new(),
            replay: Vec::new(),
            logs: LogLengths::default(),
            scores: Vec::new(),
            files: BTreeMap::new(),
        }
    }
}

/// How much of a checkpoint is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// Without the optimisers' moments: enough to play.
    Weights,
}

/// A checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub manifest: Manifest,
    /// `tokenizer`, `tokenizer.optimiser` and so on.
    pub arrays: BTreeMap<String, Arrays>,
    /// The environment's snapshot.
    pub environment: Vec<u8>,
}

/// Where the checkpoint of an epoch lies.
pub fn directory(run: &Path, epoch: u32) -> PathBuf {
    run.join("checkpoints").join(format!("epoch-{epoch:06}"))
}

/// Epochs that have a checkpoint, in order; unfinished ones are not among them.
pub fn epochs(run: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(run.join("checkpoints"));
    let names = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name());
    let epoch = |name: std::ffi::OsString| name.to_str()?.strip_prefix("epoch-")?.parse().ok();
    let mut epochs: Vec<u32> = names.filter_map(epoch).collect();
    epochs.sort_unstable();
    epochs
}

/// When the checkpoint of an epoch was written: one of the same epoch that was written at another time is another one.
pub fn written(run: &Path, epoch: u32) -> Option<SystemTime> {
    let manifest = directory(run, epoch).join(MANIFEST);
    manifest.metadata().ok()?.modified().ok()
}

/// The replay of a run as its last checkpoint lists it: chunks of epochs that were taken back lie beside them. If no
/// checkpoint can be read, what hangs together in the directory.
pub fn archive(run: &Path) -> Archive {
    let dir = run.join("replay");
    match last_manifest(run) {
        Some(manifest) => Archive::of_chunks(&dir, &manifest.replay),
        None => Archive::open(&dir),
    }
}

/// The manifest of the last checkpoint that has one; its files are not looked at.
fn last_manifest(run: &Path) -> Option<Manifest> {
    let read = |epoch: &u32| {
        let bytes = std::fs::read(directory(run, *epoch).join(MANIFEST)).ok()?;
        let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
        (manifest.format == FORMAT).then_some(manifest)
    };
    epochs(run).iter().rev().find_map(read)
}

impl Checkpoint {
    /// Writes the checkpoint of its epoch, then drops those that are no longer kept.
    pub fn write(mut self, run: &Path) -> Result<()> {
        let target = directory(run, self.manifest.epoch);
        let parent = run.join("checkpoints");
        let beside = target.with_extension("tmp");
        if beside.exists() {
            std::fs::remove_dir_all(&beside).map_err(Error::io(&beside))?;
        }
        std::fs::create_dir_all(&beside).map_err(Error::io(&beside))?;
        let mut contents: Vec<(String, Vec<u8>)> = self
            .arrays
            .iter()
            .map(|(name, arrays)| {
                (
                    format!("{name}.safetensors"),
                    weights::to_safetensors(arrays),
                )
            })
            .collect();
        contents.push(("environment.bin".into(), self.environment));
        for (name, bytes) in &contents {
            let info = FileInfo {
                bytes: bytes.len() as u64,
                crc32: crc32fast::hash(bytes),
            };
            self.manifest.files.insert(name.clone(), info);
            let path = beside.join(name);
            write_atomic(&path, bytes).map_err(Error::File)?;
        }
        crate::run::write_json(&beside.join(MANIFEST), &self.manifest)?;
        sync_dir(&beside).map_err(Error::File)?;
        std::fs::rename(&beside, &target).map_err(Error::io(&target))?;
        sync_dir(&parent).map_err(Error::File)?;
        prune(run, self.manifest.epoch)
    }

    /// Reads and checks the checkpoint of an epoch, or of the last one.
    pub fn read(run: &Path, epoch: Option<u32>, config_crc32: u32, part: Part) -> Result<Self> {
        let all = epochs(run);
        let Some(epoch) = epoch.or(all.last().copied()) else {
            return Err(Error::Checkpoint {
                path: run.join("checkpoints"),
                reason: "there is none".into(),
                hint: Some("start the run anew".into()),
            });
        };
        let path = directory(run, epoch);
        if !path.exists() {
            return Err(Error::Checkpoint {
                path,
                reason: format!("there is no checkpoint of epoch {epoch}"),
                hint: Some(format!("there are those of epochs {all:?}")),
            });
        }
        read_checked(&path, config_crc32, part).map_err(|reason| {
            let good = all
                .iter()
                .rev()
                .filter(|e| **e < epoch)
                .find(|e| read_checked(&directory(run, **e), config_crc32, part).is_ok());
            let hint = match good {
                Some(e) => format!(
                    "the previous good one is epoch {e}: `rem train --resume {} --from-epoch {e}`",
                    run.display()
                ),
                None => "there is no older good one in this run".into(),
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
    config_crc32: u32,
    part: Part,
) -> std::result::Result<Checkpoint, String> {
    let read = |name: &str| std::fs::read(path.join(name)).map_err(|e| format!("{name}: {e}"));
    let manifest = read(MANIFEST)?;
    let manifest: Manifest =
        serde_json::from_slice(&manifest).map_err(|e| format!("{MANIFEST} is damaged: {e}"))?;
    if manifest.format != FORMAT {
        return Err(format!(
            "its format is `{}`, this program reads `{FORMAT}`",
            manifest.format
        ));
    }
    if manifest.config_crc32 != config_crc32 {
        return Err("it is of a run with another config".into());
    }
    let (mut arrays, mut environment) = (BTreeMap::new(), None);
    let wanted = |name: &str| part == Part::Whole || !name.contains(".optimiser.");
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
            return Err(format!("{name} is damaged: its checksum is wrong"));
        }
        match name.strip_suffix(".safetensors") {
            Some(component) => {
                let read = weights::from_safetensors(&bytes).map_err(|e| format!("{name}: {e}"))?;
                arrays.insert(component.to_string(), read);
            }
            None => environment = Some(bytes),
        }
    }
    let environment = environment.ok_or("the environment is missing")?;
    Ok(Checkpoint {
        manifest,
        arrays,
        environment,
    })
}

/// Drops what a run that goes on from `epoch` leaves: later checkpoints, which the logs will no longer match,
/// and what an interrupted write or drop left behind.
pub fn drop_others(run: &Path, epoch: u32) -> Result<()> {
    for e in epochs(run).into_iter().filter(|e| *e > epoch) {
        remove(&directory(run, e))?;
    }
    prune(run, epoch)
}

/// Takes a checkpoint out of the way first, so that half of one is never taken for one.
fn remove(checkpoint: &Path) -> Result<()> {
    let aside = checkpoint.with_extension("tmp");
    std::fs::rename(checkpoint, &aside).map_err(Error::io(checkpoint))?;
    std::fs::remove_dir_all(&aside).map_err(Error::io(&aside))
}

/// Drops all but the last checkpoints up to `epoch`, and what an interrupted write left behind.
fn prune(run: &Path, epoch: u32) -> Result<()> {
    let all = epochs(run);
    for e in all.iter().filter(|e| **e <= epoch).rev().skip(KEPT) {
        remove(&directory(run, *e))?;
    }
    let parent = run.join("checkpoints");
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
mod tests {
    use super::*;
    use crate::env::Outcome;
    use crate::replay::Replay;
    use crate::weights::Array;

    fn checkpoint(epoch: u32) -> Checkpoint {
        let array = Array {
            shape: vec![2],
            data: vec![1.0, epoch as f32],
        };
        let arrays = Arrays::from([("a".to_string(), array)]);
        Checkpoint {
            manifest: Manifest::new(epoch, 7),
            arrays: BTreeMap::from([("tokenizer".to_string(), arrays)]),
            environment: b"state".to_vec(),
        }
    }

    fn written(epochs: &[u32]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for e in epochs {
            checkpoint(*e).write(dir.path()).unwrap();
        }
        dir
    }

    #[test]
    fn round_trip_and_only_the_last_two_are_kept() {
        let dir = written(&[0, 1, 2]);
        assert_eq!(epochs(dir.path()), [1, 2]);
        let read = Checkpoint::read(dir.path(), None, 7, Part::Whole).unwrap();
        assert_eq!(read.arrays, checkpoint(2).arrays);
        assert_eq!(read.environment, b"state");
    }

    #[test]
    fn damage_is_refused_with_its_reason_and_the_good_one_is_named() {
        let spoil = |change: &dyn Fn(&Path)| {
            let dir = written(&[3, 4]);
            change(&directory(dir.path(), 4));
            let error = Checkpoint::read(dir.path(), None, 7, Part::Whole).unwrap_err();
            assert!(
                error.hint().unwrap().contains("--from-epoch 3"),
                "{:?}",
                error.hint()
            );
            assert!(Checkpoint::read(dir.path(), Some(3), 7, Part::Whole).is_ok());
            error.to_string()
        };
        let file = "tokenizer.safetensors";
        let cut = spoil(&|p| std::fs::write(p.join(file), b"short").unwrap());
        assert!(cut.contains("5 bytes instead of"), "{cut}");
        let flipped = spoil(&|p| {
            let mut bytes = std::fs::read(p.join(file)).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            std::fs::write(p.join(file), bytes).unwrap();
        });
        assert!(flipped.contains("checksum"), "{flipped}");
        let gone = spoil(&|p| std::fs::remove_file(p.join(file)).unwrap());
        assert!(gone.contains(file), "{gone}");
        let broken = spoil(&|p| std::fs::write(p.join(MANIFEST), b"{").unwrap());
        assert!(broken.contains("manifest.json is damaged"), "{broken}");
    }

    #[test]
    fn chunks_of_epochs_that_were_taken_back_are_not_of_the_run() {
        let run = tempfile::tempdir().unwrap();
        let chunks = run.path().join("replay");
        let mut replay = Replay::new(3, 2);
        let mut grow = |name: &str| {
            let before = replay.steps();
            replay.push(&[0; 3], 0, 0.0, Outcome::Ended);
            replay.write_chunk(&chunks, before, name).unwrap().unwrap()
        };
        let first = grow("epoch-000001.chunk");
        grow("epoch-000002.chunk");
        assert_eq!(archive(run.path()).steps(), 2);
        let mut of_first = checkpoint(1);
        of_first.manifest.replay.push(first);
        of_first.write(run.path()).unwrap();
        assert_eq!(archive(run.path()).steps(), 1);
        // A later checkpoint that cannot be read says nothing.
        std::fs::create_dir_all(directory(run.path(), 2)).unwrap();
        assert_eq!(archive(run.path()).steps(), 1);
    }

    #[test]
    fn a_foreign_checkpoint_is_refused() {
        let dir = written(&[1]);
        let error = Checkpoint::read(dir.path(), None, 8, Part::Whole)
            .unwrap_err()
            .to_string();
        assert!(error.contains("another config"), "{error}");
    }

    #[test]
    fn what_an_interrupted_write_left_is_ignored_and_cleared() {
        let dir = written(&[1]);
        let left = directory(dir.path(), 2).with_extension("tmp");
        std::fs::create_dir_all(&left).unwrap();
        assert_eq!(epochs(dir.path()), [1]);
        checkpoint(2).write(dir.path()).unwrap();
        assert!(!left.exists());
        assert_eq!(epochs(dir.path()), [1, 2]);
    }
}
