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
use rem::run::read_config;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;
use crate::run::{Progress, Summary, Tail, Timing};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// A run whose files stay as they are is looked at again after so long: it may have stopped.
const UNCHANGED: Duration = Duration::from_secs(10);

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
        _seat: seat,
    };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await;
        Some((Ok::<_, Infallible>(event), watch))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

struct Watch {
    runs: Vec<Watched>,
    ready: VecDeque<Value>,
    _seat: OwnedSemaphorePermit,
}

impl Watch {
    async fn next(&mut self) -> Event {
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Event::default().data(value.to_string());
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
    }
}

/// A run that is watched, and what was told of it.
struct Watched {
    name: String,
    dir: PathBuf,
    metrics: Tail,
    timing: Tail,
    timings: Vec<Timing>,
    told: Told,
}

/// What was told of a run last, and of which state of its files.
#[derive(Default)]
struct Told {
    summary: Option<Summary>,
    pictures: usize,
    files: Vec<Option<SystemTime>>,
    at: Option<Instant>,
}

impl Watched {
    fn new(name: String, dir: PathBuf) -> Self {
        Self {
            metrics: Tail::new(dir.join("metrics.jsonl")),
            timing: Tail::new(dir.join("timing.jsonl")),
            timings: Vec::new(),
            told: Told::default(),
            name,
            dir,
        }
    }

    /// What is new; a file that cannot be read now is tried again the next time.
    fn poll(&mut self) -> Vec<Value> {
        let mut news = Vec::new();
        if let Ok(metrics) = self.metrics.poll()
            && !metrics.is_nothing()
        {
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
            if let Ok(config) = read_config(&self.dir) {
                let progress = Progress::of(&config, &self.timings);
                news.push(json!({"run": self.name, "is": "progress", "progress": progress}));
            }
        }
        news.extend(self.summary_if_changed());
        news
    }

    fn summary_if_changed(&mut self) -> Option<Value> {
        let files = self.files_changed();
        let lately = self.told.at.is_some_and(|at| at.elapsed() < UNCHANGED);
        if files == self.told.files && lately {
            return None;
        }
        self.told.files = files;
        self.told.at = Some(Instant::now());
        let summary = Summary::read(&self.name, &self.dir);
        let pictures = rem::showcase::pictures(&self.dir).len();
        // The clock alone is no news.
        let timeless = Summary {
            seconds_quiet: None,
            ..summary.clone()
        };
        if self.told.summary.as_ref() == Some(&timeless) && self.told.pictures == pictures {
            return None;
        }
        self.told.summary = Some(timeless);
        self.told.pictures = pictures;
        Some(json!({"run": self.name, "is": "summary", "summary": summary, "pictures": pictures}))
    }

    /// When the files that a summary is made of were last changed.
    fn files_changed(&self) -> Vec<Option<SystemTime>> {
        let files = ["config.toml", "metrics.jsonl", "scores.json", "media"];
        let changed = |file| self.dir.join(file).metadata().ok()?.modified().ok();
        files.into_iter().map(changed).collect()
    }
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
            "{\"epoch\":1,\"phase\":\"collect\"}\n",
        )
        .unwrap();
        let mut watched = Watched::new("run".into(), dir.clone());
        let kinds = |news: Vec<Value>| -> Vec<String> {
            news.iter()
                .map(|n| n["is"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(kinds(watched.poll()), ["metrics", "summary"]);
        assert!(watched.poll().is_empty());
        let config = rem::config::Config::load("debug", &[]).unwrap();
        fs::write(dir.join("config.toml"), config.to_toml()).unwrap();
        let line = "{\"epoch\":1,\"phase\":\"collect\",\"seconds\":2.0,\"steps\":1,\"steps_per_second\":0.5}\n";
        fs::write(dir.join("timing.jsonl"), line).unwrap();
        assert_eq!(kinds(watched.poll()), ["progress", "summary"]);
        assert!(watched.poll().is_empty());
    }
}
