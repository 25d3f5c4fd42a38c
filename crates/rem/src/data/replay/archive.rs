//! Read access to a replay on disk without loading its frames.
//!
//! Actions, rewards and outcomes are read at once, frames on request. The archive takes no lock: chunks are renamed into
//! place when they are complete, and never change.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::StepId;
use super::chunks::{ChunkInfo, is_plain_name, outcome_from_byte};
use super::episodes::Episodes;
use super::error::{ReplayError, io_error};
use super::header::{Header, header_bytes};
use crate::env::Outcome;

/// The steps of consecutive chunks, without their frames.
#[derive(Default)]
pub struct Archive {
    chunks: Vec<Chunk>,
    actions: Vec<u8>,
    rewards: Vec<f32>,
    outcomes: Vec<Outcome>,
    split: Episodes,
    /// Why the remaining chunks were left out, if they were.
    pub problem: Option<String>,
}

struct Chunk {
    path: PathBuf,
    header: Header,
    epoch: u32,
}

/// Summary of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeInfo {
    /// Number of the episode, from 0.
    pub number: usize,
    /// The epoch in which it began.
    pub epoch: u32,
    /// Number of steps.
    pub steps: usize,
    /// The return, undiscounted.
    pub total_reward: f32,
    /// The outcome of the last step; [`Outcome::Running`] if the episode is open.
    pub outcome: Outcome,
}

/// Consecutive steps of an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeSteps {
    /// RGB frames of `size * size * 3` bytes.
    pub frames: Vec<Vec<u8>>,
    /// The action taken in each frame.
    pub actions: Vec<u8>,
    /// The reward of each action.
    pub rewards: Vec<f32>,
    /// The outcome of each action.
    pub outcomes: Vec<Outcome>,
}

impl Archive {
    /// Opens these chunks of a replay directory. Stops at the first one that is invalid or does not continue the
    /// previous one.
    pub(crate) fn from_chunks(dir: &Path, chunks: &[ChunkInfo]) -> Self {
        let files = chunks.iter().map(|chunk| &chunk.file);
        let plain = files.filter(|file| is_plain_name(file));
        Self::from_files(plain.map(|file| dir.join(file)))
    }

    /// Opens all chunks of a replay directory, like [`Archive::from_chunks`]. A missing directory is empty.
    pub(crate) fn open(dir: &Path) -> Self {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        Self::from_files(entries.map(|entry| entry.path()))
    }

    fn from_files(files: impl Iterator<Item = PathBuf>) -> Self {
        let mut chunks: Vec<(u32, PathBuf)> = files
            .filter_map(|path| Some((epoch_of(&path)?, path)))
            .collect();
        chunks.sort();
        let mut archive = Self::default();
        for (epoch, path) in chunks {
            if let Err(error) = archive.add(epoch, path) {
                archive.problem = Some(error.to_string());
                break;
            }
        }
        archive
    }

    /// Adds the steps of a chunk. After an error, none of them was added.
    fn add(&mut self, epoch: u32, path: PathBuf) -> Result<(), ReplayError> {
        if path.is_symlink() {
            return Err(ReplayError::Link { path });
        }
        let mut file = File::open(&path).map_err(io_error("open", &path))?;
        let found = file.metadata().map_err(io_error("read", &path))?.len();
        let bytes = header_bytes(&mut file).map_err(io_error("read", &path))?;
        let header = Header::parse(&bytes);
        let header = header.ok_or_else(|| ReplayError::Foreign { path: path.clone() })?;
        let expected = header.file_bytes();
        if found != expected {
            return Err(ReplayError::Length {
                path,
                found,
                expected,
            });
        }
        if header.first_step != self.steps() as u64 {
            return Err(ReplayError::Order {
                path,
                found: header.first_step,
                expected: self.steps() as u64,
            });
        }
        let frame_bytes = self.chunks.first().map(|chunk| chunk.header.frame_bytes);
        let expected = frame_bytes.unwrap_or(header.frame_bytes);
        if header.frame_bytes != expected {
            return Err(ReplayError::FrameSize {
                path,
                found: header.frame_bytes,
                expected,
            });
        }
        let steps = header.steps as usize;
        let mut arrays = vec![0; steps * super::STEP_BYTES_BESIDES_FRAME as usize];
        file.read_exact(&mut arrays)
            .map_err(io_error("read", &path))?;
        let (actions, rest) = arrays.split_at(steps);
        let (rewards, outcomes) = rest.split_at(4 * steps);
        let outcome = |(step, byte): (usize, &u8)| {
            outcome_from_byte(*byte).ok_or_else(|| ReplayError::Value {
                path: path.clone(),
                what: "outcome",
                step,
            })
        };
        let outcomes = outcomes.iter().enumerate().map(outcome);
        let outcomes: Vec<Outcome> = outcomes.collect::<Result<_, _>>()?;
        let first = self.steps();
        for (run, steps) in &header.runs {
            if run.new_episode {
                self.split.abandon(run.stream);
            }
            let start = run.start as usize;
            for position in start..start + *steps as usize {
                let outcome = outcomes[position - first];
                self.split.push(run.stream, position as u32, outcome);
            }
        }
        self.outcomes.extend(outcomes);
        let rewards = rewards.as_chunks::<4>().0.iter();
        self.rewards
            .extend(rewards.map(|reward| f32::from_le_bytes(*reward)));
        self.actions.extend(actions);
        self.chunks.push(Chunk {
            path,
            header,
            epoch,
        });
        Ok(())
    }

