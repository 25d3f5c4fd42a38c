//! The list of served runs and studies. Addresses name them; only names in this list resolve to a directory.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rem_run::layout::is_run;
use rem_study::STUDY;

/// Depth below a given directory or a study to search for runs: `runs/GAME-seedN`, or one level deeper.
const MAX_DEPTH: usize = 2;

/// Most runs in the list.
const MAX_RUNS: usize = 5_000;

/// Finds runs and studies below some paths.
#[derive(Debug)]
pub(crate) struct RunIndex {
    paths: Vec<PathBuf>,
    /// The result of the last scan.
    known: Mutex<Found>,
}

/// Runs and studies by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub runs: BTreeMap<String, PathBuf>,
    pub studies: BTreeMap<String, PathBuf>,
}

impl RunIndex {
    /// An index of these run directories, and of directories that contain runs.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            known: Mutex::default(),
        }
    }

    /// All runs and studies. Scans the directories each time, because runs appear while the server is up.
    pub fn scan(&self) -> Found {
        let mut scan = Scan::default();
        for path in &self.paths {
            if is_run(path) {
                scan.add(&name_of(path), path);
            } else if is_study(path) {
                scan.add_study(&name_of(path), "", path);
            } else {
                scan.scan_dir(path, "", MAX_DEPTH);
            }
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = scan.found.clone();
        scan.found
    }

    /// The directory of a run. Scans only if the run is not where the last scan found it.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = known.runs.get(name).filter(|dir| is_run(dir)).cloned();
        drop(known);
        dir.or_else(|| self.scan().runs.remove(name))
    }
}

fn is_study(dir: &Path) -> bool {
    dir.join(STUDY).is_file()
}

/// A scan in progress.
#[derive(Default)]
struct Scan {
    found: Found,
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
            if self.found.runs.len() >= MAX_RUNS {
                return;
            }
            let name = format!("{prefix}{}", name_of(&dir));
            if is_run(&dir) {
                self.add(&name, &dir);
            } else if is_study(&dir) {
                self.add_study(&name, &format!("{name}/"), &dir);
            } else if depth > 1 {
                self.scan_dir(&dir, &format!("{name}/"), depth - 1);
            }
        }
    }

    /// Adds a run once.
    fn add(&mut self, name: &str, dir: &Path) {
        if self.dirs.insert(dir.into()) {
            insert(&mut self.found.runs, name, dir);
        }
    }

    /// Adds a study once, with its runs.
    fn add_study(&mut self, name: &str, prefix: &str, dir: &Path) {
        if self.dirs.insert(dir.into()) {
            insert(&mut self.found.studies, name, dir);
            self.scan_dir(dir, prefix, MAX_DEPTH);
        }
    }
}

/// Adds a directory under its name or, if that is taken, the name with a number.
fn insert(list: &mut BTreeMap<String, PathBuf>, name: &str, dir: &Path) {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !list.contains_key(name));
    list.insert(free.expect("some number is free"), dir.into());
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
        let names: Vec<_> = index.scan().runs.into_keys().collect();
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

    #[test]
    fn studies_are_found_with_the_runs_of_their_variants() {
        let parent = tempfile::tempdir().unwrap();
        let study = parent.path().join("group/paper");
        for name in ["catch-seed1", "no-pop/catch-seed1"] {
            create_run(&study.join(name));
        }
        fs::write(study.join("study.toml"), "").unwrap();
        let list = |path: &Path| {
            let found = RunIndex::new(vec![path.into()]).scan();
            let names = found.studies.into_keys().chain(found.runs.into_keys());
            names.collect::<Vec<_>>()
        };
        assert_eq!(
            list(parent.path()),
            [
                "group/paper",
                "group/paper/catch-seed1",
                "group/paper/no-pop/catch-seed1"
            ]
        );
        assert_eq!(list(&study), ["paper", "catch-seed1", "no-pop/catch-seed1"]);
    }
}
