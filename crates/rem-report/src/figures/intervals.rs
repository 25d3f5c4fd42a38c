//! Panels with one estimate and interval per row, for aggregates and probabilities of improvement.

use rem_stats::Estimate;

use super::{SMALL, TEXT};
use crate::plot::axis::Axis;
use crate::plot::font;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::Color;

/// The rows of one or more panels, with labels at the left.
pub struct Rows {
    rows: Vec<Row>,
    /// The width of the labels.
    pub width: f64,
}

/// A row of all panels.
pub struct Row {
    /// The text at the left.
    pub label: String,
    /// The series index of its color.
    pub style: usize,
    /// Whether there is a line above it.
    pub ruled: bool,
}

/// The values of one metric for all rows.
pub struct Panel<'a> {
    /// The text above it.
    pub title: &'a str,
    /// One estimate per row.
    pub values: &'a [Option<Estimate>],
    /// The value of a dashed line.
    pub reference: Option<f64>,
    /// The range of the axis. `None` fits it to the values.
    pub range: Option<(f64, f64)>,
    /// Approximate number of ticks.
    pub ticks: usize,
}

/// Height of the title.
const TITLE: f64 = 26.0;

impl Rows {
    /// Wraps labels that are wider than `max_width`.
    pub fn new(rows: Vec<Row>, max_width: f64) -> Self {
        let widest = rows
            .iter()
            .flat_map(|row| font::wrap(&row.label, TEXT, max_width))
            .map(|line| font::width(&line, TEXT))
            .fold(0.0, f64::max);
        Self {
            rows,
            width: widest.min(max_width) + 16.0,
        }
    }

    fn lines(&self, row: &Row) -> Vec<String> {
        let lines = font::wrap(&row.label, TEXT, self.width - 15.0).into_iter();
        lines
            .map(|line| font::truncate(&line, TEXT, self.width - 15.0))
            .collect()
    }

    fn height(&self, row: &Row) -> f64 {
        12.0 + 16.0 * self.lines(row).len() as f64
    }

    /// The height of a panel with title and axis.
    pub fn panel_height(&self) -> f64 {
        let rows: f64 = self.rows.iter().map(|row| self.height(row)).sum();
        TITLE + rows + 24.0
    }

    /// Draws the labels of a line of panels.
    pub fn draw_labels(&self, svg: &mut Svg, (left, top): (f64, f64)) {
        let mut y = top + TITLE;
        for row in &self.rows {
            let height = self.height(row);
            let lines = self.lines(row);
            let first = y + height / 2.0 - 8.0 * (lines.len() - 1) as f64 + TEXT * 0.35;
            for (index, line) in lines.iter().enumerate() {
                let place = (left + self.width - 10.0, first + 16.0 * index as f64);
                svg.text(place, line, TEXT, Anchor::End, Color::Text);
            }
            y += height;
        }
    }

    /// Draws a panel from `left` to `right`.
    pub fn draw_panel(&self, svg: &mut Svg, panel: &Panel, (left, right): (f64, f64), top: f64) {
        let title = font::truncate(panel.title, TEXT, right - left);
        svg.text(
            ((left + right) / 2.0, top + 14.0),
            &title,
            TEXT,
            Anchor::Middle,
            Color::Text,
        );
        let ends = panel.values.iter().flatten().flat_map(|estimate| {
            let interval = estimate
                .interval
                .map(|interval| [interval.low, interval.high]);
            [estimate.value]
                .into_iter()
                .chain(interval.into_iter().flatten())
        });
        let inside = (left + 8.0, right - 8.0);
        let axis = match panel.range {
            Some((low, high)) => Axis::around([low, high], panel.ticks, inside),
            None => Axis::around(ends, panel.ticks, inside),
        };
        let bottom = top + self.panel_height() - 24.0;
        for (tick, label) in axis.labels() {
            let x = axis.pixel(tick);
            svg.line((x, top + TITLE), (x, bottom), Stroke::new(Color::Grid, 1.0));
            svg.text(
                (x, bottom + 16.0),
                &label,
                SMALL,
                Anchor::Middle,
                Color::Muted,
            );
        }
        if let Some(reference) = panel.reference {
            let x = axis.pixel(reference);
            let stroke = Stroke {
                dashes: "4 3",
                ..Stroke::new(Color::Muted, 1.5)
            };
            svg.line((x, top + TITLE), (x, bottom), stroke);
        }
        let mut y = top + TITLE;
        for (row, value) in self.rows.iter().zip(panel.values) {
            let height = self.height(row);
            if row.ruled {
                svg.line((left, y), (right, y), Stroke::new(Color::Muted, 1.0));
            }
            draw_estimate(svg, &axis, row.style, value.as_ref(), y + height / 2.0);
            y += height;
        }
        svg.line(
            (left, bottom),
            (right, bottom),
            Stroke::new(Color::Muted, 1.0),
        );
    }
}

fn draw_estimate(svg: &mut Svg, axis: &Axis, style: usize, estimate: Option<&Estimate>, y: f64) {
    let color = Color::Series(style);
    let Some(estimate) = estimate else {
        let left = axis.pixel(axis.low);
        svg.text(
            (left, y + SMALL * 0.35),
            "means only",
            SMALL,
            Anchor::Start,
            Color::Muted,
        );
        return;
    };
    let x = axis.pixel(estimate.value);
    match estimate.interval {
        Some(interval) => {
            let (low, high) = (axis.pixel(interval.low), axis.pixel(interval.high));
            svg.rect((low, y - 6.0), (high - low, 12.0), color, 0.4);
            svg.line((x, y - 8.0), (x, y + 8.0), Stroke::new(color, 3.0));
        }
        None => svg.dot((x, y), 4.0, color, false),
    }
}
