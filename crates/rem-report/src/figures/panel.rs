//! Panels of a figure: their places, titles and axes.

use super::{Canvas, SMALL, Size, TEXT};
use crate::plot::axis::Axis;
use crate::plot::font;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::Color;

/// Height of the area inside the axes.
pub const HEIGHT: f64 = 170.0;
const GAP: f64 = 22.0;
/// Height of the title, the ticks and the axis label of a panel.
const PADDING: f64 = 78.0;

/// The arrangement of panels: up to three in a row, or one on a narrow canvas.
pub struct Grid {
    panels: usize,
    columns: usize,
    width: f64,
}

/// The top left corner and the width of a panel.
#[derive(Clone, Copy)]
pub struct Place {
    left: f64,
    top: f64,
    width: f64,
}

impl Grid {
    pub fn new(panels: usize, canvas: &Canvas) -> Self {
        let columns = match canvas.size {
            Size::Wide => panels.clamp(2, 3),
            Size::Narrow => 1,
        };
        Self {
            panels,
            columns,
            width: (canvas.width() - GAP * (columns - 1) as f64) / columns as f64,
        }
    }

    /// The place of a panel, from the number of panels before it.
    pub fn place(&self, index: usize) -> Place {
        Place {
            left: (index % self.columns) as f64 * (self.width + GAP),
            top: (index / self.columns) as f64 * (HEIGHT + PADDING),
            width: self.width,
        }
    }

    /// The position below all panels.
    pub fn bottom(&self) -> f64 {
        self.panels.div_ceil(self.columns) as f64 * (HEIGHT + PADDING)
    }
}

/// The texts of a panel.
pub struct Labels<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
}

/// The axes of a panel and the borders of the area inside them.
pub struct Axes {
    pub x: Axis,
    pub y: Axis,
    /// The left border.
    pub start: f64,
    /// The right border.
    pub end: f64,
    /// The upper border.
    pub top: f64,
}

impl Axes {
    /// Draws title, axes and grid lines around these values.
    pub fn draw(
        svg: &mut Svg,
        place: Place,
        labels: Labels,
        xs: impl Iterator<Item = f64>,
        ys: impl Iterator<Item = f64>,
    ) -> Self {
        let Place { left, top, width } = place;
        let above = top + 26.0;
        let below = above + HEIGHT;
        let y = Axis::around(ys, 4, (below, above));
        let ticks = y.labels();
        let widths = ticks.iter().map(|(_, label)| font::width(label, SMALL));
        let widest = widths.fold(0.0, f64::max);
        let (start, end) = (left + 22.0 + widest + 6.0, left + width - 16.0);
        let middle = (start + end) / 2.0;
        let mut write = |position, text: &str, size, anchor, color| {
            svg.text(position, text, size, anchor, color);
        };
        let title = font::truncate(labels.title, TEXT, end - start);
        write(
            (middle, top + 15.0),
            &title,
            TEXT,
            Anchor::Middle,
            Color::Text,
        );
        for (tick, label) in &ticks {
            let at = (start - 6.0, y.pixel(*tick) + SMALL * 0.35);
            write(at, label, SMALL, Anchor::End, Color::Muted);
        }
        let x = Axis::around(xs, 4, (start, end));
        let x_ticks = x.labels();
        for (tick, label) in &x_ticks {
            let at = (x.pixel(*tick), below + 17.0);
            write(at, label, SMALL, Anchor::Middle, Color::Muted);
        }
        let at = (middle, below + 34.0);
        write(at, labels.x, SMALL, Anchor::Middle, Color::Muted);
        let at = (left + 12.0, above + HEIGHT / 2.0);
        svg.vertical_text(at, labels.y, SMALL, Color::Muted);

        for (tick, _) in &ticks {
            let at = y.pixel(*tick);
            svg.line((start, at), (end, at), Stroke::new(Color::Grid, 1.0));
        }
        for (tick, _) in &x_ticks {
            let at = x.pixel(*tick);
            svg.line(
                (at, below),
                (at, below + 4.0),
                Stroke::new(Color::Muted, 1.0),
            );
        }
        svg.line((start, below), (end, below), Stroke::new(Color::Muted, 1.0));
        Self {
            x,
            y,
            start,
            end,
            top: above,
        }
    }
}
