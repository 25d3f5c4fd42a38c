//! The built-in games, on a shared 8x8 board.

pub(super) mod canvas;
pub(super) mod catch;
pub(super) mod crossing;
pub(super) mod paddle;
