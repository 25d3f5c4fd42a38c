//! Finds runs and studies in directories.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use rem_run::layout::is_run;

use crate::manifest::STUDY;

/// Depth below a given directory or a study to search for runs: `runs/GAME-seedN`, or one level deeper.
const MAX_DEPTH: usize = 2;

/// Most runs in the list.
const MAX_RUNS: usize = 5_000;

/// Runs and studies by name.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Runs, also those of studies.
    pub runs: BTreeMap<String, PathBuf>,
    /// Studies.
    pub studies: BTreeMap<String, PathBuf>,
}

impl Found {
    /// The runs and studies at these paths, or below them.
    pub fn below(paths: &[PathBuf]) -> Self {
        let mut scan = Scan::default();
        for path in paths {
            if is_run(path) {
                scan.add(&name_of(path), path);
            } else if is_study(path) {
                scan.add_study(&name_of(path), "", path);
            } else {
                scan.scan_dir(path, "", MAX_DEPTH);
            }
        }
        scan.found
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
