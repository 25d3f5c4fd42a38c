//! Where the ROM of a game is. A ROM is only taken if its checksum says that it is the right one.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use md5::{Digest, Md5};

use crate::AleError;
use crate::error::Tried;
use crate::games::Game;

/// Inside the sources of ALE.
const ROMS_IN_SOURCES: &str = "src/ale/python/roms";

/// A file that holds the right ROM of a game.
#[derive(Clone, Debug, PartialEq)]
pub struct Rom {
    game: &'static Game,
    file: PathBuf,
}

impl Rom {
    /// Looks in `rom_dir`, in the folder that the variable `ALE_ROMS_DIR` names, in the folder that
    /// `scripts/setup-atari` makes, and in an installed `ale-py`.
    pub fn find(game: &'static Game, rom_dir: Option<&Path>) -> Result<Self, AleError> {
        let variable = named(env::var_os("ALE_ROMS_DIR"));
        let places = [
            Place("--rom-dir", rom_dir.map(Path::to_owned), "not given"),
            Place("ALE_ROMS_DIR", variable, "not set"),
            Place("scripts/setup-atari", Some(setup_folder()), NO_FOLDER),
        ];
        // Python takes its time: only if there is no other way.
        let python = || Place("ale-py for Python", installed_folder(), "not installed");
        find_in(game, places.into_iter().chain(iter::once_with(python)))
    }

    /// This file, if it is the right one.
    pub fn open(game: &'static Game, file: impl Into<PathBuf>) -> Result<Self, AleError> {
        let file = file.into();
        let content = fs::read(&file).map_err(|error| AleError::RomUnreadable {
            path: culprit(&file),
            error,
        })?;
        let found: String = Md5::digest(content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if found != game.rom_md5 {
            return Err(AleError::RomWrong {
                game: game.name,
                file,
                expected: game.rom_md5,
                found,
            });
        }
        Ok(Self { game, file })
    }

    pub fn game(&self) -> &'static Game {
        self.game
    }

    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// What it is called, where it is, and what to say if it is nowhere.
struct Place(&'static str, Option<PathBuf>, &'static str);

const NO_FOLDER: &str = "no such folder";
const NO_FILE: &str = "no such file";

/// Takes the first file that is there: a wrong or locked one is an error, not a reason to look elsewhere.
fn find_in(game: &'static Game, places: impl Iterator<Item = Place>) -> Result<Rom, AleError> {
    let mut tried = Vec::new();
    for Place(what, folder, why) in places {
        let Some(folder) = folder else {
            tried.push(Tried {
                what,
                file: None,
                why,
            });
            continue;
        };
        let file = folder.join(format!("{}.bin", game.name));
        match fs::metadata(&file) {
            Ok(_) => return Rom::open(game, file),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let why = if folder.is_dir() { NO_FILE } else { NO_FOLDER };
                let file = Some(file);
                tried.push(Tried { what, file, why });
            }
            Err(error) => {
                return Err(AleError::RomUnreadable {
                    path: folder,
                    error,
                });
            }
        }
    }
    Err(AleError::RomMissing {
        game: game.name,
        tried,
    })
}

/// The folder if it hides the file, and otherwise the file.
fn culprit(file: &Path) -> PathBuf {
    let hidden = fs::metadata(file).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let folder = file.parent().filter(|_| hidden);
    folder.unwrap_or(file).to_owned()
}

fn named(folder: Option<OsString>) -> Option<PathBuf> {
    folder
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
}

/// Beside the sources that the emulator was built from; without it, where they would be.
fn setup_folder() -> PathBuf {
    let sources = option_env!("REM_ALE_BUILT_FROM").map(PathBuf::from);
    let sources = sources.unwrap_or_else(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        workspace
            .expect("a crate lies in crates/")
            .join("third-party/ale")
    });
    sources.join(ROMS_IN_SOURCES)
}

/// Asks Python, which need not be there. `find_spec` does not run the package.
fn installed_folder() -> Option<PathBuf> {
    const WHERE: &str = "import importlib.util as u; print(list(u.find_spec('ale_py').submodule_search_locations)[0])";
    let mut python = Command::new("python3");
    let output = python
        .args(["-c", WHERE])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let found = output.status.success() && !folder.trim().is_empty();
    found.then(|| Path::new(folder.trim()).join("roms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn pong() -> &'static Game {
        Game::named("pong").unwrap()
    }

    /// The first place is this folder, the others are nowhere.
    fn find_in_folder(folder: &Path) -> Result<Rom, AleError> {
        let places = [
            Place("--rom-dir", Some(folder.to_owned()), "not given"),
            Place("ALE_ROMS_DIR", None, "not set"),
        ];
        find_in(pong(), places.into_iter())
    }

    #[test]
    fn a_missing_rom_names_the_places_that_were_tried() {
        let folder = tempfile::tempdir().unwrap();
        let error = find_in_folder(folder.path()).unwrap_err();
        let file = folder.path().join("pong.bin");
        let expected = format!(
            "no ROM for `pong`; tried --rom-dir (`{}`: no such file), ALE_ROMS_DIR (not set)",
            file.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("scripts/setup-atari"));

        let nowhere = folder.path().join("nowhere");
        let error = find_in_folder(&nowhere).unwrap_err().to_string();
        assert!(error.contains("no such folder"), "{error}");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = find_in_folder(&file).unwrap_err().to_string();
        assert!(error.contains("no such folder"), "{error}");
    }

    #[test]
    fn a_wrong_rom_is_refused_with_both_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pong.bin");
        fs::write(&file, "").unwrap();
        let error = find_in_folder(folder.path()).unwrap_err();
        let expected = format!(
            "`{}` is not the ROM of `pong`: its MD5 is {WRONG_MD5}, and not {}",
            file.display(),
            pong().rom_md5
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_wrong_rom_is_not_passed_over() {
        let (wrong, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(wrong.path().join("pong.bin"), "").unwrap();
        let places = [empty.path(), wrong.path()];
        let places = places.map(|folder| Place("a place", Some(folder.to_owned()), "nowhere"));
        let error = find_in(pong(), places.into_iter()).unwrap_err();
        assert!(matches!(error, AleError::RomWrong { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_without_permission_is_called_that() {
        use std::os::unix::fs::PermissionsExt;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pong.bin");
        fs::write(&file, "").unwrap();
        set(&file, 0).unwrap();
        if fs::read(&file).is_ok() {
            return; // Root reads everything.
        }
        let error = |expected: &Path| {
            let error = find_in_folder(folder.path()).unwrap_err();
            assert!(matches!(&error, AleError::RomUnreadable { path, .. } if path == expected));
            assert!(error.to_string().contains("ermission denied"), "{error}");
            assert!(error.hint().contains("permissions"));
        };
        error(&file);
        set(folder.path(), 0).unwrap();
        error(folder.path());
        let opened = Rom::open(pong(), &file).unwrap_err();
        set(folder.path(), 0o700).unwrap();
        assert!(matches!(&opened, AleError::RomUnreadable { path, .. } if path == folder.path()));
    }

    #[test]
    fn an_empty_variable_is_no_folder() {
        assert_eq!(named(Some("".into())), None);
        assert_eq!(named(Some("roms".into())), Some("roms".into()));
    }
}
