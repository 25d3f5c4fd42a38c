//! Tables as text for terminals and for other programs.

pub mod csv;
pub mod html;
pub mod latex;
pub mod markdown;
pub mod terminal;
