//! Run updates as server-sent events: one stream for all runs that a page shows.
//!
//! The next event is produced only after the last one was sent, so a slow client delays its stream and nothing queues up.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use rem::run::Progress;
use rem_run::{TimingLine, layout};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::run::{self, Columns, LogTail, NewLines, Note, Summary, SummaryReader};

/// Time between two polls of the files of the runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Streams end after this time. A client that stopped reading holds its slot at most this long, even if the socket
/// buffers absorb everything sent to it. Live pages reconnect.
const MAX_STREAM_AGE: Duration = Duration::from_secs(1800);

/// Most runs in one stream.
pub(crate) const MAX_RUNS: usize = 64;

/// One permit per open stream.
pub(crate) fn stream_slots() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(32))
}

/// The events of these runs, from the start of their logs.
pub(crate) fn stream(
    runs: Vec<(String, PathBuf)>,
    slots: Arc<Semaphore>,
) -> Result<Response, ApiError> {
    let slot = slots
        .try_acquire_owned()
        .map_err(|_| ApiError::TooMany("pages"))?;
    let single = runs.len() == 1;
    let state = StreamState {
        runs: runs
            .into_iter()
            .map(|(name, dir)| WatchedRun::new(name, dir, single))
            .collect(),
        next: 0,
        ready: VecDeque::new(),
        started: Instant::now(),
        _slot: slot,
    };
    let events = stream::unfold(state, |mut state| async move {
        let event = state.next().await?;
        Some((Ok::<_, Infallible>(event), state))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

struct StreamState {
    runs: Vec<WatchedRun>,
    /// The run to poll next.
    next: usize,
    ready: VecDeque<String>,
    started: Instant,
    _slot: OwnedSemaphorePermit,
}

impl StreamState {
    async fn next(&mut self) -> Option<Event> {
        while self.started.elapsed() < MAX_STREAM_AGE {
            if let Some(text) = self.ready.pop_front() {
                return Some(Event::default().data(text));
            }
            let (mut runs, mut next) = (std::mem::take(&mut self.runs), self.next);
            let poll = tokio::task::spawn_blocking(move || {
                let events = poll_until_changed(&mut runs, &mut next);
                (runs, next, events)
            });
            let (runs, next, events) = poll.await.expect("polling files does not panic");
            (self.runs, self.next) = (runs, next);
            if events.is_empty() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            self.ready.extend(events);
        }
        None
    }
}

/// An event of the stream.
#[derive(Serialize)]
struct RunEvent<'a> {
    run: &'a str,
    #[serde(flatten)]
    update: Update,
}

/// What has changed in a run.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Update {
    Metrics {
        /// The log was truncated: these lines replace all earlier ones.
        reset: bool,
        columns: Columns,
        notes: Vec<Note>,
    },
    Timing {
        reset: bool,
        columns: Columns,
    },
    Progress {
        progress: Progress,
    },
    Summary {
        summary: Box<Summary>,
        /// The number of media files.
        media: usize,
    },
}

/// The events of the first run with any, in turn. One run at a time, so that a stream of many runs holds little in memory.
fn poll_until_changed(runs: &mut [WatchedRun], next: &mut usize) -> Vec<String> {
    for _ in 0..runs.len() {
        let events = runs[*next].poll();
        *next = (*next + 1) % runs.len();
        if !events.is_empty() {
            return events;
        }
    }
    Vec::new()
}

/// A run in a stream, and what was sent of it.
struct WatchedRun {
    name: String,
    dir: PathBuf,
    metrics: LogTail,
    timing: LogTail,
    /// All timings so far, if the page shows the time left: only that of a single run does.
    timings: Option<Vec<TimingLine>>,
    summary: SummaryReader,
    /// The modification time of `media/`, and the number of files in it.
    media: (Option<SystemTime>, usize),
    /// The last summary and number of media files sent.
    sent: Option<(Summary, usize)>,
}

impl WatchedRun {
    fn new(name: String, dir: PathBuf, shows_progress: bool) -> Self {
        Self {
            metrics: LogTail::new(dir.clone(), layout::METRICS),
            timing: LogTail::new(dir.clone(), layout::TIMING),
            timings: shows_progress.then(Vec::new),
            summary: SummaryReader::default(),
            media: (None, 0),
            sent: None,
            name,
            dir,
        }
    }

    /// Events since the last poll, as JSON. A file that cannot be read is tried again at the next poll.
    fn poll(&mut self) -> Vec<String> {
        let mut updates = Vec::new();
        if let Ok(NewLines { reset, lines }) = self.metrics.poll()
            && (reset || !lines.is_empty())
        {
            let (columns, notes) = Columns::of_metrics(lines);
            updates.push(Update::Metrics {
                reset,
                columns,
                notes,
            });
        }
        if let Ok(timing) = self.timing.poll()
            && !timing.is_empty()
        {
            updates.push(Update::Timing {
                reset: timing.reset,
                columns: Columns::of_timing(&timing.lines),
            });
            updates.extend(self.progress(timing));
        }
        updates.extend(self.changed_summary());
        let run = &self.name;
        let json = |update| serde_json::to_string(&RunEvent { run, update });
        let events = updates.into_iter().map(json);
        events
            .collect::<Result<_, _>>()
            .expect("updates are valid JSON")
    }

    fn progress(&mut self, new: NewLines<TimingLine>) -> Option<Update> {
        let timings = self.timings.as_mut()?;
        if new.reset {
            timings.clear();
        }
        timings.extend(new.lines);
        let config = run::config(&self.dir).ok()?;
        let progress = Progress::new(&config, timings);
        Some(Update::Progress { progress })
    }

    fn changed_summary(&mut self) -> Option<Update> {
        let summary = self.summary.read(&self.name, &self.dir);
        let media = self.count_media();
        // `idle_seconds` always changes.
        let without_time = Summary {
            idle_seconds: None,
            ..summary.clone()
        };
        let current = Some((without_time, media));
        if self.sent == current {
            return None;
        }
        self.sent = current;
        Some(Update::Summary {
            summary: Box::new(summary),
            media,
        })
    }

    fn count_media(&mut self) -> usize {
        let media = self.dir.join(layout::MEDIA).metadata();
        let modified = media.and_then(|media| media.modified()).ok();
        if self.media.0 != modified {
            self.media = (
                modified,
                rem::train::eval_media::eval_images(&self.dir).len(),
            );
        }
        self.media.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;

    fn poll(run: &mut WatchedRun) -> Vec<Value> {
        let events = run.poll();
        (events.iter())
            .map(|event| serde_json::from_str(event).unwrap())
            .collect()
    }

    #[test]
    fn a_poll_returns_only_changes() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().to_path_buf();
        fs::write(
            dir.join("metrics.jsonl"),
            "{\"epoch\":1,\"phase\":\"collect\"}\nnull\n{\"epoch\":1}\n{\"phase\":\"note\"}\n7\n",
        )
        .unwrap();
        let mut run = WatchedRun::new("run".into(), dir.clone(), true);
        let types = |events: Vec<Value>| -> Vec<String> {
            events
                .iter()
                .map(|event| event["type"].as_str().unwrap().to_owned())
                .collect()
        };
        let first = poll(&mut run);
        assert_eq!(first[0]["columns"]["collect"]["epoch"], json!([1]));
        assert_eq!(first[0]["columns"].as_object().unwrap().len(), 1);
        assert_eq!(types(first), ["metrics", "summary"]);
        assert!(run.poll().is_empty());
        let config = rem::config::Config::load("debug", &[]).unwrap();
        fs::write(dir.join("config.toml"), config.to_toml()).unwrap();
        let line = "{\"epoch\":1,\"phase\":\"collect\",\"seconds\":2.0,\"steps\":1,\"steps_per_second\":0.5}\n";
        fs::write(dir.join("timing.jsonl"), line).unwrap();
        assert_eq!(types(poll(&mut run)), ["timing", "progress", "summary"]);
        assert!(run.poll().is_empty());
        // Among other runs, it needs no time left.
        let mut one_of_many = WatchedRun::new("run".into(), dir, false);
        assert_eq!(
            types(poll(&mut one_of_many)),
            ["metrics", "timing", "summary"]
        );
    }

    #[test]
    fn runs_are_polled_in_turn() {
        let parent = tempfile::tempdir().unwrap();
        let line = "{\"epoch\":1,\"phase\":\"collect\"}\n";
        let mut runs: Vec<WatchedRun> = ["a", "b", "c"]
            .map(|name| {
                let dir = parent.path().join(name);
                fs::create_dir(&dir).unwrap();
                fs::write(dir.join("metrics.jsonl"), line).unwrap();
                WatchedRun::new(name.into(), dir, false)
            })
            .into();
        let mut next = 0;
        let mut poll = || poll_until_changed(&mut runs, &mut next);
        for name in ["a", "b", "c"] {
            let events = poll();
            assert_eq!(events.len(), 2);
            assert!(events[0].contains(&format!("\"run\":\"{name}\"")));
        }
        assert!(poll().is_empty());
        let log = fs::OpenOptions::new()
            .append(true)
            .open(parent.path().join("b/metrics.jsonl"));
        std::io::Write::write_all(&mut log.unwrap(), line.as_bytes()).unwrap();
        assert!(poll()[0].contains("\"run\":\"b\""));
        assert!(poll().is_empty());
    }
}
