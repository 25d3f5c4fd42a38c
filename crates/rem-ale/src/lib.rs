//! Safe bindings to the Atari emulator of the Arcade Learning Environment (ALE).
//!
//! - [`Game`]: the supported games, their names, ROM checksums and reference scores.
//! - [`Rom`]: a ROM file with a verified checksum.
//! - [`Action`]: joystick actions.
//! - `Ale`: the emulator, with exact snapshots. Requires the feature `atari`.
//!
//! ALE is licensed under the GPL-2.0, so this repository does not contain it and does not compile it by default.
//! `scripts/setup-atari` fetches its sources and the ROMs.
//!
//! # Examples
//!
//! Look up a game:
//!
//! ```
//! use rem_ale::Game;
//!
//! let game = Game::named("MsPacman")?;
//! assert_eq!(game.name, "ms_pacman");
//! assert_eq!(Game::benchmark().count(), 26);
//!
//! let error = Game::named("brekout").unwrap_err();
//! assert_eq!(error.hint(), "did you mean `breakout`?");
//! # Ok::<(), rem_ale::AleError>(())
//! ```
//!
//! Play it with random actions (feature `atari`):
//!
//! ```no_run
//! # #[cfg(feature = "atari")] {
//! use rem_ale::{Ale, Game, Rom, Settings};
//!
//! let rom = Rom::find(Game::named("breakout")?, None)?;
//! let mut ale = Ale::new(&rom, Settings { seed: 1, ..Settings::default() })?;
//! ale.reset();
//! let actions = ale.actions().to_vec();
//! let mut total = 0;
//! for step in 0.. {
//!     if ale.game_over() {
//!         break;
//!     }
//!     total += ale.act(actions[step % actions.len()]);
//! }
//! println!("return {total} after {} frames", ale.episode_frames());
//! # }
//! # Ok::<(), rem_ale::AleError>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod action;
#[cfg(feature = "atari")]
mod emulator;
mod error;
mod games;
mod resize;
mod roms;

pub use action::Action;
#[cfg(feature = "atari")]
pub use emulator::{Ale, Settings};
pub use error::{AleError, Tried};
pub use games::{GAMES, Game, Reference};
pub use resize::{Palette, Resize};
pub use roms::Rom;

/// The supported version of ALE. Snapshots of other versions are rejected.
pub const ALE_VERSION: &str = "0.12.1";
