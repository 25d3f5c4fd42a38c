//! What figures are drawn with: an SVG that is written element by element, axes, themes, and the width of text.

pub mod axis;
pub mod font;
pub mod legend;
pub mod svg;
pub mod theme;
