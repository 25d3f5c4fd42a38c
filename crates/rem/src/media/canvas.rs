//! [`Canvas`]: an RGB image to draw frames and text on.

use std::io;
use std::path::Path;

use rem_run::files::{failed, write_atomic};
use serde::Serialize;

use super::{BACKGROUND, FAINT, NO_FRAME, OUTLINE, font};

/// Red, green, blue.
pub(super) type Color = [u8; 3];

/// Scale of the font in labels and captions.
pub(super) const FONT_SCALE: usize = 2;

/// An RGB image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// `width * height * 3` bytes, row by row from the top.
    pub rgb: Vec<u8>,
    /// What the image shows, as JSON: stored in its PNG file.
    description: Option<String>,
}

/// The keyword of the PNG text chunk with the description.
const DESCRIPTION: &str = "rem-sheet";

impl Canvas {
    /// An image of one color.
    pub(super) fn new(width: usize, height: usize, color: Color) -> Self {
        let rgb = color.repeat(width * height);
        Self {
            width,
            height,
            rgb,
            description: None,
        }
    }

    /// Sets the description that the PNG file holds.
    pub(super) fn describe(&mut self, description: &impl Serialize) {
        let json = serde_json::to_string(description).expect("descriptions serialize to JSON");
        self.description = Some(json);
    }

    /// Fills a rectangle, clipped to the image.
    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, color: Color) {
        let right = (x + width).min(self.width);
        for row in y..(y + height).min(self.height) {
            for column in x..right {
                let at = (row * self.width + column) * 3;
                self.rgb[at..at + 3].copy_from_slice(&color);
            }
        }
    }

    /// Draws a frame with its upper left corner at (x, y), enlarged by `scale`.
    pub(super) fn blit(&mut self, frame: &[u8], size: usize, x: usize, y: usize, scale: usize) {
        assert_eq!(
            frame.len(),
            size * size * 3,
            "a frame is size * size * 3 bytes"
        );
        for (i, pixel) in frame.as_chunks::<3>().0.iter().enumerate() {
            let (row, column) = (i / size, i % size);
            self.fill(x + column * scale, y + row * scale, scale, scale, *pixel);
        }
    }

    /// Draws a frame as [`Self::blit`] does, with an outline around it, or a panel that says that there is none.
    pub(super) fn framed(
        &mut self,
        frame: Option<&[u8]>,
        size: usize,
        x: usize,
        y: usize,
        scale: usize,
    ) {
        let side = size * scale;
        self.fill(x - 1, y - 1, side + 2, side + 2, OUTLINE);
        match frame {
            Some(frame) => self.blit(frame, size, x, y, scale),
            None => {
                self.fill(x, y, side, side, BACKGROUND);
                let left = x + side.saturating_sub(text_width(NO_FRAME)) / 2;
                self.text(left, y + (side - TEXT_HEIGHT) / 2, NO_FRAME, FAINT);
            }
        }
    }

    /// Draws a line of text with its upper left corner at (x, y).
    pub(super) fn text(&mut self, x: usize, y: usize, text: &str, color: Color) {
        self.text_scaled(x, y, text, color, FONT_SCALE);
    }

    /// Draws a line of text in a font enlarged by `font_scale`.
    pub(super) fn text_scaled(
        &mut self,
        x: usize,
        y: usize,
        text: &str,
        color: Color,
        font_scale: usize,
    ) {
        for (i, character) in text.chars().enumerate() {
            let left = x + i * font::ADVANCE * font_scale;
            for row in 0..font::GLYPH_HEIGHT {
                for column in 0..font::GLYPH_WIDTH {
                    if font::has_ink(character, column, row) {
                        let (x, y) = (left + column * font_scale, y + row * font_scale);
                        self.fill(x, y, font_scale, font_scale, color);
                    }
                }
            }
        }
    }

    /// Writes a PNG file, atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_png(&self, path: &Path) -> io::Result<()> {
        let bytes = self.png().map_err(|e| failed("write", path)(e.into()))?;
        write_atomic(path, &bytes)
    }

    fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        if let Some(description) = &self.description {
            encoder.add_itxt_chunk(DESCRIPTION.into(), description.clone())?;
        }
        encoder.write_header()?.write_image_data(&self.rgb)?;
        Ok(bytes)
    }
}

/// Height of a line of [`Canvas::text`] above the baseline, in pixels.
pub(super) const TEXT_HEIGHT: usize = font::CAPITAL_HEIGHT * FONT_SCALE;

/// Width of `text` as drawn by [`Canvas::text`], in pixels.
pub(super) fn text_width(text: &str) -> usize {
    text.chars().count() * font::ADVANCE * FONT_SCALE
}
