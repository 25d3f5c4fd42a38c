//! The SVG plotter of all figures: shapes, axes, legends, colors and text.

pub mod axis;
pub(crate) mod font;
pub(crate) mod legend;
pub mod svg;
pub mod theme;
