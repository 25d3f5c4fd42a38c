//! Which line is whose.

use super::font;
use super::svg::{Anchor, Stroke, Svg};
use super::theme::{Ink, dashes};

const SAMPLE: f64 = 30.0;
const GAP: f64 = 18.0;

/// Samples of lines with names, in as many rows as they need; `y` is the top. Returns the height.
pub fn draw(
    svg: &mut Svg,
    entries: &[(usize, &str)],
    (left, y): (f64, f64),
    width: f64,
    size: f64,
) -> f64 {
    let row = size * 1.6;
    let (mut x, mut top) = (left, y);
    for (series, name) in entries {
        let name = font::fitted(name, size, width - SAMPLE - 6.0);
        let room = SAMPLE + 6.0 + font::width(&name, size);
        if x > left && x + room > left + width {
            (x, top) = (left, top + row);
        }
        let middle = top + row / 2.0;
        let stroke = Stroke {
            dashes: dashes(*series),
            ..Stroke::new(Ink::Series(*series), 2.5)
        };
        svg.line((x, middle), (x + SAMPLE, middle), stroke);
        svg.text(
            (x + SAMPLE + 6.0, middle + size * 0.35),
            &name,
            size,
            Anchor::Start,
            Ink::Text,
        );
        x += room + GAP;
    }
    if entries.is_empty() {
        0.0
    } else {
        top + row - y
    }
}
