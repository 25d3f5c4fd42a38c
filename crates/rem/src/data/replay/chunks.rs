//! The replay on disk: one immutable chunk file per epoch of collection, so that a checkpoint does not rewrite old
//! experience. A checkpoint lists its chunks ([`ChunkInfo`]). An episode may span several chunks.
//!
//! A chunk of `n` steps, all numbers little-endian:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `REMREPL1` |
//! | 8 | `frame_bytes`, u64 |
//! | 8 | position of the first step in the replay, u64 |
//! | 8 | `n`, u64 |
//! | n | actions, u8 |
//! | 4 n | rewards, f32 |
//! | n | outcomes, u8: 0 running, 1 terminated, 2 truncated |
//! | n * `frame_bytes` | frames |
//!
//! The steps of such a chunk continue each other. A chunk with steps of several environments, or with a new episode after an
//! open one, begins with `REMREPL2`, and has after `n`:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | number of runs of consecutive steps, u64 |
//! | 24 per run | its stream, whether it starts a new episode (0 or 1), and its steps, u64 each |

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Replay;
use super::error::{ReplayError, io_error};
use super::header::{Header, header_bytes, known_magic};
use crate::env::Outcome;

/// A chunk file, as a checkpoint lists it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ChunkInfo {
    /// File name within the replay directory.
    pub file: String,
    /// Number of steps.
    pub steps: u64,
    /// Length of the file.
    pub bytes: u64,
    /// CRC-32 of the file.
    pub crc32: u32,
}

impl Replay {
    /// Writes the steps from position `from_step` on to `<dir>/<name>`, atomically and synced to disk; `None` if there
    /// are no such steps.
    ///
    /// An existing file of that name is replaced: no checkpoint lists it, because the run was interrupted before one
    /// was written.
    pub(crate) fn write_chunk(
        &self,
        dir: &Path,
        from_step: usize,
        name: &str,
    ) -> Result<Option<ChunkInfo>, ReplayError> {
        assert!(
            from_step <= self.steps(),
            "step {from_step} of {}",
            self.steps()
        );
        if !is_plain_name(name) {
            return Err(ReplayError::Name {
                file: name.to_owned(),
            });
        }
        if from_step == self.steps() {
            return Ok(None);
        }
        fs::create_dir_all(dir).map_err(io_error("create the directory", dir))?;
        let path = dir.join(name);
        let temporary = dir.join(format!("{name}.tmp"));
        let written = self
            .write_steps(&temporary, from_step)
            .map_err(io_error("write", &temporary));
        let renamed = written.and_then(|sum| {
            fs::rename(&temporary, &path).map_err(io_error("rename into place", &path))?;
            Ok(sum)
        });
        if renamed.is_err() {
            // Report the first error; a leftover file does no harm.
            let _ = fs::remove_file(&temporary);
        }
        let (bytes, crc32) = renamed?;
        rem_run::files::sync_dir(dir).map_err(io_error("sync the directory", dir))?;
        let steps = (self.steps() - from_step) as u64;
        Ok(Some(ChunkInfo {
            file: name.to_owned(),
            steps,
            bytes,
            crc32,
        }))
    }

    /// Writes and syncs a chunk file; returns its length and checksum.
    fn write_steps(&self, path: &Path, from_step: usize) -> io::Result<(u64, u32)> {
        let mut out = CrcWriter::new(BufWriter::with_capacity(1 << 18, File::create(path)?));
        let header = Header {
            frame_bytes: self.frames.frame_bytes() as u64,
            first_step: from_step as u64,
            steps: (self.steps() - from_step) as u64,
            runs: self.episodes.runs_since(from_step, self.steps()),
        };
        out.write_all(&header.to_bytes())?;
        out.write_all(&self.actions[from_step..])?;
        for reward in &self.rewards[from_step..] {
            out.write_all(&reward.to_le_bytes())?;
        }
        for &outcome in &self.outcomes[from_step..] {
            out.write_all(&[outcome_to_byte(outcome)])?;
        }
        for position in from_step..self.steps() {
            out.write_all(self.frames.get(position))?;
        }
        out.inner.into_inner()?.sync_all()?;
        Ok((out.bytes, out.crc.finalize()))
    }

    /// Loads a replay from its chunks, with an empty token cache. Each chunk is verified before its steps are used.
    ///
    /// # Errors
    /// If a chunk is missing, damaged, or not the next one.
    pub fn load(
        dir: &Path,
        chunks: &[ChunkInfo],
        frame_bytes: usize,
        tokens_per_obs: usize,
    ) -> Result<Replay, ReplayError> {
        let mut replay = Replay::new(frame_bytes, tokens_per_obs);
        for chunk in chunks {
            if !is_plain_name(&chunk.file) {
                return Err(ReplayError::Name {
                    file: chunk.file.clone(),
                });
            }
            let path = dir.join(&chunk.file);
            let mut file = File::open(&path).map_err(|source| match source.kind() {
                ErrorKind::NotFound => ReplayError::Missing { path: path.clone() },
                _ => io_error("open", &path)(source),
            })?;
            let header = verify(&mut file, &path, chunk, &replay)?;
            replay.push_chunk(file, &path, &header)?;
        }
        Ok(replay)
    }

