//! A writer of TensorBoard event files with scalars.
//!
//! An event file is a sequence of TFRecords, each with a protobuf `Event`. Scalars need two kinds of event and four wire
//! types. The crate `tensorboard-rs` has had no release since 2022 and depends on an old protobuf.

use std::io;
use std::path::Path;

use super::append_log::AppendLog;
use crate::run::protobuf::{put_bytes, put_double, put_float, put_integer};

/// TensorBoard reads every file with `tfevents` in its name. The usual time and host are missing here, because a resumed
/// run continues the same file.
pub(super) const FILE_NAME: &str = "events.out.tfevents.0.rem";

/// Writes scalars to an event file.
pub(super) struct EventFile {
    log: AppendLog,
}

impl EventFile {
    /// Opens or creates the file, truncated to `keep` bytes. Writes the version record if it is empty.
    pub(super) fn open(path: &Path, keep: u64, wall_time: f64) -> io::Result<Self> {
        let mut log = AppendLog::open(path, keep)?;
        if log.length() == 0 {
            log.append(&record(&version_event(wall_time)))?;
            log.flush()?;
        }
        Ok(Self { log })
    }

    /// Writes one event with `values` (tag, value) at `step`. `wall_time` is in seconds since the Unix epoch.
    pub(super) fn scalars(
        &mut self,
        wall_time: f64,
        step: u32,
        values: &[(String, f64)],
    ) -> io::Result<()> {
        let event = scalars_event(wall_time, step, values);
        self.log.append(&record(&event))?;
        self.log.flush()
    }

    /// Syncs the file to disk, and returns its length.
    pub(super) fn sync(&mut self) -> io::Result<u64> {
        self.log.sync()
    }
}

// `tensorflow.Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }`

fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, b"brain.Event:2");
    event
}

fn scalars_event(wall_time: f64, step: u32, values: &[(String, f64)]) -> Vec<u8> {
    // `Summary { repeated Value value = 1; }`, `Value { string tag = 1; float simple_value = 2; }`
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, tag.as_bytes());
        put_float(&mut entry, 2, *value as f32);
        put_bytes(&mut summary, 1, &entry);
    }
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_integer(&mut event, 2, u64::from(step));
    put_bytes(&mut event, 5, &summary);
    event
}

/// A TFRecord: length, checksum of the length, data, checksum of the data.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

/// The masked CRC-32C of TFRecord.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A protobuf field: number and raw value (varints as eight bytes).
    type Field = (u64, Vec<u8>);

    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (head, tail) = bytes.split_at(count);
        *bytes = tail;
        head
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn fields(mut message: &[u8]) -> Vec<Field> {
        let mut fields = Vec::new();
        while !message.is_empty() {
            let key = take_varint(&mut message);
            let value = match key & 7 {
                0 => take_varint(&mut message).to_le_bytes().to_vec(),
                1 => take(&mut message, 8).to_vec(),
                2 => {
                    let length = take_varint(&mut message) as usize;
                    take(&mut message, length).to_vec()
                }
                5 => take(&mut message, 4).to_vec(),
                wire_type => panic!("wire type {wire_type}"),
            };
            fields.push((key >> 3, value));
        }
        fields
    }

    fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !file.is_empty() {
            let length = take(&mut file, 8);
            assert_eq!(take(&mut file, 4), masked_crc(length).to_le_bytes());
            let data = take(
                &mut file,
                u64::from_le_bytes(length.try_into().unwrap()) as usize,
            );
            assert_eq!(take(&mut file, 4), masked_crc(data).to_le_bytes());
            records.push(data.to_vec());
        }
        records
    }

    #[test]
    fn checksums_equal_tensorflows() {
        // crc32c("123456789") = 0xe3069283, the check value of the polynomial (RFC 3720); masked:
        // (0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8 mod 2^32
        assert_eq!(masked_crc(b"123456789"), 0xc78a_b0e5);
    }

    #[test]
    fn events_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut events = EventFile::open(&path, 0, 1.5).unwrap();
        let values = [
            ("tokenizer/loss".to_owned(), 0.25),
            ("tokenizer/kl".to_owned(), -2.0),
        ];
        events.scalars(2.5, 300, &values).unwrap();

        let records = records(&fs::read(&path).unwrap());
        assert_eq!(records.len(), 2);
        let version = fields(&records[0]);
        assert_eq!(version[0], (1, 1.5f64.to_le_bytes().to_vec()));
        assert_eq!(version[1], (3, b"brain.Event:2".to_vec()));
        let event = fields(&records[1]);
        assert_eq!(event[0], (1, 2.5f64.to_le_bytes().to_vec()));
        assert_eq!(event[1], (2, 300u64.to_le_bytes().to_vec()));
        assert_eq!(event[2].0, 5);
        for (decoded, (tag, value)) in fields(&event[2].1).iter().zip(&values) {
            let entry = fields(&decoded.1);
            assert_eq!(entry[0], (1, tag.as_bytes().to_vec()));
            assert_eq!(entry[1], (2, (*value as f32).to_le_bytes().to_vec()));
        }
        assert_eq!(fields(&event[2].1).len(), 2);
    }

    #[test]
    fn a_resumed_file_has_one_version_record_and_no_truncated_events() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut events = EventFile::open(&path, 0, 0.0).unwrap();
        events.scalars(1.0, 1, &[("a".to_owned(), 1.0)]).unwrap();
        let checkpoint = events.sync().unwrap();
        events.scalars(2.0, 2, &[("a".to_owned(), 2.0)]).unwrap();
        drop(events);

        let mut events = EventFile::open(&path, checkpoint, 9.0).unwrap();
        events.scalars(3.0, 2, &[("a".to_owned(), 3.0)]).unwrap();
        let times: Vec<f64> = records(&fs::read(&path).unwrap())
            .iter()
            .map(|event| f64::from_le_bytes(fields(event)[0].1.as_slice().try_into().unwrap()))
            .collect();
        assert_eq!(times, [0.0, 1.0, 3.0]);
    }
}
