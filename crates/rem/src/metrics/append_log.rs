//! A file that only grows, except that a resumed run cuts it back to its last checkpoint.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::files::{failed, parent, sync_dir};

/// An append-only file whose length is part of a checkpoint.
///
/// A run that dies between two checkpoints has logged lines that its resumed self will log again.
/// So a checkpoint remembers the length that [`AppendLog::sync`] returned, and [`AppendLog::open`] drops what came after.
pub struct AppendLog {
    path: PathBuf,
    writer: BufWriter<File>,
    length: u64,
}

impl AppendLog {
    /// Opens or creates the file and truncates it to `keep` bytes: 0 starts afresh.
    ///
    /// A file that is shorter than `keep` has lost lines that the checkpoint counts on: an error, and the file is left as it is.
    pub fn open(path: &Path, keep: u64) -> io::Result<Self> {
        let file = open_truncated(path, keep).map_err(failed("open log", path))?;
        sync_dir(parent(path))?;
        Ok(Self {
            path: path.to_owned(),
            writer: BufWriter::new(file),
            length: keep,
        })
    }

    /// Whether a file can be opened with `keep`, without changing it.
    pub fn check(path: &Path, keep: u64) -> io::Result<()> {
        let length = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && keep == 0 => 0,
            found => found.map_err(failed("read", path))?.len(),
        };
        long_enough(length, keep).map_err(failed("read log", path))
    }

    /// Adds `bytes` to the buffer; they reach the file with [`AppendLog::flush`] or earlier.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer
            .write_all(bytes)
            .map_err(failed("append to", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Hands everything to the operating system, so that whoever watches the run sees it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(failed("append to", &self.path))
    }

    /// Flushes, waits until the disk has it, and returns the length to `keep` on a resume from here.
    pub fn sync(&mut self) -> io::Result<u64> {
        self.flush()?;
        self.writer
            .get_ref()
            .sync_all()
            .map_err(failed("sync", &self.path))?;
        Ok(self.length)
    }

    /// Bytes in the log, those still in the buffer included.
    pub fn length(&self) -> u64 {
        self.length
    }
}

fn long_enough(length: u64, keep: u64) -> io::Result<()> {
    if length >= keep {
        return Ok(());
    }
    let reason =
        format!("it has {length} bytes, but the checkpoint was written when it had {keep}");
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

fn open_truncated(path: &Path, keep: u64) -> io::Result<File> {
    // `create` would leave an empty file behind where the kept one has vanished, and hide that it did.
    let mut file = OpenOptions::new()
        .write(true)
        .create(keep == 0)
        .truncate(false)
        .open(path)?;
    let length = file.metadata()?.len();
    long_enough(length, keep)?;
    file.set_len(keep)?;
    file.seek(SeekFrom::Start(keep))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_came_after_the_checkpoint_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = AppendLog::open(&path, 0).unwrap();
        log.append(b"one\n").unwrap();
        let checkpoint = log.sync().unwrap();
        assert_eq!(checkpoint, 4);
        log.append(b"lost\n").unwrap();
        drop(log);

        let mut log = AppendLog::open(&path, checkpoint).unwrap();
        log.append(b"two\n").unwrap();
        assert_eq!(log.sync().unwrap(), 8);
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_short_file_is_refused_with_both_lengths_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, b"12345").unwrap();
        let error = AppendLog::open(&path, 17).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let message = error.to_string();
        assert!(
            message.contains("5 bytes") && message.contains("17"),
            "{message}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"12345");
    }

    #[test]
    fn a_vanished_file_is_refused_and_not_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let error = AppendLog::open(&path, 1).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!path.exists());
    }

    #[test]
    fn a_flushed_line_is_visible_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = AppendLog::open(&path, 0).unwrap();
        log.append(b"seen\n").unwrap();
        log.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"seen\n");
    }
}
