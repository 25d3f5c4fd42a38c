//! Access to the files of a run directory. Names and symbolic links that lead out of it are rejected.

use std::path::{Path, PathBuf};

use rem::data::replay::archive::Archive;
use rem::run::checkpoint;
use rem_run::layout;
use serde::de::DeserializeOwned;

/// A file in a subdirectory of a run. `None` if `name` is not a plain file name, or a link leads out of the run.
pub(crate) fn file_in(run: &Path, subdir: &str, name: &str) -> Option<PathBuf> {
    let plain = Path::new(name).file_name().is_some_and(|file| file == name);
    if !plain || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return None;
    }
    let file = run.join(subdir).join(name).canonicalize().ok()?;
    let inside = file.starts_with(run.canonicalize().ok()?);
    (inside && file.is_file()).then_some(file)
}

/// A file at the top of a run directory, if it exists. An error if a link leads out of the run.
pub(super) fn run_file(run: &Path, name: &str) -> Result<Option<PathBuf>, String> {
    let path = run.join(name);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let outside = || format!("`{}` is not a file of this run", path.display());
    file_in(run, "", name).map(Some).ok_or_else(outside)
}

/// The text of a file, if it can be read.
pub(super) fn read_text(run: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(run_file(run, name).ok()??).ok()
}

/// The value of a JSON file, if it exists.
pub(super) fn read_json<T: DeserializeOwned>(run: &Path, name: &str) -> Result<Option<T>, String> {
    let Some(path) = run_file(run, name)? else {
        return Ok(None);
    };
    let with_path = |reason: String| format!("`{}`: {reason}", path.display());
    let bytes = std::fs::read(&path).map_err(|error| with_path(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| with_path(error.to_string()))
}

/// The replay of a run. Empty, with a problem, if `replay` is a link out of the run.
pub(crate) fn replay(run: &Path) -> Archive {
    let (replay, canonical_run) = (run.join(layout::REPLAY).canonicalize(), run.canonicalize());
    match (replay, canonical_run) {
        (Ok(replay), Ok(run)) if !replay.starts_with(&run) => {
            let mut empty = Archive::default();
            empty.problem = Some("`replay` is a link that leads out of the run".into());
            empty
        }
        _ => checkpoint::archive(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn create_run(dir: &Path) {
        fs::create_dir_all(dir.join("media")).unwrap();
        fs::write(dir.join("config.toml"), "").unwrap();
        fs::write(dir.join("media/a.png"), "a").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_a_run_are_rejected() {
        use std::os::unix::fs::symlink;
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        create_run(&dir);
        fs::write(parent.path().join("secret"), "s").unwrap();
        symlink(parent.path().join("secret"), dir.join("protocol.json")).unwrap();
        symlink(parent.path().join("nowhere"), dir.join("scores.json")).unwrap();
        assert!(run_file(&dir, "config.toml").unwrap().is_some());
        assert_eq!(run_file(&dir, "metrics.jsonl"), Ok(None));
        for link in ["protocol.json", "scores.json"] {
            assert!(run_file(&dir, link).unwrap_err().contains(link));
        }
        fs::create_dir(parent.path().join("replay")).unwrap();
        symlink(parent.path().join("replay"), dir.join("replay")).unwrap();
        assert!(replay(&dir).problem.unwrap().contains("link"));
        assert_eq!(replay(parent.path()).problem, None);
    }

    #[test]
    fn only_plain_names_of_files_inside_the_run_resolve() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        create_run(&dir);
        fs::write(parent.path().join("secret"), "s").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(parent.path().join("secret"), dir.join("media/link")).unwrap();
        assert!(file_in(&dir, "media", "a.png").is_some());
        for name in [
            "../config.toml",
            "..",
            ".",
            "",
            "/etc/passwd",
            "a.png/",
            "link",
            "absent",
            "a\0",
            "..\\secret",
        ] {
            assert_eq!(file_in(&dir, "media", name), None, "{name}");
        }
    }
}
