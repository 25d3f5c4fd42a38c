//! Which steps belong to which episode.

use super::StepId;
use crate::env::Outcome;

/// Marks the last part of an episode.
const NONE: u32 = u32::MAX;

/// The episodes of a replay, as ranges of positions.
#[derive(Default)]
pub(super) struct Episodes {
    /// In the order of their positions.
    parts: Vec<Part>,
    spans: Vec<Span>,
    streams: Vec<Stream>,
    runs: Vec<Run>,
}

/// Consecutive positions of an episode.
struct Part {
    /// The first position.
    start: u32,
    episode: u32,
    /// The step of the episode at `start`.
    offset: u32,
    /// The episode's next part, or [`NONE`].
    next: u32,
}

struct Span {
    first_part: u32,
    last_part: u32,
    steps: u32,
}

#[derive(Clone, Default)]
struct Stream {
    open: Option<u32>,
    /// The next step starts a new episode, although the last one is [`Outcome::Running`].
    abandoned: bool,
}

/// Consecutive steps of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first position.
    pub(super) start: u32,
    pub(super) stream: u32,
    /// Whether the first step starts a new episode, whatever the outcome of the stream's step before.
    pub(super) new_episode: bool,
}

/// Bytes of an episode of one part.
#[cfg(test)]
pub(super) const BYTES_PER_EPISODE: usize = size_of::<Part>() + size_of::<Span>();

impl Episodes {
    pub(super) fn push(&mut self, stream: u32, position: u32, outcome: Outcome) {
        let known = self.streams.len().max(stream as usize + 1);
        self.streams.resize(known, Stream::default());
        let Stream { open, abandoned } = std::mem::take(&mut self.streams[stream as usize]);
        if abandoned || self.runs.last().is_none_or(|run| run.stream != stream) {
            self.runs.push(Run {
                start: position,
                stream,
                new_episode: abandoned,
            });
        }
        let episode = open.unwrap_or(self.spans.len() as u32);
        if open.is_none() {
            self.spans.push(Span {
                first_part: self.parts.len() as u32,
                last_part: self.parts.len() as u32,
                steps: 0,
            });
        }
        let span = &mut self.spans[episode as usize];
        if self.parts.last().is_none_or(|part| part.episode != episode) {
            let part = self.parts.len() as u32;
            if open.is_some() {
                self.parts[span.last_part as usize].next = part;
            }
            span.last_part = part;
            self.parts.push(Part {
                start: position,
                episode,
                offset: span.steps,
                next: NONE,
            });
        }
        span.steps += 1;
        self.streams[stream as usize].open = (outcome == Outcome::Running).then_some(episode);
    }

    pub(super) fn abandon(&mut self, stream: u32) {
        if let Some(stream) = self.streams.get_mut(stream as usize) {
            stream.abandoned = stream.open.take().is_some();
        }
    }

    pub(super) fn open(&self, stream: u32) -> Option<u32> {
        self.streams.get(stream as usize)?.open
    }

    pub(super) fn is_open(&self, episode: u32) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|stream| stream.open == Some(episode))
    }

    pub(super) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn steps(&self, episode: u32) -> usize {
        self.spans[episode as usize].steps as usize
    }

    /// The parts of an episode, in order.
    fn parts(&self, episode: u32) -> impl Iterator<Item = &Part> {
        let first = self.spans[episode as usize].first_part;
        let mut next = first;
        std::iter::from_fn(move || {
            let part = self.parts.get(next as usize)?;
            next = part.next;
            Some(part)
        })
    }

    pub(super) fn position(&self, id: StepId) -> usize {
        let span = &self.spans[id.episode as usize];
        let last = &self.parts[span.last_part as usize];
        let part = match id.index >= last.offset {
            true => last,
            false => {
                let before = self.parts(id.episode).take_while(|p| p.offset <= id.index);
                before.last().expect("the first part begins at step 0")
            }
        };
        (part.start + id.index - part.offset) as usize
    }

    pub(super) fn id(&self, position: u32) -> StepId {
        let part = self.parts.partition_point(|part| part.start <= position) - 1;
        let part = &self.parts[part];
        StepId {
            episode: part.episode,
            index: part.offset + position - part.start,
        }
    }

    /// The first step of an episode at position `first` of the replay or after it; the number of its steps if there is none.
    pub(super) fn first_step_since(&self, episode: u32, first: usize) -> usize {
        let parts = self.parts(episode);
        let before = parts
            .take_while(|part| (part.start as usize) < first)
            .last();
        let Some(part) = before else { return 0 };
        let end = match self.parts.get(part.next as usize) {
            Some(next) => next.offset as usize,
            None => self.steps(episode),
        };
        (part.offset as usize + first - part.start as usize).min(end)
    }

    /// The runs of the positions from `first` on; `steps` is the number of all steps.
    pub(super) fn runs_since(&self, first: usize, steps: usize) -> Vec<(Run, u64)> {
        let ends = self.runs.iter().skip(1).map(|run| run.start as usize);
        let ends = ends.chain([steps]);
        let runs = self.runs.iter().zip(ends).filter(|(_, end)| *end > first);
        runs.map(|(run, end)| {
            let continued = (run.start as usize) < first;
            let start = first.max(run.start as usize);
            let run = Run {
                start: start as u32,
                new_episode: run.new_episode && !continued,
                ..*run
            };
            (run, (end - start) as u64)
        })
        .collect()
    }

    #[cfg(test)]
    pub(super) fn allocated_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Part>()
            + self.spans.capacity() * size_of::<Span>()
            + self.streams.capacity() * size_of::<Stream>()
            + self.runs.capacity() * size_of::<Run>()
    }
}
