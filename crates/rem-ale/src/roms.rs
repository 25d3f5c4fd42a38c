//! Finds ROM files and verifies their checksums.

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

/// The ROM directory within the sources of ALE.
const ROMS_IN_SOURCES: &str = "src/ale/python/roms";

/// A ROM file whose checksum matches its game.
#[derive(Clone, Debug, PartialEq)]
pub struct Rom {
    game: &'static Game,
    file: PathBuf,
}

impl Rom {
    /// Searches `rom_dir`, the directory in the variable `ALE_ROMS_DIR`, the directory created by
    /// `scripts/setup-atari`, and an installed `ale-py`, in this order.
    ///
    /// # Errors
    /// If no location has the file, or if the first file found is unreadable or not the ROM of the game.
    pub fn find(game: &'static Game, rom_dir: Option<&Path>) -> Result<Self, AleError> {
        let variable = non_empty(env::var_os("ALE_ROMS_DIR"));
        let locations = [
            Location("--rom-dir", rom_dir.map(Path::to_owned), "not given"),
            Location("ALE_ROMS_DIR", variable, "not set"),
            Location("scripts/setup-atari", Some(setup_dir()), NO_DIR),
        ];
        // Starting Python is slow, so it comes last.
        let python = || Location("ale-py for Python", installed_dir(), "not installed");
        find_in(game, locations.into_iter().chain(iter::once_with(python)))
    }

    /// Opens a file and verifies its checksum.
    ///
    /// # Errors
    /// If the file is unreadable or not the ROM of the game.
    pub fn open(game: &'static Game, file: impl Into<PathBuf>) -> Result<Self, AleError> {
        let file = file.into();
        let content = fs::read(&file).map_err(|error| AleError::RomUnreadable {
            path: unreadable_path(&file),
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

    /// The game of the ROM.
    pub fn game(&self) -> &'static Game {
        self.game
    }

    /// The path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// Name, directory, and the message if there is no directory.
struct Location(&'static str, Option<PathBuf>, &'static str);

const NO_DIR: &str = "no such directory";
const NO_FILE: &str = "no such file";

/// Opens the first file that exists. A wrong or unreadable file is an error; the search does not continue.
fn find_in(
    game: &'static Game,
    locations: impl Iterator<Item = Location>,
) -> Result<Rom, AleError> {
    let mut tried = Vec::new();
    for Location(what, dir, why) in locations {
        let Some(dir) = dir else {
            tried.push(Tried {
                what,
                file: None,
                why,
            });
            continue;
        };
        let file = dir.join(format!("{}.bin", game.name));
        match fs::metadata(&file) {
            Ok(_) => return Rom::open(game, file),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let why = if dir.is_dir() { NO_FILE } else { NO_DIR };
                let file = Some(file);
                tried.push(Tried { what, file, why });
            }
            Err(error) => {
                return Err(AleError::RomUnreadable { path: dir, error });
            }
        }
    }
    Err(AleError::RomMissing {
        game: game.name,
        tried,
    })
}

/// The directory if its permissions hide the file, otherwise the file.
fn unreadable_path(file: &Path) -> PathBuf {
    let hidden = fs::metadata(file).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let dir = file.parent().filter(|_| hidden);
    dir.unwrap_or(file).to_owned()
}

fn non_empty(dir: Option<OsString>) -> Option<PathBuf> {
    dir.filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// The ROMs beside the sources that the emulator was built from, or their default location.
fn setup_dir() -> PathBuf {
    let sources = option_env!("REM_ALE_BUILT_FROM").map(PathBuf::from);
    let sources = sources.unwrap_or_else(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        workspace
            .expect("the crate is in crates/")
            .join("third-party/ale")
    });
    sources.join(ROMS_IN_SOURCES)
}

/// The ROMs of an installed `ale-py`. `find_spec` does not import the package.
fn installed_dir() -> Option<PathBuf> {
    const SCRIPT: &str = "import importlib.util as u; print(list(u.find_spec('ale_py').submodule_search_locations)[0])";
    let mut python = Command::new("python3");
    let output = python
        .args(["-c", SCRIPT])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let package = String::from_utf8(output.stdout).ok()?;
    let found = output.status.success() && !package.trim().is_empty();
    found.then(|| Path::new(package.trim()).join("roms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn pong() -> &'static Game {
        Game::named("pong").unwrap()
    }

    /// Searches only this directory.
    fn find_in_dir(dir: &Path) -> Result<Rom, AleError> {
        let locations = [
            Location("--rom-dir", Some(dir.to_owned()), "not given"),
            Location("ALE_ROMS_DIR", None, "not set"),
        ];
        find_in(pong(), locations.into_iter())
    }

    #[test]
    fn missing_roms_list_the_searched_locations() {
        let dir = tempfile::tempdir().unwrap();
        let error = find_in_dir(dir.path()).unwrap_err();
        let file = dir.path().join("pong.bin");
        let expected = format!(
            "no ROM for `pong`; tried --rom-dir (`{}`: no such file), ALE_ROMS_DIR (not set)",
            file.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("scripts/setup-atari"));

        let nowhere = dir.path().join("nowhere");
        let error = find_in_dir(&nowhere).unwrap_err().to_string();
        assert!(error.contains("no such directory"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = find_in_dir(&file).unwrap_err().to_string();
        assert!(error.contains("no such directory"), "{error}");
    }

    #[test]
    fn wrong_roms_are_rejected_with_both_checksums() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pong.bin");
        fs::write(&file, "").unwrap();
        let error = find_in_dir(dir.path()).unwrap_err();
        let expected = format!(
            "`{}` is not the ROM of `pong`: its MD5 is {WRONG_MD5}, expected {}",
            file.display(),
            pong().rom_md5
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn wrong_roms_end_the_search() {
        let (wrong, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(wrong.path().join("pong.bin"), "").unwrap();
        let dirs = [empty.path(), wrong.path()];
        let locations = dirs.map(|dir| Location("a location", Some(dir.to_owned()), "not set"));
        let error = find_in(pong(), locations.into_iter()).unwrap_err();
        assert!(matches!(error, AleError::RomWrong { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn permission_errors_name_the_unreadable_path() {
        use std::os::unix::fs::PermissionsExt;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pong.bin");
        fs::write(&file, "").unwrap();
        set(&file, 0).unwrap();
        if fs::read(&file).is_ok() {
            return; // Root can read everything.
        }
        let error = |expected: &Path| {
            let error = find_in_dir(dir.path()).unwrap_err();
            assert!(matches!(&error, AleError::RomUnreadable { path, .. } if path == expected));
            assert!(error.to_string().contains("ermission denied"), "{error}");
            assert!(error.hint().contains("permissions"));
        };
        error(&file);
        set(dir.path(), 0).unwrap();
        error(dir.path());
        let opened = Rom::open(pong(), &file).unwrap_err();
        set(dir.path(), 0o700).unwrap();
        assert!(matches!(&opened, AleError::RomUnreadable { path, .. } if path == dir.path()));
    }

    #[test]
    fn empty_variables_are_ignored() {
        assert_eq!(non_empty(Some("".into())), None);
        assert_eq!(non_empty(Some("roms".into())), Some("roms".into()));
    }
}
