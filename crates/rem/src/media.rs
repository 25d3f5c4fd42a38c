//! Pictures of a run: reconstructions, episodes, and dreams beside reality, as PNG and GIF.
//!
//! A frame here is the `size * size * 3` bytes of a square RGB observation, rows from the top.
//! Frames are enlarged by whole factors without smoothing: what you see is what the agent sees.

mod font;

use std::borrow::Borrow;
use std::io::{self, Cursor};
use std::path::Path;

use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, ImageResult, RgbImage, RgbaImage};

use crate::files::{failed, write_atomic};

/// Red, green, blue.
pub type Colour = [u8; 3];

const BACKGROUND: Colour = [24, 26, 31];
const TEXT: Colour = [222, 224, 230];
const FAINT: Colour = [150, 155, 166];
/// What the environment showed.
const REAL: Colour = [122, 200, 190];
/// What a model made up.
const MADE_UP: Colour = [240, 180, 110];

const MARGIN: usize = 12;
const GAP: usize = 4;
/// Pixels of a letter's dot in labels and captions.
const LETTER: usize = 2;
/// The same where a caption must fit below a small frame.
const SMALL_LETTER: usize = 1;

/// An RGB picture to draw on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    pub width: usize,
    pub height: usize,
    /// `width * height * 3` bytes, rows from the top.
    pub rgb: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: usize, height: usize, colour: Colour) -> Self {
        let rgb = colour.repeat(width * height);
        Self { width, height, rgb }
    }

    /// Fills a rectangle; what lies outside of the canvas is cut off.
    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Colour) {
        let right = (x + width).min(self.width);
        for row in y..(y + height).min(self.height) {
            for column in x..right {
                let at = (row * self.width + column) * 3;
                self.rgb[at..at + 3].copy_from_slice(&colour);
            }
        }
    }

    /// Draws a frame with its upper left corner at (x, y), each of its pixels a square of `scale` pixels.
    pub fn blit(&mut self, frame: &[u8], size: usize, x: usize, y: usize, scale: usize) {
        assert_eq!(
            frame.len(),
            size * size * 3,
            "a frame is size * size * 3 bytes"
        );
        for (place, pixel) in frame.as_chunks::<3>().0.iter().enumerate() {
            let (row, column) = (place / size, place % size);
            self.fill(x + column * scale, y + row * scale, scale, scale, *pixel);
        }
    }

    /// Writes one line of text with its upper left corner at (x, y), in letters of [`text_width`] and [`TEXT_HEIGHT`].
    pub fn text(&mut self, x: usize, y: usize, text: &str, colour: Colour) {
        self.text_scaled(x, y, text, colour, LETTER);
    }

    fn text_scaled(&mut self, x: usize, y: usize, text: &str, colour: Colour, letter: usize) {
        for (place, character) in text.chars().enumerate() {
            let left = x + place * font::ADVANCE * letter;
            for row in 0..font::GLYPH_HEIGHT {
                for column in 0..font::GLYPH_WIDTH {
                    if font::has_ink(character, column, row) {
                        let (x, y) = (left + column * letter, y + row * letter);
                        self.fill(x, y, letter, letter, colour);
                    }
                }
            }
        }
    }

    /// Writes the picture as a PNG file, atomically.
    pub fn save_png(&self, path: &Path) -> io::Result<()> {
        let mut bytes = Cursor::new(Vec::new());
        let image = RgbImage::from_raw(self.width as u32, self.height as u32, self.rgb.clone());
        let image = image.expect("a canvas holds width * height * 3 bytes");
        image
            .write_to(&mut bytes, image::ImageFormat::Png)
            .map_err(|error| failed("write", path)(io::Error::other(error)))?;
        write_atomic(path, bytes.get_ref())
    }
}

/// Height of a line of [`Canvas::text`] in pixels, without the tails below the baseline (four more).
pub const TEXT_HEIGHT: usize = font::CAPITAL_HEIGHT * LETTER;

