//! Legends of line plots.

use super::font;
use super::svg::{Anchor, Stroke, Svg};
use super::theme::{Color, dashes};

const SAMPLE: f64 = 30.0;
const GAP: f64 = 18.0;

/// An entry of a legend.
pub(crate) struct Entry<'a> {
    /// The series, which determines the color.
    pub series: usize,
    /// The dashes of the line.
    pub dashes: &'static str,
    /// The name.
    pub name: &'a str,
}

impl<'a> Entry<'a> {
    /// An entry with the dashes of its series.
    pub(crate) fn new(series: usize, name: &'a str) -> Self {
        Self {
            series,
            dashes: dashes(series),
            name,
        }
    }
}

/// Draws a line sample and a name per entry, wrapped into rows of at most `width`, with the top left corner at
/// `(left, y)`. Returns the height.
pub(crate) fn draw(
    svg: &mut Svg,
    entries: &[Entry],
    (left, y): (f64, f64),
    width: f64,
    size: f64,
) -> f64 {
    let row = size * 1.6;
    let (mut x, mut top) = (left, y);
    for entry in entries {
        let name = font::truncate(entry.name, size, width - SAMPLE - 6.0);
        let room = SAMPLE + 6.0 + font::width(&name, size);
        if x > left && x + room > left + width {
            (x, top) = (left, top + row);
        }
        let middle = top + row / 2.0;
        let stroke = Stroke {
            dashes: entry.dashes,
            ..Stroke::new(Color::Series(entry.series), 2.5)
        };
        svg.line((x, middle), (x + SAMPLE, middle), stroke);
        svg.text(
            (x + SAMPLE + 6.0, middle + size * 0.35),
            &name,
            size,
            Anchor::Start,
            Color::Text,
        );
        x += room + GAP;
    }
    if entries.is_empty() {
        0.0
    } else {
        top + row - y
    }
}
