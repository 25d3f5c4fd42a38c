//! Follows a growing log. A log is truncated when a run resumes from an earlier epoch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::files::run_file;

/// Most bytes per poll. The next poll reads on. It bounds the memory of a stream.
const MAX_BYTES: u64 = 1 << 20;

/// A reader that returns the new lines of a log.
#[derive(Debug)]
pub(crate) struct LogTail {
    run: PathBuf,
    log: &'static str,
    /// The end of the last line read.
    offset: u64,
    /// The last line read. If the file has another line there, it was truncated and has grown again.
    last: Vec<u8>,
}

/// The result of a poll.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NewLines<T> {
    /// The log was truncated: `lines` replace all earlier ones.
    pub reset: bool,
    pub lines: Vec<T>,
}

impl<T> NewLines<T> {
    pub fn is_empty(&self) -> bool {
        !self.reset && self.lines.is_empty()
    }
}

impl LogTail {
    pub fn new(run: PathBuf, log: &'static str) -> Self {
        Self {
            run,
            log,
            offset: 0,
            last: Vec::new(),
        }
    }

    /// Complete lines since the last poll. A missing file counts as empty; lines that are not valid are skipped.
    pub fn poll<T: DeserializeOwned>(&mut self) -> io::Result<NewLines<T>> {
        let path = run_file(&self.run, self.log).map_err(io::Error::other)?;
        let mut file = path.map(File::open).transpose()?;
        let unchanged = match &mut file {
            Some(file) => self.has_last_line(file)?,
            None => self.offset == 0,
        };
        if !unchanged {
            self.offset = 0;
            self.last.clear();
        }
        let lines = match file {
            Some(file) => self.read_lines(file)?,
            None => Vec::new(),
        };
        Ok(NewLines {
            reset: !unchanged,
            lines,
        })
    }

    fn has_last_line(&self, file: &mut File) -> io::Result<bool> {
        if file.metadata()?.len() < self.offset {
            return Ok(false);
        }
        let mut found = vec![0; self.last.len()];
        file.seek(SeekFrom::Start(self.offset - self.last.len() as u64))?;
        Ok(file.read_exact(&mut found).is_ok() && found == self.last)
    }

    fn read_lines<T: DeserializeOwned>(&mut self, mut file: File) -> io::Result<Vec<T>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset))?;
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let newline = |byte: &u8| *byte == b'\n';
        let end = bytes.iter().rposition(newline).map_or(0, |at| at + 1);
        let complete = &bytes[..end];
        if let Some(last) = complete.split_inclusive(newline).next_back() {
            self.last = last.to_vec();
        }
        self.offset += complete.len() as u64;
        Ok(rem_run::parse_lines(complete).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    fn numbers(appended: &NewLines<Value>) -> Vec<u64> {
        appended
            .lines
            .iter()
            .filter_map(|line| line["n"].as_u64())
            .collect()
    }

    #[test]
    fn complete_lines_are_returned_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = LogTail::new(dir.path().into(), "log.jsonl");
        assert!(tail.poll::<Value>().unwrap().is_empty());
        fs::write(&path, "{\"n\":1}\nnot json\n{\"n\":2}\n{\"n\"").unwrap();
        assert_eq!(numbers(&tail.poll().unwrap()), [1, 2]);
        assert!(tail.poll::<Value>().unwrap().is_empty());
        fs::write(&path, "{\"n\":1}\nnot json\n{\"n\":2}\n{\"n\":3}\n").unwrap();
        let more = tail.poll().unwrap();
        assert_eq!((more.reset, numbers(&more)), (false, vec![3]));
    }

    #[test]
    fn a_truncated_log_is_returned_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = LogTail::new(dir.path().into(), "log.jsonl");
        fs::write(&path, "{\"n\":1}\n{\"n\":2}\n").unwrap();
        tail.poll::<Value>().unwrap();
        fs::write(&path, "{\"n\":1}\n").unwrap();
        let cut = tail.poll().unwrap();
        assert_eq!((cut.reset, numbers(&cut)), (true, vec![1]));
        // Truncated and longer again between two polls.
        fs::write(&path, "{\"n\":7}\n{\"n\":8}\n{\"n\":9}\n").unwrap();
        let grown = tail.poll().unwrap();
        assert_eq!((grown.reset, numbers(&grown)), (true, vec![7, 8, 9]));
        fs::remove_file(&path).unwrap();
        assert!(tail.poll::<Value>().unwrap().reset);
        assert!(tail.poll::<Value>().unwrap().is_empty());
    }
}
