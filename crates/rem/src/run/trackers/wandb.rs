//! An offline run of Weights & Biases, which `wandb sync` uploads.
//!
//! The file is a LevelDB log with the header `:W&B`: records of protobuf, in blocks of 32 KiB. A record that does not fit
//! into a block is split. The messages have few fields, so that the writer needs no protobuf compiler.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rem_run::files::{failed, write_atomic};
use serde_json::Value;

use super::{About, History, Row};
use crate::run::protobuf::{put_bytes, put_integer};

const PROJECT: &str = "rem";
/// `:W&B`, a magic number and the version 0.
const HEADER: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];
/// Bytes of a block.
const BLOCK: usize = 32_768;
/// Bytes before the data of a chunk: checksum, length and kind.
const CHUNK_HEADER: usize = 7;

/// Kinds of chunks.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Fields of `Record`.
const HISTORY: u64 = 2;
const SUMMARY: u64 = 3;
const RUN: u64 = 17;
const EXIT: u64 = 18;
const VERSION: u64 = 21;

/// The oldest `wandb` that reads the file, as `wandb` 0.31 declares it.
const OLDEST_READER: &str = "0.70.0";

/// An offline run.
pub(super) struct Run {
    path: PathBuf,
    log: Log,
}

/// The position in a file, and the number of records.
struct Log {
    length: usize,
    records: u64,
}

impl Run {
    /// Replaces the offline run in `dir` by the history.
    pub(super) fn create(dir: &Path, about: &About, history: &History) -> io::Result<Self> {
        let id = &about.id[..8];
        let of_run = dir.join(format!("offline-run-{}-{id}", timestamp(about.started)));
        // `wandb` expects the directory.
        let files = of_run.join("files");
        fs::create_dir_all(&files).map_err(failed("create directory", &files))?;
        let path = of_run.join(format!("run-{id}.wandb"));
        let mut log = Log {
            length: HEADER.len(),
            records: 0,
        };
        let mut bytes = HEADER.to_vec();
        bytes.extend(log.record(VERSION, &version()));
        bytes.extend(log.record(RUN, &run(about, id)));
        for row in &history.rows {
            bytes.extend(log.row(about, row));
        }
        write_atomic(&path, &bytes)?;
        Ok(Self { path, log })
    }

    /// The directory of the run.
    pub(super) fn path(&self) -> &Path {
        rem_run::files::parent(&self.path)
    }

    pub(super) fn append(&mut self, about: &About, row: &Row) -> io::Result<()> {
        let bytes = self.log.row(about, row);
        super::append(&self.path, &bytes)
    }

    pub(super) fn finish(&mut self, seconds: f64) -> io::Result<()> {
        // `RunExitRecord { int32 exit_code = 1; int32 runtime = 2; }`
        let mut exit = Vec::new();
        put_integer(&mut exit, 2, seconds as u64);
        let bytes = self.log.record(EXIT, &exit);
        super::append(&self.path, &bytes)
    }
}

impl Log {
    /// The records of an epoch.
    fn row(&mut self, about: &About, row: &Row) -> Vec<u8> {
        let number = |value: f64| match value.is_nan() {
            // As Python writes it.
            true => "NaN".into(),
            false => Value::from(value).to_string(),
        };
        let mut items: Vec<(String, String)> = (row.values.iter())
            .map(|(tag, value)| (tag.clone(), number(*value)))
            .collect();
        items.push(("_step".into(), row.epoch.to_string()));
        items.push(("_runtime".into(), number(row.seconds)));
        items.push(("_timestamp".into(), number(about.started + row.seconds)));
        let (mut summary, mut history) = (Vec::new(), Vec::new());
        for (key, json) in &items {
            let item = item(2, key, json);
            put_bytes(&mut summary, 1, &item);
            put_bytes(&mut history, 1, &item);
        }
        // `HistoryRecord { repeated HistoryItem item = 1; HistoryStep step = 2; }`, `HistoryStep { int64 num = 1; }`
        let mut step = Vec::new();
        put_integer(&mut step, 1, u64::from(row.epoch));
        put_bytes(&mut history, 2, &step);
        let mut bytes = self.record(SUMMARY, &summary);
        bytes.extend(self.record(HISTORY, &history));
        bytes
    }

    /// A record with a message in `field`, as chunks.
    fn record(&mut self, field: u64, message: &[u8]) -> Vec<u8> {
        self.records += 1;
        let mut record = Vec::new();
        put_integer(&mut record, 1, self.records);
        put_bytes(&mut record, field, message);
        let bytes = chunks(&record, self.length);
        self.length += bytes.len();
        bytes
    }
}