/// Width of `text` as [`Canvas::text`] draws it, in pixels.
pub fn text_width(text: &str) -> usize {
    scaled_width(text, LETTER)
}

fn scaled_width(text: &str, letter: usize) -> usize {
    text.chars().count() * font::ADVANCE * letter
}

/// Writes an animation that loops for ever, atomically. All canvases have the size of the first; each is taken when the
/// one before it is encoded, so they need not all be in memory.
///
/// A frame with at most 256 colours keeps them exactly; more are reduced by a neural quantiser, frame by frame.
/// GIF counts in hundredths of a second, and browsers slow anything below two of them down to ten, so 20 ms is the least.
pub fn save_gif(
    path: &Path,
    frames: impl IntoIterator<Item: Borrow<Canvas>>,
    delay_ms: u32,
) -> io::Result<()> {
    let bytes = gif(frames, delay_ms).map_err(failed("write", path))?;
    write_atomic(path, &bytes)
}

/// The bytes of what [`save_gif`] writes.
pub fn gif(frames: impl IntoIterator<Item: Borrow<Canvas>>, delay_ms: u32) -> io::Result<Vec<u8>> {
    let mut frames = frames.into_iter().peekable();
    if frames.peek().is_none() {
        let reason = "an animation needs a frame";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    encode_gif(frames, delay_ms.max(20)).map_err(io::Error::other)
}

fn encode_gif(frames: impl Iterator<Item: Borrow<Canvas>>, delay_ms: u32) -> ImageResult<Vec<u8>> {
    /// It learns its palette from every tenth pixel: plenty, since our frames are enlarged.
    const QUANTISER_SPEED: i32 = 10;
    let mut size = None;
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, QUANTISER_SPEED);
    encoder.set_repeat(Repeat::Infinite)?;
    for frame in frames {
        let frame: &Canvas = frame.borrow();
        let (width, height) = (frame.width, frame.height);
        assert_eq!(
            (width, height),
            *size.get_or_insert((width, height)),
            "frames of one animation have one size"
        );
        let pixels = frame.rgb.as_chunks::<3>().0;
        let rgba = pixels.iter().flat_map(|&[r, g, b]| [r, g, b, 255]);
        let image = RgbaImage::from_raw(width as u32, height as u32, rgba.collect())
            .expect("a canvas holds width * height * 3 bytes");
        let delay = Delay::from_numer_denom_ms(delay_ms, 1);
        encoder.encode_frame(Frame::from_parts(image, 0, 0, delay))?;
    }
    drop(encoder); // writes the trailer
    Ok(bytes)
}

/// Original frames above their reconstructions, eight pairs a row.
pub fn reconstruction_sheet(
    size: usize,
    originals: &[Vec<u8>],
    reconstructions: &[Vec<u8>],
) -> Canvas {
    const COLUMNS: usize = 8;
    assert_eq!(
        originals.len(),
        reconstructions.len(),
        "each frame has its reconstruction"
    );
    let labels = [("frames", REAL), ("reconstructions", MADE_UP)];
    let pairs: Vec<Pair> = originals
        .iter()
        .zip(reconstructions)
        .map(|(above, below)| Pair {
            above,
            below,
            caption: "",
        })
        .collect();
    sheet(size, labels, &pairs, COLUMNS, 96)
}

/// An imagined step and what the environment did at the same time.
#[derive(Clone, Debug)]
pub struct DreamStep {
    pub dream: Vec<u8>,
    pub reality: Vec<u8>,
    /// Fields parted by two spaces: "step 4  action right  reward +1.0 / +0.9". [`dream_strip`] gives each its own line.
    pub caption: String,
}

