//! Sheets: columns of a real and a generated frame, and the description of a sheet in its PNG file.

use serde::Serialize;

use super::canvas::{Canvas, Color, TEXT_HEIGHT, text_width};
use super::{BACKGROUND, FAINT, GAP, MARGIN, SMALL_FONT_SCALE, TEXT, fields, font};

/// The frames of a column, above and below, and its caption.
pub(super) struct Column<'a> {
    pub frames: [Option<&'a [u8]>; 2],
    pub caption: &'a str,
}

/// Where the frames of a sheet are and what they show, as JSON in the text chunk `rem-sheet` of the PNG file. A page cuts
/// the frames out and draws the labels as text.
#[derive(Serialize)]
struct Description {
    /// Height and width of a frame in pixels.
    size: usize,
    /// Pixels of the image per pixel of a frame.
    scale: usize,
    /// The labels of the two rows.
    rows: [String; 2],
    columns: Vec<ColumnDescription>,
}

#[derive(Serialize)]
struct ColumnDescription {
    /// The upper left corner of each frame; `null` for a frame after the end of an episode.
    frames: [Option<[usize; 2]>; 2],
    /// The fields of the caption.
    caption: Vec<String>,
}

/// Columns of two frames, `per_band` side by side, with labels at the left and captions below. A frame is at least
/// `min_side` pixels wide.
pub(super) fn sheet(
    size: usize,
    labels: [(&str, Color); 2],
    columns: &[Column],
    per_band: usize,
    min_side: usize,
) -> Canvas {
    let scale = min_side.div_ceil(size);
    let side = size * scale;
    let per_band = per_band.min(columns.len()).max(1);
    let bands = columns.len().div_ceil(per_band).max(1);
    let caption_line = (font::GLYPH_HEIGHT + 2) * SMALL_FONT_SCALE;
    let caption_lines = columns.iter().map(|column| fields(column.caption).count());
    let captions = match caption_lines.max().unwrap_or(0) {
        0 => 0,
        lines => GAP + lines * caption_line,
    };
    let label_width = labels.iter().map(|(label, _)| text_width(label)).max();
    let left = MARGIN + label_width.unwrap_or(0) + MARGIN;
    let band_height = 2 * side + GAP + captions + MARGIN;
    let width = left + per_band * (side + GAP) - GAP + MARGIN;

    let mut canvas = Canvas::new(width, MARGIN + bands * band_height, BACKGROUND);
    let mut described = Vec::with_capacity(columns.len());
    for (band, columns) in columns.chunks(per_band).enumerate() {
        let top = MARGIN + band * band_height;
        for (row, (label, color)) in labels.into_iter().enumerate() {
            let middle = top + row * (side + GAP) + side / 2;
            let x = left - MARGIN - text_width(label);
            canvas.text(x, middle.saturating_sub(TEXT_HEIGHT / 2), label, color);
        }
        for (index, column) in columns.iter().enumerate() {
            let x = left + index * (side + GAP);
            let corners = [[x, top], [x, top + side + GAP]];
            for (frame, [x, y]) in column.frames.into_iter().zip(corners) {
                canvas.framed(frame, size, x, y, scale);
            }
            for (line, field) in fields(column.caption).enumerate() {
                let y = top + 2 * side + 2 * GAP + line * caption_line;
                let color = if line == 0 { TEXT } else { FAINT };
                canvas.text_scaled(x, y, field, color, SMALL_FONT_SCALE);
            }
            described.push(ColumnDescription {
                frames: [0, 1].map(|row| column.frames[row].map(|_| corners[row])),
                caption: fields(column.caption).map(str::to_owned).collect(),
            });
        }
    }
    canvas.describe(&Description {
        size,
        scale,
        rows: labels.map(|(label, _)| label.to_owned()),
        columns: described,
    });
    canvas
}
