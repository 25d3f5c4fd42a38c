//! Images and animations of a run: reconstructions, episodes, and dreams next to reality, as PNG and GIF.
//!
//! A frame is a square RGB observation of `size * size * 3` bytes, row by row from the top. Frames are enlarged by integer
//! factors without smoothing, so that images show exactly what the agent sees.

mod canvas;
mod font;

use std::borrow::Borrow;
use std::io;
use std::path::Path;

use gif::{Encoder, EncodingError, Frame, Repeat};

pub use canvas::Canvas;
use canvas::{Color, FONT_SCALE, TEXT_HEIGHT, text_width};
use rem_run::files::{failed, write_atomic};

const BACKGROUND: Color = [24, 26, 31];
const TEXT: Color = [222, 224, 230];
const FAINT: Color = [150, 155, 166];
/// Label of real frames.
const REAL: Color = [122, 200, 190];
/// Label of generated frames.
const GENERATED: Color = [240, 180, 110];

const MARGIN: usize = 12;
const GAP: usize = 4;
/// Scale of the font in captions below small frames.
const SMALL_FONT_SCALE: usize = 1;

/// Writes a looping GIF, atomically. Takes the frames one by one, so that they need not all be in memory.
///
/// Frames of at most 256 colors are exact; others are quantized, each with its own palette. The delay is at least 20 ms,
/// because browsers slow down faster animations.
///
/// # Errors
/// If there are no frames, or the file cannot be written.
///
/// # Panics
/// If the frames differ in size.
pub(crate) fn save_gif(
    path: &Path,
    frames: impl IntoIterator<Item: Borrow<Canvas>>,
    delay_ms: u32,
) -> io::Result<()> {
    let bytes = gif(frames, delay_ms).map_err(failed("write", path))?;
    write_atomic(path, &bytes)
}

/// The bytes of the file that [`save_gif`] writes.
pub(crate) fn gif(
    frames: impl IntoIterator<Item: Borrow<Canvas>>,
    delay_ms: u32,
) -> io::Result<Vec<u8>> {
    let mut frames = frames.into_iter().peekable();
    if frames.peek().is_none() {
        let reason = "an animation needs at least one frame";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    encode_gif(frames, delay_ms.max(20)).map_err(io::Error::other)
}

fn encode_gif(
    mut frames: impl Iterator<Item: Borrow<Canvas>>,
    delay_ms: u32,
) -> Result<Vec<u8>, EncodingError> {
    /// The palette is computed from every tenth pixel, which suffices for enlarged frames.
    const QUANTIZER_SPEED: i32 = 10;
    let first = frames.next().expect("a first frame");
    let size = |canvas: &Canvas| [canvas.width, canvas.height].map(|n| n as u16);
    let [width, height] = size(first.borrow());
    let mut encoder = Encoder::new(Vec::new(), width, height, &[])?;
    encoder.set_repeat(Repeat::Infinite)?;
    for canvas in std::iter::once(first).chain(frames) {
        let canvas: &Canvas = canvas.borrow();
        assert_eq!(
            size(canvas),
            [width, height],
            "all frames of an animation have the same size"
        );
        let mut frame = Frame::from_rgb_speed(width, height, &canvas.rgb, QUANTIZER_SPEED);
        frame.delay = (delay_ms / 10) as u16; // in hundredths of a second
        encoder.write_frame(&frame)?;
    }
    encoder.into_inner() // writes the trailer
}

/// Frames above their reconstructions, eight pairs per row.
pub(crate) fn reconstruction_sheet(
    size: usize,
    originals: &[Vec<u8>],
    reconstructions: &[Vec<u8>],
) -> Canvas {
    const COLUMNS: usize = 8;
    assert_eq!(
        originals.len(),
        reconstructions.len(),
        "one reconstruction per frame"
    );
    let labels = [("frames", REAL), ("reconstructions", GENERATED)];
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

/// An imagined frame and the real frame of the same step.
#[derive(Clone, Debug)]
pub struct FramePair {
    /// The imagined frame: `size * size * 3` bytes.
    pub dream: Vec<u8>,
    /// The real frame: `size * size * 3` bytes.
    pub reality: Vec<u8>,
    /// Fields separated by two spaces, such as `step 4  action right`. [`dream_strip`] draws each on its own line.
    pub caption: String,
}

/// An image of a dream: reality above, the dream below, one column per step, with captions. Shows at most `columns` evenly
/// spaced steps, including the first and the last.
///
/// # Panics
/// If a frame does not have `size * size * 3` bytes.
pub fn dream_strip(size: usize, steps: &[FramePair], columns: usize) -> Canvas {
    let labels = [("reality", REAL), ("dream", GENERATED)];
    let pairs: Vec<Pair> = evenly_spaced(steps.len(), columns)
        .map(|step| &steps[step])
        .map(|step| Pair {
            above: &step.reality,
            below: &step.dream,
            caption: &step.caption,
        })
        .collect();
    sheet(size, labels, &pairs, columns, 112)
}

/// At most `max` evenly spaced indices below `count`, including the first and the last.
fn evenly_spaced(count: usize, max: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(max);
    (0..taken).map(move |i| match taken {
        1 => 0,
        _ => i * (count - 1) / (taken - 1),
    })
}

struct Pair<'a> {
    above: &'a [u8],
    below: &'a [u8],
    caption: &'a str,
}

/// Pairs of frames, `columns` per band, with labels at the left and captions below.
fn sheet(
    size: usize,
    labels: [(&str, Color); 2],
    pairs: &[Pair],
    columns: usize,
    min_width: usize,
) -> Canvas {
    let scale = min_width.div_ceil(size);
    let side = size * scale;
    let columns = columns.min(pairs.len()).max(1);
    let bands = pairs.len().div_ceil(columns).max(1);
    let caption_line = (font::GLYPH_HEIGHT + 2) * SMALL_FONT_SCALE;
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
        for (row, (label, color)) in labels.into_iter().enumerate() {
            let middle = top + row * (side + GAP) + side / 2;
            let x = left - MARGIN - text_width(label);
            canvas.text(x, middle.saturating_sub(TEXT_HEIGHT / 2), label, color);
        }
        for (column, pair) in pairs.iter().enumerate() {
            let x = left + column * (side + GAP);
            canvas.blit(pair.above, size, x, top, scale);
            canvas.blit(pair.below, size, x, top + side + GAP, scale);
            for (line, field) in fields(pair.caption).enumerate() {
                let y = top + 2 * side + 2 * GAP + line * caption_line;
                let color = if line == 0 { TEXT } else { FAINT };
                canvas.text_scaled(x, y, field, color, SMALL_FONT_SCALE);
            }
        }
    }
    canvas
}