/// A still of a dream: reality above, the dream below, one column per step, captions underneath.
/// Of more than `columns` steps it takes that many at even distances, the first and the last among them.
pub fn dream_strip(size: usize, steps: &[DreamStep], columns: usize) -> Canvas {
    let labels = [("reality", REAL), ("dream", MADE_UP)];
    let pairs: Vec<Pair> = spread(steps.len(), columns)
        .map(|step| &steps[step])
        .map(|step| Pair {
            above: &step.reality,
            below: &step.dream,
            caption: &step.caption,
        })
        .collect();
    sheet(size, labels, &pairs, columns, 112)
}

/// At most `wanted` indices below `count`, at even distances, both ends included.
fn spread(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(wanted);
    (0..taken).map(move |place| match taken {
        1 => 0,
        _ => place * (count - 1) / (taken - 1),
    })
}

struct Pair<'a> {
    above: &'a [u8],
    below: &'a [u8],
    caption: &'a str,
}

/// Pairs of frames in bands of `columns`, labels at the left, the fields of each caption below its pair.
fn sheet(
    size: usize,
    labels: [(&str, Colour); 2],
    pairs: &[Pair],
    columns: usize,
    least_width: usize,
) -> Canvas {
    let scale = least_width.div_ceil(size);
    let side = size * scale;
    let columns = columns.min(pairs.len()).max(1);
    let bands = pairs.len().div_ceil(columns).max(1);
    let caption_line = (font::GLYPH_HEIGHT + 2) * SMALL_LETTER;
    let caption_lines = pairs.iter().map(|pair| fields(pair.caption).count()).max();
    let captions = match caption_lines.unwrap_or(0) {
        0 => 0,
        lines => GAP + lines * caption_line,
    };
    let label_width = labels.iter().map(|(label, _)| text_width(label)).max();
    let left = MARGIN + label_width.unwrap_or(0) + MARGIN;
    let band_height = 2 * side + GAP + captions + MARGIN;
    let width = left + columns * (side + GAP) - GAP + MARGIN;

    let mut canvas = Canvas::new(width, MARGIN + bands * band_height, BACKGROUND);
    for (band, pairs) in pairs.chunks(columns).enumerate() {
        let top = MARGIN + band * band_height;
        for (row, (label, colour)) in labels.into_iter().enumerate() {
            let middle = top + row * (side + GAP) + side / 2;
            let x = left - MARGIN - text_width(label);
            canvas.text(x, middle.saturating_sub(TEXT_HEIGHT / 2), label, colour);
        }
        for (column, pair) in pairs.iter().enumerate() {
            let x = left + column * (side + GAP);
            canvas.blit(pair.above, size, x, top, scale);
            canvas.blit(pair.below, size, x, top + side + GAP, scale);
            for (line, field) in fields(pair.caption).enumerate() {
                let y = top + 2 * side + 2 * GAP + line * caption_line;
                let colour = if line == 0 { TEXT } else { FAINT };
                canvas.text_scaled(x, y, field, colour, SMALL_LETTER);
            }
        }
    }
    canvas
}

fn fields(caption: &str) -> impl Iterator<Item = &str> {
    caption
        .split("  ")
        .map(str::trim)
        .filter(|field| !field.is_empty())
}

/// The frames of an episode, enlarged, each with a line of text below: `caption(i)` for the i-th.
pub fn episode_frames(
    size: usize,
    frames: &[Vec<u8>],
    caption: impl Fn(usize) -> String,
) -> impl Iterator<Item = Canvas> {
    let captions: Vec<String> = (0..frames.len()).map(caption).collect();
    let panels: Vec<[Panel; 1]> = frames
        .iter()
        .map(|frame| [Panel { title: None, frame }])
        .collect();
    film(size, panels, captions)
}