    /// Number of steps in all episodes.
    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    /// Number of episodes, including the open one.
    pub fn episodes(&self) -> usize {
        self.split.count()
    }

    /// Height and width of the frames in pixels; `None` if there are no frames or they are not square.
    pub fn frame_size(&self) -> Option<usize> {
        let bytes = self.chunks.first()?.header.frame_bytes as usize;
        let size = (bytes / 3).isqrt();
        (size > 0 && size * size * 3 == bytes).then_some(size)
    }

    /// The positions of an episode's steps; `None` if there is no such episode.
    fn positions(&self, number: usize) -> Option<Vec<usize>> {
        let episode = u32::try_from(number).ok()?;
        let steps = (number < self.episodes()).then(|| self.split.steps(episode))?;
        let position = |index| self.split.position(StepId { episode, index });
        Some((0..steps as u32).map(position).collect())
    }

    /// The summary of an episode; `None` if there is no such episode.
    pub fn info(&self, number: usize) -> Option<EpisodeInfo> {
        let positions = self.positions(number)?;
        let (first, last) = (*positions.first()?, *positions.last()?);
        Some(EpisodeInfo {
            number,
            epoch: self.chunk_of(first).epoch,
            steps: positions.len(),
            total_reward: positions.iter().map(|step| self.rewards[*step]).sum(),
            outcome: match self.outcomes[last] {
                Outcome::Running if !self.split.is_open(number as u32) => Outcome::Truncated,
                outcome => outcome,
            },
        })
    }

    /// Summaries of all episodes, in order.
    pub fn list(&self) -> impl DoubleEndedIterator<Item = EpisodeInfo> {
        (0..self.episodes()).filter_map(|number| self.info(number))
    }

    /// Reads a range of steps of an episode, clamped to its length; `None` if there is no such episode.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn read(
        &self,
        number: usize,
        steps: Range<usize>,
    ) -> Result<Option<EpisodeSteps>, ReplayError> {
        let Some(all) = self.positions(number) else {
            return Ok(None);
        };
        let clamp = |step: usize| step.min(all.len());
        let range = &all[clamp(steps.start)..clamp(steps.end.max(steps.start))];
        let frames = range.iter().map(|step| self.frame(*step));
        Ok(Some(EpisodeSteps {
            frames: frames.collect::<Result<_, _>>()?,
            actions: range.iter().map(|step| self.actions[*step]).collect(),
            rewards: range.iter().map(|step| self.rewards[*step]).collect(),
            outcomes: range.iter().map(|step| self.outcomes[*step]).collect(),
        }))
    }

    /// Reads at most `count` frames, evenly spaced over the last `steps` steps.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn latest_frames(&self, steps: usize, count: usize) -> Result<Vec<Vec<u8>>, ReplayError> {
        let steps = steps.min(self.steps());
        let first = self.steps() - steps;
        let count = count.min(steps);
        let positions = (0..count).map(|i| first + i * steps / count);
        positions.map(|position| self.frame(position)).collect()
    }

    /// Reads the frame of the step at a position of the replay.
    fn frame(&self, step: usize) -> Result<Vec<u8>, ReplayError> {
        let Chunk { path, header, .. } = self.chunk_of(step);
        let within = step as u64 - header.first_step;
        let offset = header.frames_at() + within * header.frame_bytes;
        let mut frame = vec![0; header.frame_bytes as usize];
        let mut file = File::open(path).map_err(io_error("open", path))?;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(&mut frame))
            .map_err(io_error("read", path))?;
        Ok(frame)
    }

    fn chunk_of(&self, step: usize) -> &Chunk {
        let after = (self.chunks).partition_point(|c| c.header.first_step <= step as u64);
        &self.chunks[after - 1]
    }
}

