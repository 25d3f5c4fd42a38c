//! Crash-safe file writes: a file holds its old content or its new content, never a mix.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces `path` with `bytes`: writes `<name>.tmp`, syncs, renames it over `path` and syncs the directory.
///
/// After a crash at any point `path` holds all of its old content or all of the new content.
/// Only one writer per path at a time: two would share the temporary file.
///
/// # Errors
///
/// If the file cannot be written. The message names `path`.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let tmp = temporary_path(path)?;
    let written = write_and_sync(&tmp, bytes)
        .and_then(|()| fs::rename(&tmp, path))
        .map_err(failed("write", path));
    if let Err(error) = written {
        // Report the first error. The next write overwrites a leftover.
        let _ = fs::remove_file(&tmp);
        return Err(error);
    }
    sync_dir(parent(path))
}

/// Syncs a directory: a file that was created or renamed in it survives a power cut only after this.
///
/// Does nothing on systems other than Unix, where directories cannot be opened.
///
/// # Errors
///
/// If the directory cannot be opened or synced. The message names `path`.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|dir| dir.sync_all())
            .map_err(failed("sync directory", path))?;
    }
    Ok(())
}

/// For `map_err`: adds the action and the path to an I/O error, whose own message ("No space left") lacks both.
pub fn failed(action: &str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| {
        io::Error::new(
            error.kind(),
            format!(
                "cannot {action} `{}`: {}",
                path.display(),
                crate::reason(&error)
            ),
        )
    }
}

/// The directory of `path`: `.` for a bare file name, for which [`Path::parent`] is empty.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// The length of all files below a directory, in bytes. Files that cannot be read count as 0, because a run that trains
/// deletes some.
pub fn directory_size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        return Err(failed("write", path)(error));
    };
    let mut name = name.to_owned();
    name.push(".tmp");
    Ok(path.with_file_name(name))
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn write_atomic_replaces_the_file_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scores.json");
        write_atomic(&path, b"a long first version").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names_in(dir.path()), ["scores.json"]);
    }

    #[test]
    fn a_failed_write_preserves_the_old_content_and_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"old").unwrap();
        let error = write_atomic(&path, b"new").unwrap_err();
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(fs::read(path.join("inside")).unwrap(), b"old");
        assert_eq!(names_in(dir.path()), ["taken"]);
    }

    #[test]
    fn the_size_of_a_directory_is_that_of_all_its_files() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(directory_size(dir.path()), 0);
        fs::create_dir(dir.path().join("inside")).unwrap();
        fs::write(dir.path().join("a"), [0; 10]).unwrap();
        fs::write(dir.path().join("inside/b"), [0; 5]).unwrap();
        assert_eq!(directory_size(dir.path()), 15);
        assert_eq!(directory_size(&dir.path().join("absent")), 0);
    }

    #[test]
    fn an_error_keeps_the_kind_of_its_cause() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent/file");
        let error = write_atomic(&path, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
