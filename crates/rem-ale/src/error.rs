//! Errors of games, ROMs and the emulator, each with a hint.

use std::path::PathBuf;

use crate::games::Game;

/// A location that was searched for a ROM.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The name of the location, such as `ALE_ROMS_DIR`.
    pub what: &'static str,
    /// The expected file, if the location is known.
    pub file: Option<PathBuf>,
    /// Why there is no ROM.
    pub why: &'static str,
}

/// An error of this crate. [`hint`](Self::hint) says how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum AleError {
    /// No game has this name.
    #[error("unknown Atari game `{name}`")]
    UnknownGame {
        /// The name that was given.
        name: String,
        /// Similar names, most similar first.
        closest: Vec<&'static str>,
    },
    /// No location has a ROM for the game.
    #[error("no ROM for `{game}`; tried {}", list(tried))]
    RomMissing {
        /// The game.
        game: &'static str,
        /// The locations that were searched.
        tried: Vec<Tried>,
    },
    /// A ROM has the wrong checksum.
    #[error("`{}` is not the ROM of `{game}`: its MD5 is {found}, expected {expected}", file.display())]
    RomWrong {
        /// The game.
        game: &'static str,
        /// The file.
        file: PathBuf,
        /// The MD5 of the game's ROM.
        expected: &'static str,
        /// The MD5 of the file.
        found: String,
    },
    /// A directory or file exists but cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    RomUnreadable {
        /// The directory or file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The game does not have this mode.
    #[error("`{game}` has no mode {mode}")]
    NoSuchMode {
        /// The game.
        game: &'static str,
        /// The requested mode.
        mode: u32,
        /// The game's modes.
        modes: Vec<u32>,
    },
    /// The game does not have this difficulty.
    #[error("`{game}` has no difficulty {difficulty}")]
    NoSuchDifficulty {
        /// The game.
        game: &'static str,
        /// The requested difficulty.
        difficulty: u32,
        /// The game's difficulties.
        difficulties: Vec<u32>,
    },
    /// The sticky-action probability is not in [0, 1).
    #[error("sticky-action probability {sticky} is out of range")]
    BadSticky {
        /// The requested probability.
        sticky: f32,
    },
    /// The emulator did not start.
    #[error("cannot start the emulator: {reason}")]
    Start {
        /// The emulator's message.
        reason: String,
    },
    /// A snapshot was rejected.
    #[error("cannot restore the emulator: {reason}")]
    Snapshot {
        /// Why it was rejected.
        reason: String,
    },
}

impl AleError {
    /// How to fix the error.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGame { closest, .. } if closest.is_empty() => {
                let games: Vec<_> = Game::benchmark().map(|game| game.name).collect();
                format!("the benchmark games are {}", games.join(", "))
            }
            Self::UnknownGame { closest, .. } => {
                format!("did you mean `{}`?", closest.join("`, `"))
            }
            Self::RomMissing { .. } => {
                "run `scripts/setup-atari`, or pass your ROM directory with `--rom-dir`".into()
            }
            Self::RomWrong { .. } => {
                "replace it with the ROM of ale-py, or remove it and run `scripts/setup-atari`"
                    .into()
            }
            Self::RomUnreadable { .. } => {
                "check the permissions of the file and its directory, or pass another directory with `--rom-dir`".into()
            }
            Self::NoSuchMode { modes, .. } => format!("the modes are {}", numbers(modes)),
            Self::NoSuchDifficulty { difficulties, .. } => {
                format!("the difficulties are {}", numbers(difficulties))
            }
            Self::BadSticky { .. } => "it must be at least 0 and less than 1; common values are 0 and 0.25".into(),
            Self::Start { .. } => "run `scripts/setup-atari` and rebuild".into(),
            Self::Snapshot { .. } => {
                "resume from an older checkpoint with `--from-epoch N`".into()
            }
        }
    }
}

fn list(tried: &[Tried]) -> String {
    let describe = |Tried { what, file, why }: &Tried| match file {
        Some(file) => format!("{what} (`{}`: {why})", file.display()),
        None => format!("{what} ({why})"),
    };
    let locations: Vec<_> = tried.iter().map(describe).collect();
    locations.join(", ")
}

fn numbers(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}
