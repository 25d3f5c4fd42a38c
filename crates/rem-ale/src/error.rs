//! What can go wrong with games, ROMs and the emulator, each with a hint of what to do about it.

use std::path::PathBuf;

use crate::games::Game;

/// A place where a ROM was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What this place is: `ALE_ROMS_DIR`.
    pub what: &'static str,
    /// The file that would have been it, if it is known where the place is.
    pub file: Option<PathBuf>,
    /// Why it was not there.
    pub why: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub enum AleError {
    #[error("unknown Atari game `{name}`")]
    UnknownGame {
        name: String,
        /// What was probably meant, the likeliest first.
        closest: Vec<&'static str>,
    },
    #[error("no ROM for `{game}`; tried {}", list(tried))]
    RomMissing {
        game: &'static str,
        tried: Vec<Tried>,
    },
    #[error("`{}` is not the ROM of `{game}`: its MD5 is {found}, and not {expected}", file.display())]
    RomWrong {
        game: &'static str,
        file: PathBuf,
        expected: &'static str,
        found: String,
    },
    /// A folder or a file that is there, but cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    RomUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("`{game}` has no mode {mode}")]
    NoSuchMode {
        game: &'static str,
        mode: u32,
        modes: Vec<u32>,
    },
    #[error("`{game}` has no difficulty {difficulty}")]
    NoSuchDifficulty {
        game: &'static str,
        difficulty: u32,
        difficulties: Vec<u32>,
    },
    #[error("the probability of a sticky action cannot be {sticky}")]
    BadSticky { sticky: f32 },
    #[error("cannot start the emulator: {reason}")]
    Start { reason: String },
    #[error("cannot restore the emulator: {reason}")]
    Snapshot { reason: String },
}

impl AleError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGame { closest, .. } if closest.is_empty() => {
                let games: Vec<_> = Game::benchmark().map(|game| game.name).collect();
                format!("the games of the benchmark are {}", games.join(", "))
            }
            Self::UnknownGame { closest, .. } => {
                format!("did you mean `{}`?", closest.join("`, `"))
            }
            Self::RomMissing { .. } => {
                "run `scripts/setup-atari`, or pass the folder of your ROMs with `--rom-dir`".into()
            }
            Self::RomWrong { .. } => {
                "replace it by the ROM that comes with ale-py, or take it away: `scripts/setup-atari` fetches the right one"
                    .into()
            }
            Self::RomUnreadable { .. } => {
                "check the permissions of the file and of its folder, or pass another one with `--rom-dir`".into()
            }
            Self::NoSuchMode { modes, .. } => format!("the modes are {}", numbers(modes)),
            Self::NoSuchDifficulty { difficulties, .. } => {
                format!("the difficulties are {}", numbers(difficulties))
            }
            Self::BadSticky { .. } => "it must be at least 0 and less than 1; usual are 0 and 0.25".into(),
            Self::Start { .. } => "run `scripts/setup-atari` again and build anew".into(),
            Self::Snapshot { .. } => {
                "the emulator's state belongs to its checkpoint: resume from an older one with `--from-epoch N`".into()
            }
        }
    }
}

fn list(tried: &[Tried]) -> String {
    let place = |Tried { what, file, why }: &Tried| match file {
        Some(file) => format!("{what} (`{}`: {why})", file.display()),
        None => format!("{what} ({why})"),
    };
    let places: Vec<_> = tried.iter().map(place).collect();
    places.join(", ")
}

fn numbers(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}
