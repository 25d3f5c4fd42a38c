//! [`AppendLog`]: a log file that a resumed run truncates to its length at the checkpoint.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rem_run::files::{failed, parent, sync_dir};

/// An append-only file whose length is part of a checkpoint.
///
/// A run that is interrupted between two checkpoints has written lines that it writes again after a resume. A checkpoint
/// therefore stores the length that [`AppendLog::sync`] returns, and [`AppendLog::open`] truncates the file to it.
pub(super) struct AppendLog {
    path: PathBuf,
    writer: BufWriter<File>,
    length: u64,
}

impl AppendLog {
    /// Opens or creates the file and truncates it to `keep` bytes. A shorter file is an error and stays unchanged.
    pub(super) fn open(path: &Path, keep: u64) -> io::Result<Self> {
        let file = open_truncated(path, keep).map_err(failed("open log", path))?;
        sync_dir(parent(path))?;
        Ok(Self {
            path: path.to_owned(),
            writer: BufWriter::new(file),
            length: keep,
        })
    }

    /// Checks, without changing the file, that [`AppendLog::open`] would accept `keep`.
    pub(super) fn check(path: &Path, keep: u64) -> io::Result<()> {
        let length = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && keep == 0 => 0,
            found => found.map_err(failed("read", path))?.len(),
        };
        long_enough(length, keep).map_err(failed("read log", path))
    }

    /// Appends `bytes` to the buffer.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer
            .write_all(bytes)
            .map_err(failed("append to", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes the buffer to the file, so that other processes see it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(failed("append to", &self.path))
    }

    /// Flushes, syncs to disk, and returns the length.
    pub(super) fn sync(&mut self) -> io::Result<u64> {
        self.flush()?;
        self.writer
            .get_ref()
            .sync_all()
            .map_err(failed("sync", &self.path))?;
        Ok(self.length)
    }

    /// Length in bytes, including the buffer.
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

fn long_enough(length: u64, keep: u64) -> io::Result<()> {
    if length >= keep {
        return Ok(());
    }
    let reason = format!("it has {length} bytes, but the checkpoint expects at least {keep}");
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

fn open_truncated(path: &Path, keep: u64) -> io::Result<File> {
    // If the file must exist, do not create an empty one: that would hide the loss.
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
    fn lines_after_the_checkpoint_are_truncated() {
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
    fn a_file_that_is_too_short_is_an_error_and_unchanged() {
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
    fn a_missing_file_is_an_error_and_not_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let error = AppendLog::open(&path, 1).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!path.exists());
    }

    #[test]
    fn flushed_lines_are_visible_to_readers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = AppendLog::open(&path, 0).unwrap();
        log.append(b"seen\n").unwrap();
        log.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"seen\n");
    }
}
