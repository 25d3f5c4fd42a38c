//! What happens in runs, as a stream of server-sent events: one stream for all runs that a page shows.
//!
//! A stream is asked for its next event only when the last one has gone out, so a reader that is slow makes it wait and
//! nothing pile up.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;
use crate::run::{self, Glance, Progress, Summary, Tail, Timing};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// A stream ends after so long, lest a page that no longer reads keep its seat: it need not take in what is told until
/// that is more than the system holds back for it. Pages that are there open another one.
const LONGEST: Duration = Duration::from_secs(1800);

/// Runs in one stream.
pub const MOST_RUNS: usize = 64;

/// Streams that may be open at a time.
pub fn seats() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(32))
}

/// The events of these runs from their start on.
pub fn stream(runs: Vec<(String, PathBuf)>, seats: Arc<Semaphore>) -> Result<Response, Failure> {
    let seat = seats
        .try_acquire_owned()
        .map_err(|_| Failure::Busy("pages"))?;
    let watch = Watch {
        runs: runs
            .into_iter()
            .map(|(name, dir)| Watched::new(name, dir))
            .collect(),
        ready: VecDeque::new(),
        begun: Instant::now(),
        _seat: seat,
    };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok::<_, Infallible>(event), watch))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

struct Watch {
    runs: Vec<Watched>,
    ready: VecDeque<Value>,
    begun: Instant,
    _seat: OwnedSemaphorePermit,
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        while self.begun.elapsed() < LONGEST {
            if let Some(value) = self.ready.pop_front() {
                return Some(Event::default().data(value.to_string()));
            }
            let mut runs = std::mem::take(&mut self.runs);
            let polled = tokio::task::spawn_blocking(move || {
                let news: Vec<Value> = runs.iter_mut().flat_map(Watched::poll).collect();
                (runs, news)
            });
            let (runs, news) = polled.await.expect("looking at files does not panic");
            self.runs = runs;
            if news.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
            self.ready.extend(news);
        }
        None
    }
}

/// A run that is watched, and what was told of it.
struct Watched {
    name: String,
    dir: PathBuf,
    metrics: Tail,
    timing: Tail,
    timings: Vec<Timing>,
    glance: Glance,
    /// When its pictures last changed, and how many there were.
    pictures: (Option<SystemTime>, usize),
    /// Its summary and the number of its pictures, as they were told last.
    told: Option<(Summary, usize)>,
}

impl Watched {
    fn new(name: String, dir: PathBuf) -> Self {
        Self {
            metrics: Tail::new(dir.clone(), "metrics.jsonl"),
            timing: Tail::new(dir.clone(), "timing.jsonl"),
            timings: Vec::new(),
            glance: Glance::default(),
            pictures: (None, 0),
            told: None,
            name,
            dir,
        }
    }

    /// What is new; a file that cannot be read now is tried again the next time.
    fn poll(&mut self) -> Vec<Value> {
        let mut news = Vec::new();
        if let Ok(mut metrics) = self.metrics.poll()
            && !metrics.is_nothing()
        {
            metrics.lines.retain(is_measured);
            news.push(json!({
                "run": self.name, "is": "metrics", "restarted": metrics.restarted, "lines": metrics.lines,
            }));
        }
        if let Ok(timing) = self.timing.poll()
            && !timing.is_nothing()
        {
            if timing.restarted {
                self.timings.clear();
            }
            let parsed = timing
                .lines
                .into_iter()
                .filter_map(|line| serde_json::from_value(line).ok());
            self.timings.extend(parsed);
            if let Ok(config) = run::config(&self.dir) {
                let progress = Progress::of(&config, &self.timings);
                news.push(json!({"run": self.name, "is": "progress", "progress": progress}));
            }
        }
        news.extend(self.summary_if_changed());
        news
    }

    fn summary_if_changed(&mut self) -> Option<Value> {
        let summary = self.glance.summary(&self.name, &self.dir);
        let pictures = self.count_pictures();
        // The clock alone is no news.
        let timeless = Summary {
            seconds_quiet: None,
            ..summary.clone()
        };
        let news = Some((timeless, pictures));
        if self.told == news {
            return None;
        }
        self.told = news;
        Some(json!({"run": self.name, "is": "summary", "summary": summary, "pictures": pictures}))
    }

    fn count_pictures(&mut self) -> usize {
        let media = self.dir.join("media").metadata();
        let changed = media.and_then(|media| media.modified()).ok();
        if self.pictures.0 != changed {
            self.pictures = (changed, rem::showcase::pictures(&self.dir).len());
        }
        self.pictures.1
    }
}

/// Whether a line of `metrics.jsonl` is what a page expects there.
fn is_measured(line: &Value) -> bool {
    line["phase"].is_string() && line["epoch"].is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_is_new_is_told() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().to_path_buf();
        fs::write(
            dir.join("metrics.jsonl"),
            "{\"epoch\":1,\"phase\":\"collect\"}\nnull\n{\"epoch\":1}\n{\"phase\":\"note\"}\n7\n",
        )
        .unwrap();
        let mut watched = Watched::new("run".into(), dir.clone());
        let kinds = |news: Vec<Value>| -> Vec<String> {
            news.iter()
                .map(|n| n["is"].as_str().unwrap().to_owned())
                .collect()
        };
        let first = watched.poll();
        assert_eq!(first[0]["lines"].as_array().unwrap().len(), 1);
        assert_eq!(kinds(first), ["metrics", "summary"]);
        assert!(watched.poll().is_empty());
        let config = rem::config::Config::load("debug", &[]).unwrap();
        fs::write(dir.join("config.toml"), config.to_toml()).unwrap();
        let line = "{\"epoch\":1,\"phase\":\"collect\",\"seconds\":2.0,\"steps\":1,\"steps_per_second\":0.5}\n";
        fs::write(dir.join("timing.jsonl"), line).unwrap();
        assert_eq!(kinds(watched.poll()), ["progress", "summary"]);
        assert!(watched.poll().is_empty());
    }
}