/// The chunks of a record that begins at `position` in the file.
fn chunks(record: &[u8], position: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(record.len() + 2 * CHUNK_HEADER);
    let (mut rest, mut is_first) = (record, true);
    loop {
        let left = BLOCK - (position + out.len()) % BLOCK;
        if left < CHUNK_HEADER {
            out.resize(out.len() + left, 0);
            continue;
        }
        let (data, after) = rest.split_at(rest.len().min(left - CHUNK_HEADER));
        let kind = match (is_first, after.is_empty()) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&[kind]);
        checksum.update(data);
        out.extend(checksum.finalize().to_le_bytes());
        out.extend((data.len() as u16).to_le_bytes());
        out.push(kind);
        out.extend(data);
        if after.is_empty() {
            return out;
        }
        (rest, is_first) = (after, false);
    }
}

/// `HeaderRecord { VersionInfo version_info = 1; }`, `VersionInfo { string producer = 1; string min_consumer = 2; }`
fn version() -> Vec<u8> {
    let mut info = Vec::new();
    let producer = format!("rem {}", env!("CARGO_PKG_VERSION"));
    put_bytes(&mut info, 1, producer.as_bytes());
    put_bytes(&mut info, 2, OLDEST_READER.as_bytes());
    let mut header = Vec::new();
    put_bytes(&mut header, 1, &info);
    header
}

/// `RunRecord { string run_id = 1; string project = 3; ConfigRecord config = 4; string display_name = 8;
/// Timestamp start_time = 17; }`, `ConfigRecord { repeated ConfigItem update = 1; }`
fn run(about: &About, id: &str) -> Vec<u8> {
    let mut config = Vec::new();
    let sections = serde_json::to_value(&about.config).expect("a config is valid JSON");
    for (key, value) in sections.as_object().into_iter().flatten() {
        put_bytes(&mut config, 1, &item(1, key, &value.to_string()));
    }
    let mut start = Vec::new();
    put_integer(&mut start, 1, about.started as u64);
    put_integer(&mut start, 2, (about.started.fract() * 1e9) as u64);
    let mut run = Vec::new();
    put_bytes(&mut run, 1, id.as_bytes());
    put_bytes(&mut run, 3, PROJECT.as_bytes());
    put_bytes(&mut run, 4, &config);
    put_bytes(&mut run, 8, about.name.as_bytes());
    put_bytes(&mut run, 17, &start);
    run
}

/// `{ string key = 1; repeated string nested_key = 2; string value_json = 16; }` with the key in one of the two fields.
fn item(field: u64, key: &str, json: &str) -> Vec<u8> {
    let mut item = Vec::new();
    put_bytes(&mut item, field, key.as_bytes());
    put_bytes(&mut item, 16, json.as_bytes());
    item
}

/// Seconds since the Unix epoch as `20261120_001242`, in UTC.
fn timestamp(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01 of the Gregorian calendar, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = match month {
        0..10 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    format!(
        "{:04}{month:02}{day:02}_{:02}{:02}{:02}",
        era * 400 + year + next,
        time / 3600,
        time / 60 % 60,
        time % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_in_utc() {
        // `date -u -d @…`
        assert_eq!(timestamp(0.0), "19700101_000000");
        assert_eq!(timestamp(951_782_400.0), "20000229_000000");
        assert_eq!(timestamp(1_795_133_562.7), "20261120_001242");
        assert_eq!(timestamp(4_102_444_799.0), "20991231_235959");
    }

    /// Records of all lengths around a block's, after one another: chunks stay within blocks, and joined they are the
    /// records.
    #[test]
    fn records_are_split_at_blocks() {
        let mut file = HEADER.to_vec();
        let mut records = Vec::new();
        for length in (0..40).chain(BLOCK - 60..BLOCK + 20).chain([3 * BLOCK]) {
            let record: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
            file.extend(chunks(&record, file.len()));
            records.push(record);
        }
        let (mut found, mut joined) = (Vec::new(), Vec::<u8>::new());
        let mut at = HEADER.len();
        while at < file.len() {
            let left = BLOCK - at % BLOCK;
            if left < CHUNK_HEADER {
                assert!(file[at..at + left].iter().all(|byte| *byte == 0));
                at += left;
                continue;
            }
            let length = usize::from(u16::from_le_bytes([file[at + 4], file[at + 5]]));
            assert!(CHUNK_HEADER + length <= left);
            let kind = file[at + 6];
            joined.extend(&file[at + CHUNK_HEADER..at + CHUNK_HEADER + length]);
            at += CHUNK_HEADER + length;
            if [FULL, LAST].contains(&kind) {
                found.push(std::mem::take(&mut joined));
            }
        }
        assert_eq!(found, records);
    }
}