    /// Pushes the steps of a verified chunk. Buffers one frame at a time.
    fn push_chunk(&mut self, file: File, path: &Path, header: &Header) -> Result<(), ReplayError> {
        let steps = header.steps as usize;
        let mut input = BufReader::with_capacity(1 << 18, file);
        input.rewind().map_err(io_error("read", path))?;
        let mut read = |bytes: &mut [u8]| input.read_exact(bytes).map_err(io_error("read", path));
        let impossible = |what, step| ReplayError::Value {
            path: path.to_owned(),
            what,
            step,
        };

        let mut actions = vec![0; steps];
        let mut rewards = vec![0; 4 * steps];
        let mut outcomes = vec![0; steps];
        read(&mut vec![0; header.bytes() as usize])?;
        read(&mut actions)?;
        read(&mut rewards)?;
        read(&mut outcomes)?;

        let mut runs = header.runs.iter().peekable();
        let (mut stream, first) = (0, self.steps());
        let mut frame = vec![0; self.frames.frame_bytes()];
        for (step, reward) in rewards.as_chunks::<4>().0.iter().enumerate() {
            let reward = f32::from_le_bytes(*reward);
            if !reward.is_finite() {
                return Err(impossible("reward", step));
            }
            let outcome =
                outcome_from_byte(outcomes[step]).ok_or_else(|| impossible("outcome", step))?;
            read(&mut frame)?;
            if let Some((run, _)) = runs.next_if(|(run, _)| run.start as usize == first + step) {
                stream = run.stream;
                if run.new_episode {
                    self.abandon_episode(stream);
                }
            }
            self.push_to(stream, &frame, actions[step], reward, outcome);
        }
        Ok(())
    }
}

/// Checks that the file is the chunk that `chunk` describes, and the next one of this replay.
fn verify(
    file: &mut File,
    path: &Path,
    chunk: &ChunkInfo,
    replay: &Replay,
) -> Result<Header, ReplayError> {
    let path = || path.to_owned();
    let frame_bytes = replay.frames.frame_bytes() as u64;
    let found = file.metadata().map_err(io_error("read", &path()))?.len();
    let bytes = header_bytes(file).map_err(io_error("read", &path()))?;

    // The kind of file comes first: the length of another kind of file is irrelevant.
    if !known_magic(&bytes) {
        return Err(ReplayError::Foreign { path: path() });
    }
    let header = Header::parse(&bytes).filter(|_| found == chunk.bytes);
    let Some(header) = header else {
        return Err(ReplayError::Length {
            path: path(),
            found,
            expected: chunk.bytes,
        });
    };
    if header.frame_bytes != frame_bytes {
        return Err(ReplayError::FrameSize {
            path: path(),
            found: header.frame_bytes,
            expected: frame_bytes,
        });
    }
    if header.first_step != replay.steps() as u64 {
        return Err(ReplayError::Order {
            path: path(),
            found: header.first_step,
            expected: replay.steps() as u64,
        });
    }
    if header.steps != chunk.steps {
        return Err(ReplayError::Steps {
            path: path(),
            found: header.steps,
            expected: chunk.steps,
        });
    }
    // Before anything is allocated: the number of steps must fit the length of the file.
    let expected = header.file_bytes();
    if found != expected {
        return Err(ReplayError::Length {
            path: path(),
            found,
            expected,
        });
    }

    let mut sum = CrcWriter::new(io::sink());
    sum.write_all(&bytes)
        .and_then(|()| io::copy(file, &mut sum))
        .map_err(io_error("read", &path()))?;
    match sum.crc.finalize() {
        crc32 if crc32 == chunk.crc32 => Ok(header),
        crc32 => Err(ReplayError::Checksum {
            path: path(),
            found: crc32,
            expected: chunk.crc32,
        }),
    }
}

/// Computes the length and the CRC-32 of what is written through it.
struct CrcWriter<W> {
    inner: W,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl<W> CrcWriter<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            crc: crc32fast::Hasher::new(),
            bytes: 0,
        }
    }
}

impl<W: Write> Write for CrcWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.crc.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub(crate) fn outcome_to_byte(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Running => 0,
        Outcome::Terminated => 1,
        Outcome::Truncated => 2,
    }
}

pub(crate) fn outcome_from_byte(byte: u8) -> Option<Outcome> {
    [Outcome::Running, Outcome::Terminated, Outcome::Truncated]
        .into_iter()
        .find(|&outcome| outcome_to_byte(outcome) == byte)
}

pub(super) fn is_plain_name(name: &str) -> bool {
    Path::new(name)
        .file_name()
        .is_some_and(|file_name| file_name == name)
}

#[cfg(test)]
mod tests;
