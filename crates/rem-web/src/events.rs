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
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::run::{self, LogTail, Summary, SummaryReader};

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
    let state = StreamState {
        runs: runs
            .into_iter()
            .map(|(name, dir)| WatchedRun::new(name, dir))
            .collect(),
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
    ready: VecDeque<Value>,
    started: Instant,
    _slot: OwnedSemaphorePermit,
}

impl StreamState {
    async fn next(&mut self) -> Option<Event> {
        while self.started.elapsed() < MAX_STREAM_AGE {
            if let Some(value) = self.ready.pop_front() {
                return Some(Event::default().data(value.to_string()));
            }
            let mut runs = std::mem::take(&mut self.runs);
            let poll = tokio::task::spawn_blocking(move || {
                let events: Vec<Value> = runs.iter_mut().flat_map(WatchedRun::poll).collect();
                (runs, events)
            });
            let (runs, events) = poll.await.expect("polling files does not panic");
            self.runs = runs;
            if events.is_empty() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            self.ready.extend(events);
        }
        None
    }
}

/// A run in a stream, and what was sent of it.
struct WatchedRun {
    name: String,
    dir: PathBuf,
    metrics: LogTail,
    timing: LogTail,
    timings: Vec<TimingLine>,
    summary: SummaryReader,
    /// The modification time of `media/`, and the number of files in it.
    media: (Option<SystemTime>, usize),
    /// The last summary and number of media files sent.
    sent: Option<(Summary, usize)>,
}

impl WatchedRun {
    fn new(name: String, dir: PathBuf) -> Self {
        Self {
            metrics: LogTail::new(dir.clone(), layout::METRICS),
            timing: LogTail::new(dir.clone(), layout::TIMING),
            timings: Vec::new(),
            summary: SummaryReader::default(),
            media: (None, 0),
            sent: None,
            name,
            dir,
        }
    }

    /// Events since the last poll. A file that cannot be read is tried again at the next poll.
    fn poll(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        if let Ok(mut metrics) = self.metrics.poll()
            && !metrics.is_empty()
        {
            metrics.lines.retain(is_metrics_line);
            events.push(json!({
                "run": self.name, "type": "metrics", "reset": metrics.reset, "lines": metrics.lines,
            }));
        }
        if let Ok(timing) = self.timing.poll()
            && !timing.is_empty()
        {
            if timing.reset {
                self.timings.clear();
            }
            let parsed = timing
                .lines
                .into_iter()
                .filter_map(|line| serde_json::from_value(line).ok());
            self.timings.extend(parsed);
            if let Ok(config) = run::config(&self.dir) {
                let progress = Progress::new(&config, &self.timings);
                events.push(json!({"run": self.name, "type": "progress", "progress": progress}));
            }
        }
        events.extend(self.changed_summary());
        events
    }

    fn changed_summary(&mut self) -> Option<Value> {
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
        Some(json!({"run": self.name, "type": "summary", "summary": summary, "media": media}))
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

/// Whether a line of `metrics.jsonl` has the fields that the page relies on.
fn is_metrics_line(line: &Value) -> bool {
    line["phase"].is_string() && line["epoch"].is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_poll_returns_only_changes() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().to_path_buf();
        fs::write(
            dir.join("metrics.jsonl"),
            "{\"epoch\":1,\"phase\":\"collect\"}\nnull\n{\"epoch\":1}\n{\"phase\":\"note\"}\n7\n",
        )
        .unwrap();
        let mut run = WatchedRun::new("run".into(), dir.clone());
        let types = |events: Vec<Value>| -> Vec<String> {
            events
                .iter()
                .map(|event| event["type"].as_str().unwrap().to_owned())
                .collect()
        };
        let first = run.poll();
        assert_eq!(first[0]["lines"].as_array().unwrap().len(), 1);
        assert_eq!(types(first), ["metrics", "summary"]);
        assert!(run.poll().is_empty());
        let config = rem::config::Config::load("debug", &[]).unwrap();
        fs::write(dir.join("config.toml"), config.to_toml()).unwrap();
        let line = "{\"epoch\":1,\"phase\":\"collect\",\"seconds\":2.0,\"steps\":1,\"steps_per_second\":0.5}\n";
        fs::write(dir.join("timing.jsonl"), line).unwrap();
        assert_eq!(types(run.poll()), ["progress", "summary"]);
        assert!(run.poll().is_empty());
    }
}