/// The frames of an episode on one picture, `columns` in a row, the fields of `caption(i)` below the i-th.
pub fn episode_strip(
    size: usize,
    frames: &[Vec<u8>],
    caption: impl Fn(usize) -> String,
    columns: usize,
) -> Canvas {
    const LEAST_WIDTH: usize = 96;
    let scale = LEAST_WIDTH.div_ceil(size);
    let side = size * scale;
    let columns = columns.clamp(1, frames.len().max(1));
    let captions: Vec<String> = (0..frames.len()).map(caption).collect();
    let lines = captions
        .iter()
        .map(|c| fields(c).count())
        .max()
        .unwrap_or(0);
    let line = (font::GLYPH_HEIGHT + 2) * SMALL_LETTER;
    let cell = side + GAP + lines * line + MARGIN;
    let rows = frames.len().div_ceil(columns).max(1);
    let width = MARGIN + columns * (side + MARGIN);
    let mut canvas = Canvas::new(width, MARGIN + rows * cell, BACKGROUND);
    for (place, (frame, caption)) in frames.iter().zip(&captions).enumerate() {
        let x = MARGIN + place % columns * (side + MARGIN);
        let y = MARGIN + place / columns * cell;
        canvas.blit(frame, size, x, y, scale);
        for (number, field) in fields(caption).enumerate() {
            let colour = if number == 0 { TEXT } else { FAINT };
            let below = y + side + GAP + number * line;
            canvas.text_scaled(x, below, field, colour, SMALL_LETTER);
        }
    }
    canvas
}

/// The animation of a dream: reality at the left, the dream at the right, the step's caption below.
pub fn dream_beside_reality(size: usize, steps: &[DreamStep]) -> impl Iterator<Item = Canvas> {
    let captions: Vec<&str> = steps.iter().map(|step| step.caption.as_str()).collect();
    let panels: Vec<[Panel; 2]> = steps
        .iter()
        .map(|step| {
            [
                Panel {
                    title: Some(("REALITY", REAL)),
                    frame: &step.reality,
                },
                Panel {
                    title: Some(("DREAM", MADE_UP)),
                    frame: &step.dream,
                },
            ]
        })
        .collect();
    film(size, panels, captions)
}

struct Panel<'a> {
    title: Option<(&'static str, Colour)>,
    frame: &'a [u8],
}

/// One canvas per moment, drawn when it is taken: its panels side by side, titles above, the caption below.
fn film<'a, const N: usize>(
    size: usize,
    moments: Vec<[Panel<'a>; N]>,
    captions: Vec<impl AsRef<str>>,
) -> impl Iterator<Item = Canvas> {
    const LEAST_WIDTH: usize = 256;
    let scale = LEAST_WIDTH.div_ceil(size);
    let side = size * scale;
    let inner = N * (side + MARGIN) - MARGIN;
    // One letter size for the whole film, lest the text jump: the large one if every caption fits.
    let longest = captions.iter().map(|c| text_width(c.as_ref())).max();
    let letter = match longest {
        Some(width) if width > inner => SMALL_LETTER,
        _ => LETTER,
    };
    let titled = moments.iter().flatten().any(|panel| panel.title.is_some());
    let top = MARGIN + if titled { TEXT_HEIGHT + MARGIN / 2 } else { 0 };
    let caption_top = top + side + MARGIN;
    let height = caption_top + font::CAPITAL_HEIGHT * letter + MARGIN;

    let draw = move |(panels, caption): ([Panel<'a>; N], _)| {
        let mut canvas = Canvas::new(inner + 2 * MARGIN, height, BACKGROUND);
        for (place, panel) in panels.iter().enumerate() {
            let x = MARGIN + place * (side + MARGIN);
            if let Some((title, colour)) = panel.title {
                canvas.text(x, MARGIN, title, colour);
            }
            canvas.blit(panel.frame, size, x, top, scale);
        }
        let caption: &str = AsRef::as_ref(&caption);
        canvas.text_scaled(MARGIN, caption_top, caption, TEXT, letter);
        canvas
    };
    moments.into_iter().zip(captions).map(draw)
}

#[cfg(test)]
mod tests;
