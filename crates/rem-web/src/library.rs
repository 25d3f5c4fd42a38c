//! The runs that are served: which there are, and where. A run is only ever found by its name in this list, and a file of
//! it only by its plain name, so no address leads out of the run directories.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rem::checkpoint;
use rem::replay::archive::Archive;

/// How deep below a named folder runs are looked for: `runs/GAME-seedN`, or one folder deeper.
const DEPTH: usize = 2;

/// So many runs are listed at most.
const MOST: usize = 5_000;

#[derive(Debug)]
pub struct Library {
    paths: Vec<PathBuf>,
    /// As they were found last.
    known: Mutex<BTreeMap<String, PathBuf>>,
}

impl Library {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            known: Mutex::default(),
        }
    }

    /// All runs by name, looked for anew: runs come while one watches.
    pub fn runs(&self) -> BTreeMap<String, PathBuf> {
        let mut found = Found::default();
        for path in &self.paths {
            if is_run(path) {
                found.add(&name_of(path), path);
            } else {
                found.look_into(path, "", DEPTH);
            }
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found.runs.clone();
        found.runs
    }

    /// The directory of a run. All are looked for only if it is not where it was found last.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let there = known.get(name).filter(|dir| is_run(dir)).cloned();
        drop(known);
        there.or_else(|| self.runs().remove(name))
    }
}

/// A file in a folder of a run, unless its name is not a plain one or it lies elsewhere by a link.
pub fn file_in(run: &Path, folder: &str, name: &str) -> Option<PathBuf> {
    let plain = Path::new(name).file_name().is_some_and(|file| file == name);
    if !plain || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return None;
    }
    let file = run.join(folder).join(name).canonicalize().ok()?;
    let inside = file.starts_with(run.canonicalize().ok()?);
    (inside && file.is_file()).then_some(file)
}

/// A file of a run by a name that we give it, if it is there; refused if it lies elsewhere by a link.
pub fn own_file(run: &Path, name: &str) -> Result<Option<PathBuf>, String> {
    let path = run.join(name);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let elsewhere = || format!("`{}` is no file of this run", path.display());
    file_in(run, "", name).map(Some).ok_or_else(elsewhere)
}

/// The replay of a run, unless it lies elsewhere by a link.
pub fn replay(run: &Path) -> Archive {
    let (replay, run_itself) = (run.join("replay").canonicalize(), run.canonicalize());
    match (replay, run_itself) {
        (Ok(replay), Ok(run)) if !replay.starts_with(&run) => {
            let mut none = Archive::default();
            none.problem = Some("`replay` is a link that leads out of the run".into());
            none
        }
        _ => checkpoint::archive(run),
    }
}

/// Whether a directory holds a run, maybe one that has only just begun.
fn is_run(dir: &Path) -> bool {
    let files = ["config.toml", "protocol.json", "metrics.jsonl"];
    files.iter().any(|file| dir.join(file).is_file())
}

/// Runs while they are looked for.
#[derive(Default)]
struct Found {
    runs: BTreeMap<String, PathBuf>,
    dirs: HashSet<PathBuf>,
}

impl Found {
    fn look_into(&mut self, dir: &Path, prefix: &str, depth: usize) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir() && !name_of(path).starts_with('.'))
            .collect();
        folders.sort();
        for folder in folders {
            if self.runs.len() >= MOST {
                return;
            }
            let name = format!("{prefix}{}", name_of(&folder));
            if is_run(&folder) {
                self.add(&name, &folder);
            } else if depth > 1 {
                self.look_into(&folder, &format!("{name}/"), depth - 1);
            }
        }
    }

    /// A run named twice on the command line is one; two of the same name are told apart by a number.
    fn add(&mut self, name: &str, dir: &Path) {
        if !self.dirs.insert(dir.into()) {
            return;
        }
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.runs.contains_key(name));
        let free = free.expect("some number is free");
        self.runs.insert(free, dir.into());
    }
}

/// The last part of a path, also of `.`.
fn name_of(path: &Path) -> String {
    let named = path.file_name().map(ToOwned::to_owned);
    let name = named.or_else(|| path.canonicalize().ok()?.file_name().map(ToOwned::to_owned));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run(dir: &Path) {
        fs::create_dir_all(dir.join("media")).unwrap();
        fs::write(dir.join("config.toml"), "").unwrap();
        fs::write(dir.join("media/a.png"), "a").unwrap();
    }

    #[test]
    fn runs_are_found_in_folders_and_by_themselves() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "runs/a",
            "runs/group/b",
            "runs/x/y/too-deep",
            "runs/.hidden",
            "elsewhere/a",
        ] {
            run(&place.path().join(name));
        }
        fs::create_dir_all(place.path().join("runs/empty")).unwrap();
        let paths = ["runs", "elsewhere/a", "absent"].map(|name| place.path().join(name));
        let library = Library::new(paths.to_vec());
        let names: Vec<_> = library.runs().into_keys().collect();
        assert_eq!(names, ["a", "a (2)", "group/b"]);
        assert_eq!(
            library.find("a (2)"),
            Some(place.path().join("elsewhere/a"))
        );
        for name in ["", "..", "../runs/a", "/a", "a/", "group", "empty"] {
            assert_eq!(library.find(name), None, "{name}");
        }
        // Runs come and go.
        run(&place.path().join("runs/new"));
        assert_eq!(library.find("new"), Some(place.path().join("runs/new")));
        fs::remove_dir_all(place.path().join("runs/new")).unwrap();
        assert_eq!(library.find("new"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_no_file_of_a_run() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("run");
        run(&dir);
        fs::write(place.path().join("secret"), "s").unwrap();
        symlink(place.path().join("secret"), dir.join("protocol.json")).unwrap();
        symlink(place.path().join("nowhere"), dir.join("scores.json")).unwrap();
        assert!(own_file(&dir, "config.toml").unwrap().is_some());
        assert_eq!(own_file(&dir, "metrics.jsonl"), Ok(None));
        for link in ["protocol.json", "scores.json"] {
            assert!(own_file(&dir, link).unwrap_err().contains(link));
        }
        fs::create_dir(place.path().join("replay")).unwrap();
        symlink(place.path().join("replay"), dir.join("replay")).unwrap();
        assert!(replay(&dir).problem.unwrap().contains("link"));
        assert_eq!(replay(place.path()).problem, None);
    }

    #[test]
    fn no_file_leads_out_of_its_run() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("run");
        run(&dir);
        fs::write(place.path().join("secret"), "s").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(place.path().join("secret"), dir.join("media/link")).unwrap();
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
