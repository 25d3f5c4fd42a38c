//! The Atari emulator of the Arcade Learning Environment (ALE), safe to use.
//!
//! [`Game`] has the table of games, [`Rom`] finds and checks the file of one. With the feature `atari` there is also
//! `Ale`, the emulator itself: ALE is under the GPL, so it is neither part of this code nor compiled by default.
//! `scripts/setup-atari` fetches its sources and the ROMs.

mod action;
#[cfg(feature = "atari")]
mod emulator;
mod error;
mod games;
mod roms;

pub use action::Action;
#[cfg(feature = "atari")]
pub use emulator::{Ale, Settings};
pub use error::{AleError, Tried};
pub use games::{GAMES, Game, Reference};
pub use roms::Rom;

/// The version of ALE that `scripts/setup-atari` fetches and that snapshots belong to.
pub const ALE_VERSION: &str = "0.12.1";
