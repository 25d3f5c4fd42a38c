//! Output formats of tables and of the whole report.

pub mod csv;
pub mod html;
pub mod json;
pub mod latex;
pub mod markdown;
pub mod terminal;
