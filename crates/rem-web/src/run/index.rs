//! The list of served runs and studies. Addresses name them; only names in this list resolve to a directory.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rem_run::layout::is_run;
use rem_study::Found;

/// Finds runs and studies below some paths.
#[derive(Debug)]
pub(crate) struct RunIndex {
    paths: Vec<PathBuf>,
    /// The result of the last scan.
    known: Mutex<Found>,
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
        let found = Found::below(&self.paths);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        found
    }

    /// The directory of a run. Scans only if the run is not where the last scan found it.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = known.runs.get(name).filter(|dir| is_run(dir)).cloned();
        drop(known);
        dir.or_else(|| self.scan().runs.remove(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

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
