//! The logs of a run: `metrics.jsonl`, `timing.jsonl` and a TensorBoard event file.
//!
//! The seed determines every byte of `metrics.jsonl`: equal runs, and a run that was interrupted and resumed, write the
//! same file. Wall-clock times go to `timing.jsonl` and to TensorBoard.

mod append_log;
mod tensorboard;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use self::append_log::AppendLog;
use self::tensorboard::EventFile;
use rem_run::files::failed;
use rem_run::{MetricsLine, TimingLine, layout};

/// Lengths of the logs at a checkpoint, in bytes; 0 for a new run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogLengths {
    metrics: u64,
    tensorboard: u64,
}

/// The open logs of a run. Every line is flushed, so that other processes see it at once.
pub(crate) struct Metrics {
    metrics: AppendLog,
    timing: AppendLog,
    tensorboard: Events,
}

/// TensorBoard events.
enum Events {
    On(EventFile),
    /// Those of the first epochs, if any, end at this length.
    Off(u64),
}

impl Metrics {
    /// Checks, without changing them, that the logs have at least the lengths of a checkpoint.
    pub(crate) fn check(run_dir: &Path, tensorboard: bool, keep: LogLengths) -> io::Result<()> {
        AppendLog::check(&run_dir.join(layout::METRICS), keep.metrics)?;
        match tensorboard {
            true => AppendLog::check(&events_file(run_dir), keep.tensorboard),
            false => Ok(()),
        }
    }

    /// Opens or creates the logs in `run_dir`, with TensorBoard events or without, and truncates them to the lengths of
    /// the checkpoint of `epoch`. The length of `timing.jsonl` is not part of a checkpoint, because it depends on the
    /// clock: the epoch of its lines decides.
    pub(crate) fn open(
        run_dir: &Path,
        tensorboard: bool,
        keep: LogLengths,
        epoch: u32,
    ) -> io::Result<Self> {
        let timing = run_dir.join(layout::TIMING);
        let tensorboard = match tensorboard {
            true => Events::On(open_events(run_dir, keep.tensorboard)?),
            false => Events::Off(keep.tensorboard),
        };
        Ok(Self {
            metrics: AppendLog::open(&run_dir.join(layout::METRICS), keep.metrics)?,
            timing: AppendLog::open(&timing, bytes_up_to(&timing, epoch)?)?,
            tensorboard,
        })
    }

    /// Writes a line `{"epoch":12,"phase":"tokenizer","loss":0.1,...}` to `metrics.jsonl`, keys in the given order, and
    /// the TensorBoard scalars `phase/key` at step `epoch`.
    ///
    /// Numbers are written in the shortest form that parses to the same `f64`, or as `null` if they are not finite. The
    /// seed must determine the values: no times, no paths.
    pub(crate) fn scalars(
        &mut self,
        epoch: u32,
        phase: &str,
        values: &[(&str, f64)],
    ) -> io::Result<()> {
        let line = MetricsLine::scalars(epoch, phase, values);
        self.metrics.append(&line.to_json_line())?;
        self.metrics.flush()?;
        let tagged: Vec<(String, f64)> = values
            .iter()
            .map(|&(key, value)| (format!("{phase}/{key}"), value))
            .collect();
        self.tensorboard.scalars(epoch, &tagged)
    }

    /// The metrics and the duration of a phase: [`Self::scalars`] and [`Self::timing`].
    pub(crate) fn phase(
        &mut self,
        epoch: u32,
        phase: &str,
        steps: usize,
        seconds: f64,
        values: &[(&str, f64)],
    ) -> io::Result<()> {
        self.scalars(epoch, phase, values)?;
        self.timing(epoch, phase, seconds, steps)
    }

    /// Writes a line `{"epoch":3,"phase":"note","text":"..."}` to `metrics.jsonl`, for readers of the scores.
    pub(crate) fn note(&mut self, epoch: u32, text: &str) -> io::Result<()> {
        let line = MetricsLine::note(epoch, text);
        self.metrics.append(&line.to_json_line())?;
        self.metrics.flush()
    }

    /// Writes a line `{"epoch":..,"phase":..,"seconds":..,"steps":..,"steps_per_second":..}` to `timing.jsonl`, and the
    /// TensorBoard scalar `time/phase`.
    pub(crate) fn timing(
        &mut self,
        epoch: u32,
        phase: &str,
        seconds: f64,
        steps: usize,
    ) -> io::Result<()> {
        let line = TimingLine::new(epoch, phase, seconds, steps);
        self.timing.append(&line.to_json_line())?;
        self.timing.flush()?;
        let tagged = [(format!("time/{phase}"), seconds)];
        self.tensorboard.scalars(epoch, &tagged)
    }

