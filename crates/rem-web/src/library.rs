//! The runs that are served: which there are, and where. A run is only ever found by its name in this list, and a file of
//! it only by its plain name, so no address leads out of the run directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How deep below a named folder runs are looked for: `runs/GAME-seedN`, or one folder deeper.
const DEPTH: usize = 2;

/// So many runs are listed at most.
const MOST: usize = 5_000;

#[derive(Debug)]
pub struct Library {
    paths: Vec<PathBuf>,
}

impl Library {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths }
    }

    /// All runs by name, looked for anew: runs come while one watches.
    pub fn runs(&self) -> BTreeMap<String, PathBuf> {
        let mut runs = BTreeMap::new();
        for path in &self.paths {
            if is_run(path) {
                add(&mut runs, &name_of(path), path);
            } else {
                look_into(path, "", DEPTH, &mut runs);
            }
        }
        runs
    }

    /// The directory of a run.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.runs().remove(name)
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

/// Whether a directory holds a run, maybe one that has only just begun.
fn is_run(dir: &Path) -> bool {
    let files = ["config.toml", "protocol.json", "metrics.jsonl"];
    files.iter().any(|file| dir.join(file).is_file())
}

fn look_into(dir: &Path, prefix: &str, depth: usize, runs: &mut BTreeMap<String, PathBuf>) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !name_of(path).starts_with('.'))
        .collect();
    folders.sort();
    for folder in folders {
        if runs.len() >= MOST {
            return;
        }
        let name = format!("{prefix}{}", name_of(&folder));
        if is_run(&folder) {
            add(runs, &name, &folder);
        } else if depth > 1 {
            look_into(&folder, &format!("{name}/"), depth - 1, runs);
        }
    }
}

/// A run named twice on the command line is one; two of the same name are told apart by a number.
fn add(runs: &mut BTreeMap<String, PathBuf>, name: &str, dir: &Path) {
    if runs.values().any(|known| known == dir) {
        return;
    }
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !runs.contains_key(name));
    runs.insert(free.expect("some number is free"), dir.into());
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
