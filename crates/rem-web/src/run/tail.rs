//! A log that grows, and may be cut back when a run is resumed from an earlier epoch.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

use crate::library::own_file;

/// At most so many bytes are read at once; the rest comes with the next poll.
const MOST_BYTES: u64 = 1 << 22;

#[derive(Debug)]
pub struct Tail {
    run: PathBuf,
    log: &'static str,
    /// Up to where it was read: the end of a line.
    offset: u64,
    /// The last line read. Where another one stands in its place, the log was cut back and has grown again.
    last: Vec<u8>,
}

/// What was new.
#[derive(Debug, Default, PartialEq)]
pub struct Appended {
    /// What was told before no longer holds: these lines are the log from its start.
    pub restarted: bool,
    pub lines: Vec<Value>,
}

impl Appended {
    pub fn is_nothing(&self) -> bool {
        !self.restarted && self.lines.is_empty()
    }
}

impl Tail {
    /// A log of a run.
    pub fn new(run: PathBuf, log: &'static str) -> Self {
        Self {
            run,
            log,
            offset: 0,
            last: Vec::new(),
        }
    }

    /// Whole lines since the last poll. A file that is not there is empty; lines that are no JSON are left out.
    pub fn poll(&mut self) -> io::Result<Appended> {
        let path = own_file(&self.run, self.log).map_err(io::Error::other)?;
        let mut file = path.map(File::open).transpose()?;
        let unchanged = match &mut file {
            Some(file) => self.is_in_place(file)?,
            None => self.offset == 0,
        };
        if !unchanged {
            self.offset = 0;
            self.last.clear();
        }
        let lines = match file {
            Some(file) => self.read_on(file)?,
            None => Vec::new(),
        };
        Ok(Appended {
            restarted: !unchanged,
            lines,
        })
    }

    fn is_in_place(&self, file: &mut File) -> io::Result<bool> {
        if file.metadata()?.len() < self.offset {
            return Ok(false);
        }
        let mut found = vec![0; self.last.len()];
        file.seek(SeekFrom::Start(self.offset - self.last.len() as u64))?;
        Ok(file.read_exact(&mut found).is_ok() && found == self.last)
    }

    fn read_on(&mut self, mut file: File) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset))?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let lines: Vec<&[u8]> = bytes[..whole]
            .split_inclusive(|byte| *byte == b'\n')
            .collect();
        if let Some(last) = lines.last() {
            self.last = last.to_vec();
        }
        self.offset += whole as u64;
        let parsed = lines
            .iter()
            .filter_map(|line| serde_json::from_slice(line).ok());
        Ok(parsed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn numbers(appended: &Appended) -> Vec<u64> {
        appended
            .lines
            .iter()
            .filter_map(|line| line["n"].as_u64())
            .collect()
    }

    #[test]
    fn whole_lines_come_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = Tail::new(dir.path().into(), "log.jsonl");
        assert!(tail.poll().unwrap().is_nothing());
        fs::write(&path, "{\"n\":1}\nnot json\n{\"n\":2}\n{\"n\"").unwrap();
        assert_eq!(numbers(&tail.poll().unwrap()), [1, 2]);
        assert!(tail.poll().unwrap().is_nothing());
        fs::write(&path, "{\"n\":1}\nnot json\n{\"n\":2}\n{\"n\":3}\n").unwrap();
        let more = tail.poll().unwrap();
        assert_eq!((more.restarted, numbers(&more)), (false, vec![3]));
    }

    #[test]
    fn a_log_that_was_cut_back_is_told_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = Tail::new(dir.path().into(), "log.jsonl");
        fs::write(&path, "{\"n\":1}\n{\"n\":2}\n").unwrap();
        tail.poll().unwrap();
        fs::write(&path, "{\"n\":1}\n").unwrap();
        let cut = tail.poll().unwrap();
        assert_eq!((cut.restarted, numbers(&cut)), (true, vec![1]));
        // Cut and longer again between two polls.
        fs::write(&path, "{\"n\":7}\n{\"n\":8}\n{\"n\":9}\n").unwrap();
        let grown = tail.poll().unwrap();
        assert_eq!((grown.restarted, numbers(&grown)), (true, vec![7, 8, 9]));
        fs::remove_file(&path).unwrap();
        assert!(tail.poll().unwrap().restarted);
        assert!(tail.poll().unwrap().is_nothing());
    }
}