/// The fields of a caption, separated by two spaces.
fn fields(caption: &str) -> impl Iterator<Item = &str> {
    caption
        .split("  ")
        .map(str::trim)
        .filter(|field| !field.is_empty())
}

/// Enlarged frames of an episode, with `caption(i)` below the i-th.
pub(crate) fn episode_frames(
    size: usize,
    frames: &[Vec<u8>],
    caption: impl Fn(usize) -> String,
) -> impl Iterator<Item = Canvas> {
    let captions: Vec<String> = (0..frames.len()).map(caption).collect();
    let panels: Vec<[Panel; 1]> = frames
        .iter()
        .map(|frame| [Panel { title: None, frame }])
        .collect();
    panel_frames(size, panels, captions)
}

/// All frames of an episode in one image, `columns` per row, with the fields of `caption(i)` below the i-th.
pub(crate) fn episode_strip(
    size: usize,
    frames: &[Vec<u8>],
    caption: impl Fn(usize) -> String,
    columns: usize,
) -> Canvas {
    const MIN_WIDTH: usize = 96;
    let scale = MIN_WIDTH.div_ceil(size);
    let side = size * scale;
    let columns = columns.clamp(1, frames.len().max(1));
    let captions: Vec<String> = (0..frames.len()).map(caption).collect();
    let lines = captions
        .iter()
        .map(|c| fields(c).count())
        .max()
        .unwrap_or(0);
    let line = (font::GLYPH_HEIGHT + 2) * SMALL_FONT_SCALE;
    let cell = side + GAP + lines * line + MARGIN;
    let rows = frames.len().div_ceil(columns).max(1);
    let width = MARGIN + columns * (side + MARGIN);
    let mut canvas = Canvas::new(width, MARGIN + rows * cell, BACKGROUND);
    for (i, (frame, caption)) in frames.iter().zip(&captions).enumerate() {
        let x = MARGIN + i % columns * (side + MARGIN);
        let y = MARGIN + i / columns * cell;
        canvas.blit(frame, size, x, y, scale);
        for (number, field) in fields(caption).enumerate() {
            let color = if number == 0 { TEXT } else { FAINT };
            let below = y + side + GAP + number * line;
            canvas.text_scaled(x, below, field, color, SMALL_FONT_SCALE);
        }
    }
    canvas
}

/// The frames of an animation of a dream: reality at the left, the dream at the right, the caption below.
pub(crate) fn dream_next_to_reality(
    size: usize,
    steps: &[FramePair],
) -> impl Iterator<Item = Canvas> {
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
                    title: Some(("DREAM", GENERATED)),
                    frame: &step.dream,
                },
            ]
        })
        .collect();
    panel_frames(size, panels, captions)
}

struct Panel<'a> {
    title: Option<(&'static str, Color)>,
    frame: &'a [u8],
}

/// One image per step, drawn lazily: panels side by side, titles above, the caption below.
fn panel_frames<'a, const N: usize>(
    size: usize,
    steps: Vec<[Panel<'a>; N]>,
    captions: Vec<impl AsRef<str>>,
) -> impl Iterator<Item = Canvas> {
    const MIN_WIDTH: usize = 256;
    let scale = MIN_WIDTH.div_ceil(size);
    let side = size * scale;
    let inner = N * (side + MARGIN) - MARGIN;
    // One font size for all steps: the large one if every caption fits.
    let longest = captions.iter().map(|c| text_width(c.as_ref())).max();
    let font_scale = match longest {
        Some(width) if width > inner => SMALL_FONT_SCALE,
        _ => FONT_SCALE,
    };
    let titled = steps.iter().flatten().any(|panel| panel.title.is_some());
    let top = MARGIN + if titled { TEXT_HEIGHT + MARGIN / 2 } else { 0 };
    let caption_top = top + side + MARGIN;
    let height = caption_top + font::CAPITAL_HEIGHT * font_scale + MARGIN;

    let draw = move |(panels, caption): ([Panel<'a>; N], _)| {
        let mut canvas = Canvas::new(inner + 2 * MARGIN, height, BACKGROUND);
        for (i, panel) in panels.iter().enumerate() {
            let x = MARGIN + i * (side + MARGIN);
            if let Some((title, color)) = panel.title {
                canvas.text(x, MARGIN, title, color);
            }
            canvas.blit(panel.frame, size, x, top, scale);
        }
        let caption: &str = AsRef::as_ref(&caption);
        canvas.text_scaled(MARGIN, caption_top, caption, TEXT, font_scale);
        canvas
    };
    steps.into_iter().zip(captions).map(draw)
}

#[cfg(test)]
mod tests;
