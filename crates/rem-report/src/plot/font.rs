//! The one font of our figures: Liberation Sans, as wide as Arial and Helvetica. SVG files name all three, so that text
//! takes the same room wherever one of them is; pictures are drawn with the copy that we embed (`fonts/LICENSE-OFL.txt`).

use std::sync::LazyLock;

use ttf_parser::Face;

pub const BYTES: &[u8] = include_bytes!("../../fonts/LiberationSans-Regular.ttf");
pub const FAMILIES: &str = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Face> =
    LazyLock::new(|| Face::parse(BYTES, 0).expect("the embedded font is whole"));

/// The width of `text` in a font of this size.
pub fn width(text: &str, size: f64) -> f64 {
    let missing = f64::from(FACE.units_per_em()) * 0.6;
    let advance = |letter| {
        let glyph = FACE.glyph_index(letter)?;
        FACE.glyph_hor_advance(glyph).map(f64::from)
    };
    let units: f64 = text
        .chars()
        .map(|letter| advance(letter).unwrap_or(missing))
        .sum();
    units * size / f64::from(FACE.units_per_em())
}

/// `text` in lines no wider than `room`, broken at spaces; a single word may be wider.
pub fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// `text`, or its beginning and an ellipsis if it has more room than `room`.
pub fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let mut short: String = text.into();
    while !short.is_empty() && width(&format!("{short}…"), size) > room {
        short.pop();
    }
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_we_write() {
        for letter in "Δ↑↓–−×…·>%áz09".chars() {
            assert!(FACE.glyph_index(letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn widths_are_those_of_the_letters() {
        // As in Arial: digits are 1139 of 2048 units wide.
        assert!((width("00", 2048.0) - 2278.0).abs() < 1e-9);
        assert_eq!(width("", 12.0), 0.0);
    }

    #[test]
    fn long_text_is_broken_or_cut() {
        let room = width("Controller without", 12.0) + 1.0;
        assert_eq!(
            wrap("Controller without action inputs", 12.0, room),
            ["Controller without", "action inputs"]
        );
        assert_eq!(fitted("REM", 12.0, 100.0), "REM");
        let cut = fitted("Incomprehensibilities", 12.0, 50.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 50.0, "{cut}");
    }
}
