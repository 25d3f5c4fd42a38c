//! Images and animations of a run: reconstructions, episodes, and dreams next to reality, as PNG and GIF.
//!
//! A frame is a square RGB observation of `size * size * 3` bytes, row by row from the top. Frames are enlarged by integer
//! factors without smoothing, so that images show exactly what the agent sees. A thin outline separates dark frames from the
//! background.
//!
//! Sheets of frames carry a description in their PNG file, with which a page can draw their labels as text.

mod canvas;
mod font;
mod sheet;

use std::borrow::Borrow;
use std::io;
use std::path::Path;

use gif::{Encoder, EncodingError, Frame, Repeat};

pub use canvas::Canvas;
use canvas::{Color, FONT_SCALE, TEXT_HEIGHT, text_width};
use rem_run::files::{failed, write_atomic};
use sheet::{Column, sheet};

const BACKGROUND: Color = [24, 26, 31];
const TEXT: Color = [222, 224, 230];
const FAINT: Color = [150, 155, 166];
/// Label of real frames.
const REAL: Color = [122, 200, 190];
/// Label of generated frames.
const GENERATED: Color = [240, 180, 110];
/// Around each frame.
const OUTLINE: Color = [84, 89, 101];
/// In place of a frame after the end of an episode.
const NO_FRAME: &str = "end";

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
    let columns: Vec<Column> = originals
        .iter()
        .zip(reconstructions)
        .map(|(above, below)| Column {
            frames: [Some(above), Some(below)],
            caption: "",
        })
        .collect();
    sheet(size, labels, &columns, COLUMNS, 96)
}

/// A transition in a dream and in reality: the frames that follow it.
#[derive(Clone, Debug)]
pub struct FramePair {
    /// The imagined frame, `size * size * 3` bytes. `None` once the imagined episode has ended: the world model is not
    /// trained on frames after an end.
    pub dream: Option<Vec<u8>>,
    /// The real frame. `None` after the last step of an episode of the replay, which does not hold the frame after it.
    pub reality: Option<Vec<u8>>,
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
    let shown: Vec<Column> = evenly_spaced(steps.len(), columns)
        .map(|step| &steps[step])
        .map(|step| Column {
            frames: [step.reality.as_deref(), step.dream.as_deref()],
            caption: &step.caption,
        })
        .collect();
    sheet(size, labels, &shown, columns, 112)
}

/// At most `max` evenly spaced indices below `count`, including the first and the last.
fn evenly_spaced(count: usize, max: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(max);
    (0..taken).map(move |i| match taken {
        1 => 0,
        _ => i * (count - 1) / (taken - 1),
    })
}

/// The fields of a caption, separated by two spaces.
fn fields(caption: &str) -> impl Iterator<Item = &str> {
    caption
        .split("  ")
        .map(str::trim)
        .filter(|field| !field.is_empty())
}

/// A frame of an episode and the text below it: fields separated by two spaces.
pub(crate) struct CaptionedFrame<'a> {
    /// `None` for the frame after the end of the episode, if it was not kept.
    pub frame: Option<&'a [u8]>,
    pub caption: String,
}

/// Enlarged frames of an episode, each with its caption.
pub(crate) fn episode_frames(
    size: usize,
    frames: Vec<CaptionedFrame>,
) -> impl Iterator<Item = Canvas> {
    let panel = |frame| [Panel { title: None, frame }];
    let (panels, captions) = frames
        .into_iter()
        .map(|captioned| (panel(captioned.frame), captioned.caption))
        .unzip();
    panel_frames::<1>(size, panels, captions)
}

/// All frames of an episode in one image, `columns` per row, with the fields of their captions below.
pub(crate) fn episode_strip(size: usize, frames: &[CaptionedFrame], columns: usize) -> Canvas {
    const MIN_WIDTH: usize = 96;
    let scale = MIN_WIDTH.div_ceil(size);
    let side = size * scale;
    let columns = columns.clamp(1, frames.len().max(1));
    let lines = frames
        .iter()
        .map(|captioned| fields(&captioned.caption).count())
        .max()
        .unwrap_or(0);
    let line = (font::GLYPH_HEIGHT + 2) * SMALL_FONT_SCALE;
    let cell = side + GAP + lines * line + MARGIN;
    let rows = frames.len().div_ceil(columns).max(1);
    let width = MARGIN + columns * (side + MARGIN);
    let mut canvas = Canvas::new(width, MARGIN + rows * cell, BACKGROUND);
    for (i, CaptionedFrame { frame, caption }) in frames.iter().enumerate() {
        let x = MARGIN + i % columns * (side + MARGIN);
        let y = MARGIN + i / columns * cell;
        canvas.framed(*frame, size, x, y, scale);
        for (number, field) in fields(caption).enumerate() {
            let color = if number == 0 { TEXT } else { FAINT };
            let below = y + side + GAP + number * line;
            canvas.text_scaled(x, below, field, color, SMALL_FONT_SCALE);
        }
    }
    canvas
}

/// The return of these rewards. An empty sum is 0, not -0.
pub(crate) fn return_of(rewards: &[f32]) -> f32 {
    rewards.iter().fold(0.0, |sum, reward| sum + reward)
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
                    frame: step.reality.as_deref(),
                },
                Panel {
                    title: Some(("DREAM", GENERATED)),
                    frame: step.dream.as_deref(),
                },
            ]
        })
        .collect();
    panel_frames(size, panels, captions)
}

struct Panel<'a> {
    title: Option<(&'static str, Color)>,
    frame: Option<&'a [u8]>,
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
            canvas.framed(panel.frame, size, x, top, scale);
        }
        let caption: &str = AsRef::as_ref(&caption);
        canvas.text_scaled(MARGIN, caption_top, caption, TEXT, font_scale);
        canvas
    };
    steps.into_iter().zip(captions).map(draw)
}

#[cfg(test)]
mod tests;
