//! Writing files so that a crash leaves the old contents or the new, never a half.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces `path` by `bytes`: written to `<name>.tmp` beside it, synced, renamed over it, directory synced.
///
/// After a crash at any moment `path` holds either all of its old contents or all of the new ones.
/// One writer per path: two at a time would share the temporary file.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let tmp = tmp_beside(path)?;
    let written = write_and_sync(&tmp, bytes)
        .and_then(|()| fs::rename(&tmp, path))
        .map_err(failed("write", path));
    if let Err(error) = written {
        // The error that stopped us is the one to report; a leftover would only be overwritten next time.
        let _ = fs::remove_file(&tmp);
        return Err(error);
    }
    sync_dir(parent(path))
}

/// Makes the entries of a directory durable: a file that was created or renamed in it survives a power cut
/// only once the directory itself is on the disk. Elsewhere than on Unix directories cannot be opened, and this does nothing.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|dir| dir.sync_all())
            .map_err(failed("sync directory", path))?;
    }
    Ok(())
}

/// For `map_err`: says what failed and where, since the operating system's message ("No space left") does not.
pub fn failed(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| {
        io::Error::new(
            error.kind(),
            format!("cannot {verb} `{}`: {error}", path.display()),
        )
    }
}

/// The directory of `path`, also for a bare file name, whose `Path::parent` is empty.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

fn tmp_beside(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it does not name a file");
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
    fn write_atomic_replaces_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scores.json");
        write_atomic(&path, b"a long first version").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names_in(dir.path()), ["scores.json"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file_and_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"kept").unwrap();
        let error = write_atomic(&path, b"new").unwrap_err();
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(fs::read(path.join("inside")).unwrap(), b"kept");
        assert_eq!(names_in(dir.path()), ["taken"]);
    }

    #[test]
    fn a_missing_directory_is_an_error_of_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent/file");
        let error = write_atomic(&path, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
