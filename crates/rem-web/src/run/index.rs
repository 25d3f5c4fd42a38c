//! The list of served runs. Addresses name runs; only names in this list resolve to a directory.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rem_run::layout::is_run;

/// Depth below a given directory to search for runs: `runs/GAME-seedN`, or one level deeper.
const MAX_DEPTH: usize = 2;

/// Most runs in the list.
const MAX_RUNS: usize = 5_000;

/// Finds runs below some paths.
#[derive(Debug)]
pub(crate) struct RunIndex {
    paths: Vec<PathBuf>,
    /// The result of the last scan.
    known: Mutex<BTreeMap<String, PathBuf>>,
}

impl RunIndex {
    /// An index of these run directories, and of directories that contain runs.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            known: Mutex::default(),
        }
    }

    /// All runs by name. Scans the directories each time, because runs appear while the server is up.
    pub fn scan(&self) -> BTreeMap<String, PathBuf> {
        let mut found = Scan::default();
        for path in &self.paths {
            if is_run(path) {
                found.add(&name_of(path), path);
            } else {
                found.scan_dir(path, "", MAX_DEPTH);
            }
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found.runs.clone();
        found.runs
    }

    /// The directory of a run. Scans only if the run is not where the last scan found it.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = known.get(name).filter(|dir| is_run(dir)).cloned();
        drop(known);
        dir.or_else(|| self.scan().remove(name))
    }
}

/// A scan in progress.
#[derive(Default)]
struct Scan {
    runs: BTreeMap<String, PathBuf>,
    dirs: HashSet<PathBuf>,
}

impl Scan {
    fn scan_dir(&mut self, dir: &Path, prefix: &str, depth: usize) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir() && !name_of(path).starts_with('.'))
            .collect();
        dirs.sort();
        for dir in dirs {
            if self.runs.len() >= MAX_RUNS {
                return;
            }
            let name = format!("{prefix}{}", name_of(&dir));
            if is_run(&dir) {
                self.add(&name, &dir);
            } else if depth > 1 {
                self.scan_dir(&dir, &format!("{name}/"), depth - 1);
            }
        }
    }

    /// Adds a run once, under its name or, if that is taken, the name with a number.
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

/// The last component of a path, also of `.`.
fn name_of(path: &Path) -> String {
    let named = path.file_name().map(ToOwned::to_owned);
    let name = named.or_else(|| path.canonicalize().ok()?.file_name().map(ToOwned::to_owned));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn create_run(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("config.toml"), "").unwrap();
    }

    #[test]
    fn runs_are_found_directly_and_up_to_two_levels_deep() {
        let parent = tempfile::tempdir().unwrap();
        for name in [
            "runs/a",
            "runs/group/b",
            "runs/x/y/too-deep",
            "runs/.hidden",
            "elsewhere/a",
        ] {
            create_run(&parent.path().join(name));
        }
        fs::create_dir_all(parent.path().join("runs/empty")).unwrap();
        let paths = ["runs", "elsewhere/a", "absent"].map(|name| parent.path().join(name));
        let index = RunIndex::new(paths.to_vec());
        let names: Vec<_> = index.scan().into_keys().collect();
        assert_eq!(names, ["a", "a (2)", "group/b"]);
        assert_eq!(index.find("a (2)"), Some(parent.path().join("elsewhere/a")));
        for name in ["", "..", "../runs/a", "/a", "a/", "group", "empty"] {
            assert_eq!(index.find(name), None, "{name}");
        }
    }

    #[test]
    fn new_runs_are_found_and_deleted_runs_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let index = RunIndex::new(vec![parent.path().into()]);
        assert_eq!(index.find("new"), None);
        create_run(&parent.path().join("new"));
        assert_eq!(index.find("new"), Some(parent.path().join("new")));
        fs::remove_dir_all(parent.path().join("new")).unwrap();
        assert_eq!(index.find("new"), None);
    }
}
