//! The font of all figures: Liberation Sans, which has the metrics of Arial and Helvetica.
//!
//! SVG files name all three fonts, so that text has the same width wherever one of them is installed. PNG files use the
//! embedded copy (`fonts/LICENSE-OFL.txt`).

use std::fmt::Write;
use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

const BYTES: &[u8] = include_bytes!("../../fonts/LiberationSans-Regular.ttf");
/// The `font-family` of SVG files.
pub const FAMILIES: &str = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Face> =
    LazyLock::new(|| Face::parse(BYTES, 0).expect("the embedded font is valid"));

/// The width of `text` in pixels at this font size, without kerning.
pub fn width(text: &str, size: f64) -> f64 {
    let units: f64 = text.chars().map(|letter| advance(glyph(letter))).sum();
    units * scale(size)
}

/// The outlines of `text` as SVG path data, and their width in pixels. The baseline starts at the origin.
pub fn outlines(text: &str, size: f64) -> (String, f64) {
    let mut path = Outlines {
        data: String::new(),
        scale: scale(size),
        x: 0.0,
    };
    let mut previous = None;
    for letter in text.chars() {
        let glyph = glyph(letter);
        if let (Some(left), Some(right)) = (previous, glyph) {
            path.x += kerning(left, right);
        }
        if let Some(glyph) = glyph {
            FACE.outline_glyph(glyph, &mut path);
        }
        path.x += advance(glyph);
        previous = glyph;
    }
    (path.data, path.x * path.scale)
}

fn scale(size: f64) -> f64 {
    size / f64::from(FACE.units_per_em())
}

fn glyph(letter: char) -> Option<GlyphId> {
    FACE.glyph_index(letter)
}

/// The advance width in font units, or a typical one if the font lacks the glyph.
fn advance(glyph: Option<GlyphId>) -> f64 {
    let advance = glyph.and_then(|glyph| FACE.glyph_hor_advance(glyph));
    advance.map_or(f64::from(FACE.units_per_em()) * 0.6, f64::from)
}

/// The kerning of a pair in font units.
fn kerning(left: GlyphId, right: GlyphId) -> f64 {
    let tables = FACE.tables().kern.into_iter();
    let mut subtables = tables
        .flat_map(|table| table.subtables)
        .filter(|subtable| subtable.horizontal && !subtable.variable);
    let kerning = subtables.find_map(|subtable| subtable.glyphs_kerning(left, right));
    kerning.map_or(0.0, f64::from)
}

/// Collects outlines as path data. Flips y, which points up in fonts and down in SVG.
struct Outlines {
    data: String,
    scale: f64,
    /// The start of the glyph in font units.
    x: f64,
}

impl Outlines {
    fn push(&mut self, command: char, points: &[(f32, f32)]) {
        self.data.push(command);
        for (x, y) in points {
            let (x, y) = (self.x + f64::from(*x), -f64::from(*y));
            let _ = write!(self.data, "{:.3} {:.3} ", x * self.scale, y * self.scale);
        }
    }
}

impl OutlineBuilder for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.push('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.data.push('Z');
    }
}

/// Wraps `text` at spaces into lines of at most `max_width` pixels. A single word may be wider.
pub fn wrap(text: &str, size: f64, max_width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= max_width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// `text`, shortened with an ellipsis if it is wider than `max_width` pixels.
pub fn truncate(text: &str, size: f64, max_width: f64) -> String {
    if width(text, size) <= max_width {
        return text.into();
    }
    let mut short: String = text.into();
    while !short.is_empty() && width(&format!("{short}…"), size) > max_width {
        short.pop();
    }
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_every_symbol_of_the_figures() {
        for letter in "Δ↑↓–−×…·>%áz09".chars() {
            assert!(FACE.glyph_index(letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn widths_are_sums_of_advances() {
        // Digits are 1139 of 2048 units wide, as in Arial.
        assert!((width("00", 2048.0) - 2278.0).abs() < 1e-9);
        assert_eq!(width("", 12.0), 0.0);
    }

    #[test]
    fn long_text_is_wrapped_or_shortened() {
        let room = width("Controller without", 12.0) + 1.0;
        assert_eq!(
            wrap("Controller without action inputs", 12.0, room),
            ["Controller without", "action inputs"]
        );
        assert_eq!(truncate("REM", 12.0, 100.0), "REM");
        let cut = truncate("Incomprehensibilities", 12.0, 50.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 50.0, "{cut}");
    }

    #[test]
    fn outlines_start_at_the_origin_and_are_kerned() {
        let (data, room) = outlines("ll", 20.48);
        assert!(data.starts_with('M') && data.ends_with('Z'), "{data}");
        assert_eq!(data.matches('M').count(), 2);
        assert!((room - width("ll", 20.48)).abs() < 1e-9);
        // Arial moves these two closer by 152 of 2048 units.
        let (_, kerned) = outlines("AV", 2048.0);
        assert!((width("AV", 2048.0) - kerned - 152.0).abs() < 1e-9);
        assert_eq!(outlines(" ", 12.0).0, "");
    }
}
