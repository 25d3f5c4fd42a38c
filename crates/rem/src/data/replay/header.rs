//! The header of a chunk file: its format is described in `chunks.rs`.

use std::fs::File;
use std::io::{self, Read};

use super::episodes::Run;

/// Bytes of a step without its frame: action, reward and outcome.
pub(crate) const STEP_BYTES_BESIDES_FRAME: u64 = 6;

const MAGIC: [u8; 8] = *b"REMREPL1";
const MAGIC_OF_RUNS: [u8; 8] = *b"REMREPL2";
const HEADER_BYTES: u64 = 32;
const RUN_BYTES: u64 = 24;
/// Limit on the runs and streams of a chunk, so that a damaged header cannot exhaust the memory.
const MAX_RUNS: u64 = 1 << 20;
/// The header of a chunk file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) frame_bytes: u64,
    pub(super) first_step: u64,
    pub(super) steps: u64,
    /// Runs of consecutive steps, with their lengths.
    pub(super) runs: Vec<(Run, u64)>,
}

impl Header {
    /// Whether all steps are of one run of stream 0 that continues the chunk before.
    fn is_plain(&self) -> bool {
        matches!(&self.runs[..], [(run, _)] if run.stream == 0 && !run.new_episode)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let magic = match self.is_plain() {
            true => MAGIC,
            false => MAGIC_OF_RUNS,
        };
        let mut words = vec![self.frame_bytes, self.first_step, self.steps];
        if !self.is_plain() {
            words.push(self.runs.len() as u64);
            let runs = self.runs.iter();
            words.extend(runs.flat_map(|(run, steps)| {
                [u64::from(run.stream), u64::from(run.new_episode), *steps]
            }));
        }
        let words = words.into_iter().flat_map(u64::to_le_bytes);
        magic.into_iter().chain(words).collect()
    }

    /// Parses the bytes of [`header_bytes`].
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let words = rest.as_chunks::<8>();
        if !words.1.is_empty() {
            return None;
        }
        let words: Vec<u64> = words.0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let [frame_bytes, first_step, steps, runs @ ..] = &words[..] else {
            return None;
        };
        // Whether the chunk is the next one is checked before its runs are used.
        let plain = Run {
            start: *first_step as u32,
            stream: 0,
            new_episode: false,
        };
        let runs = match (*magic, runs) {
            (MAGIC, []) => vec![(plain, *steps)],
            (MAGIC_OF_RUNS, [_, runs @ ..]) => parse_runs(*first_step, *steps, runs)?,
            _ => return None,
        };
        Some(Self {
            frame_bytes: *frame_bytes,
            first_step: *first_step,
            steps: *steps,
            runs,
        })
    }

    /// The length of the header.
    pub(super) fn bytes(&self) -> u64 {
        match self.is_plain() {
            true => HEADER_BYTES,
            false => HEADER_BYTES + 8 + RUN_BYTES * self.runs.len() as u64,
        }
    }

    /// The length of the whole file.
    pub(super) fn file_bytes(&self) -> u64 {
        let step = STEP_BYTES_BESIDES_FRAME.saturating_add(self.frame_bytes);
        self.steps.saturating_mul(step).saturating_add(self.bytes())
    }

    /// The offset of the first frame in the file.
    pub(super) fn frames_at(&self) -> u64 {
        self.bytes() + self.steps * STEP_BYTES_BESIDES_FRAME
    }
}

/// `None` unless there are as many runs as announced, and they hold `steps` steps.
fn parse_runs(first_step: u64, steps: u64, words: &[u64]) -> Option<Vec<(Run, u64)>> {
    let mut start = first_step;
    let mut run = |&[stream, new_episode, steps]: &[u64; 3]| {
        let run = Run {
            start: u32::try_from(start).ok()?,
            stream: u32::try_from(stream)
                .ok()
                .filter(|s| u64::from(*s) < MAX_RUNS)?,
            new_episode: match new_episode {
                0 => false,
                1 => true,
                _ => return None,
            },
        };
        start = start.checked_add(steps).filter(|_| steps > 0)?;
        Some((run, steps))
    };
    let (runs, rest) = words.as_chunks::<3>();
    let runs: Vec<_> = runs.iter().map(&mut run).collect::<Option<_>>()?;
    (rest.is_empty() && !runs.is_empty() && start == first_step.checked_add(steps)?).then_some(runs)
}

/// The bytes of the header, or fewer if the file is shorter.
pub(super) fn header_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(HEADER_BYTES).read_to_end(&mut bytes)?;
    if bytes.starts_with(&MAGIC_OF_RUNS) {
        file.take(8).read_to_end(&mut bytes)?;
        if let Some(count) = bytes
            .get(HEADER_BYTES as usize..)
            .and_then(<[u8]>::first_chunk)
        {
            let count = u64::from_le_bytes(*count).min(MAX_RUNS);
            file.take(count * RUN_BYTES).read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// Whether the first bytes of a file are those of a chunk, as far as there are any.
pub(super) fn known_magic(bytes: &[u8]) -> bool {
    let known = |magic: &[u8; 8]| bytes.starts_with(&magic[..bytes.len().min(magic.len())]);
    known(&MAGIC) || known(&MAGIC_OF_RUNS)
}