/// The epoch of a file in the replay directory.
fn epoch_of(path: &Path) -> Option<u32> {
    rem_run::layout::parse_replay_name(path.file_name()?.to_str()?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::replay_of;
    use super::*;

    /// Episodes of these lengths, the last one open, in two chunks. The second begins at step `cut`.
    fn written(lengths: &[usize], cut: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let whole = replay_of(lengths);
        let mut first = super::super::Replay::new(3, 2);
        let ids = (0..cut as u32).map(|position| whole.id(position));
        for id in ids {
            first.push(
                whole.frame(id),
                whole.action(id),
                whole.reward(id),
                whole.outcome(id),
            );
        }
        first
            .write_chunk(dir.path(), 0, "epoch-000001.chunk")
            .unwrap();
        whole
            .write_chunk(dir.path(), cut, "epoch-000002.chunk")
            .unwrap();
        dir
    }

    #[test]
    fn episodes_are_read_across_chunks() {
        let dir = written(&[2, 5, 3], 4);
        let archive = Archive::open(dir.path());
        assert_eq!(archive.problem, None);
        let lengths: Vec<_> = archive.list().map(|e| (e.epoch, e.steps)).collect();
        assert_eq!(lengths, [(1, 2), (1, 5), (2, 3)]);
        let second = archive.read(1, 0..9).unwrap().unwrap();
        assert_eq!(second.frames[4], [1, 4, 7]);
        assert_eq!(second.actions, [0, 1, 2, 3, 4]);
        assert_eq!(second.rewards, [2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(second.outcomes[4], Outcome::Truncated);
        assert_eq!(archive.info(2).unwrap().outcome, Outcome::Running);
        assert_eq!(archive.read(1, 3..5).unwrap().unwrap().actions, [3, 4]);
        assert_eq!(archive.read(1, 7..9).unwrap().unwrap().frames.len(), 0);
        assert_eq!(archive.read(3, 0..1).unwrap(), None);
        let latest = archive.latest_frames(4, 2).unwrap();
        assert_eq!(latest, [[1, 4, 7], [2, 1, 7]]);
    }

    #[test]
    fn an_invalid_chunk_ends_the_archive_with_a_problem() {
        let dir = written(&[2, 5, 3], 4);
        let second = dir.path().join("epoch-000002.chunk");
        let bytes = fs::read(&second).unwrap();
        fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
        fs::write(dir.path().join("epoch-000003.chunk.tmp"), b"half").unwrap();
        let archive = Archive::open(dir.path());
        assert_eq!(archive.steps(), 4);
        assert!(archive.problem.unwrap().contains("epoch-000002.chunk"));
    }

    #[test]
    fn a_chunk_with_an_impossible_outcome_is_left_out_entirely() {
        let dir = written(&[2, 5, 3], 4);
        for (name, kept) in [("epoch-000002.chunk", 4), ("epoch-000001.chunk", 0)] {
            let path = dir.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            let steps = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
            bytes[32 + 6 * steps - 1] = 7; // the last outcome
            fs::write(&path, bytes).unwrap();
            let archive = Archive::open(dir.path());
            let listed: usize = archive.list().map(|episode| episode.steps).sum();
            assert_eq!((archive.steps(), listed), (kept, kept));
            assert!(archive.problem.unwrap().contains("impossible outcome"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_read() {
        let dir = written(&[2, 5, 3], 4);
        let second = dir.path().join("epoch-000002.chunk");
        fs::rename(&second, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &second).unwrap();
        let archive = Archive::open(dir.path());
        assert_eq!(archive.steps(), 4);
        assert!(archive.problem.unwrap().contains("link"));
    }

    #[test]
    fn a_missing_directory_has_no_episodes() {
        let archive = Archive::open(Path::new("/nowhere/of/rem/tests"));
        assert_eq!((archive.episodes(), archive.problem), (0, None));
    }
}