    /// Syncs the logs to disk, and returns their lengths for the checkpoint.
    pub(crate) fn sync(&mut self) -> io::Result<LogLengths> {
        self.timing.sync()?;
        Ok(LogLengths {
            metrics: self.metrics.sync()?,
            tensorboard: self.tensorboard.sync()?,
        })
    }
}

impl Events {
    fn scalars(&mut self, epoch: u32, tagged: &[(String, f64)]) -> io::Result<()> {
        match self {
            Self::On(file) => file.scalars(wall_time(), epoch, tagged),
            Self::Off(_) => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<u64> {
        match self {
            Self::On(file) => file.sync(),
            Self::Off(length) => Ok(*length),
        }
    }
}

fn events_file(run: &Path) -> PathBuf {
    run.join(layout::TENSORBOARD).join(tensorboard::FILE_NAME)
}

fn open_events(run: &Path, keep: u64) -> io::Result<EventFile> {
    let dir = run.join(layout::TENSORBOARD);
    fs::create_dir_all(&dir).map_err(failed("create directory", &dir))?;
    EventFile::open(&events_file(run), keep, wall_time())
}

/// The total length of the leading complete lines of a log whose epoch is at most `epoch`.
fn bytes_up_to(path: &Path, epoch: u32) -> io::Result<u64> {
    #[derive(Deserialize)]
    struct Line {
        epoch: u32,
    }
    if !path.exists() {
        return Ok(0);
    }
    let bytes = fs::read(path).map_err(failed("read", path))?;
    let belongs = |line: &&[u8]| {
        let parsed = serde_json::from_slice::<Line>(line);
        line.ends_with(b"\n") && parsed.is_ok_and(|l| l.epoch <= epoch)
    };
    let lines = bytes.split_inclusive(|b| *b == b'\n').take_while(belongs);
    Ok(lines.map(|line| line.len() as u64).sum())
}

/// Seconds since the Unix epoch.
fn wall_time() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dir: &Path, name: &str) -> String {
        fs::read_to_string(dir.join(name)).unwrap()
    }

    fn epoch(metrics: &mut Metrics, epoch: u32) {
        let loss = 1.0 / f64::from(epoch + 3);
        metrics
            .scalars(epoch, "tokenizer", &[("loss", loss), ("commitment", -0.0)])
            .unwrap();
        metrics.note(epoch, "line one\n\"quoted\"").unwrap();
        metrics.timing(epoch, "tokenizer", 0.5, 10).unwrap();
    }

    #[test]
    fn a_resumed_run_writes_the_same_logs() {
        let uninterrupted = tempfile::tempdir().unwrap();
        let mut metrics =
            Metrics::open(uninterrupted.path(), true, LogLengths::default(), 0).unwrap();
        (0..4).for_each(|e| epoch(&mut metrics, e));
        let expected_lengths = metrics.sync().unwrap();

        let resumed = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(resumed.path(), true, LogLengths::default(), 0).unwrap();
        (0..2).for_each(|e| epoch(&mut metrics, e));
        let checkpoint = metrics.sync().unwrap();
        epoch(&mut metrics, 2); // never checkpointed
        drop(metrics);
        let mut metrics = Metrics::open(resumed.path(), true, checkpoint, 1).unwrap();
        (2..4).for_each(|e| epoch(&mut metrics, e));

        assert_eq!(metrics.sync().unwrap(), expected_lengths);
        for name in ["metrics.jsonl", "timing.jsonl"] {
            assert_eq!(read(uninterrupted.path(), name), read(resumed.path(), name));
        }
    }

    /// The events of the first epochs stay, and come back when they are turned on again.
    #[test]
    fn events_can_be_turned_off_and_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut keep = LogLengths::default();
        let mut lengths = Vec::new();
        for (index, on) in [false, true, false, true].into_iter().enumerate() {
            let past = index as u32;
            Metrics::check(dir.path(), on, keep).unwrap();
            let mut metrics = Metrics::open(dir.path(), on, keep, past).unwrap();
            epoch(&mut metrics, past + 1);
            keep = metrics.sync().unwrap();
            lengths.push(keep.tensorboard);
        }
        let file = events_file(dir.path());
        assert_eq!(lengths[0], 0);
        assert!(lengths[1] > 0 && lengths[2] == lengths[1] && lengths[3] > lengths[2]);
        assert_eq!(fs::metadata(file).unwrap().len(), lengths[3]);
    }
}
