//! Estimates and their intervals, a row each: what two figures are made of.

use rem_stats::Estimate;

use super::{SMALL, TEXT};
use crate::plot::axis::Axis;
use crate::plot::font;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::Ink;

/// The names at the left, which panels share.
pub struct Rows {
    rows: Vec<Row>,
    /// The width of the names.
    pub width: f64,
}

pub struct Row {
    pub label: String,
    /// Its colour.
    pub look: usize,
    /// A line above it.
    pub ruled: bool,
}

/// One measure of all rows.
pub struct Panel<'a> {
    pub title: &'a str,
    pub values: &'a [Option<Estimate>],
    /// A score to compare with.
    pub reference: Option<f64>,
    /// The ends of the axis, unless they follow from the values.
    pub range: Option<(f64, f64)>,
    pub ticks: usize,
}

const TITLE: f64 = 26.0;

impl Rows {
    /// Names that are wider than `room` are broken into lines.
    pub fn new(rows: Vec<Row>, room: f64) -> Self {
        let widest = rows
            .iter()
            .flat_map(|row| font::wrap(&row.label, TEXT, room))
            .map(|line| font::width(&line, TEXT))
            .fold(0.0, f64::max);
        Self {
            rows,
            width: widest.min(room) + 16.0,
        }
    }

    fn lines(&self, row: &Row) -> Vec<String> {
        let lines = font::wrap(&row.label, TEXT, self.width - 15.0).into_iter();
        lines
            .map(|line| font::fitted(&line, TEXT, self.width - 15.0))
            .collect()
    }

    fn height(&self, row: &Row) -> f64 {
        12.0 + 16.0 * self.lines(row).len() as f64
    }

    /// With title and axis.
    pub fn panel_height(&self) -> f64 {
        let rows: f64 = self.rows.iter().map(|row| self.height(row)).sum();
        TITLE + rows + 24.0
    }

    pub fn draw_labels(&self, svg: &mut Svg, (left, top): (f64, f64)) {
        let mut y = top + TITLE;
        for row in &self.rows {
            let height = self.height(row);
            let lines = self.lines(row);
            let first = y + height / 2.0 - 8.0 * (lines.len() - 1) as f64 + TEXT * 0.35;
            for (index, line) in lines.iter().enumerate() {
                let place = (left + self.width - 10.0, first + 16.0 * index as f64);
                svg.text(place, line, TEXT, Anchor::End, Ink::Text);
            }
            y += height;
        }
    }

    /// A panel from `left` to `right`.
    pub fn draw_panel(&self, svg: &mut Svg, panel: &Panel, (left, right): (f64, f64), top: f64) {
        let title = font::fitted(panel.title, TEXT, right - left);
        svg.text(
            ((left + right) / 2.0, top + 14.0),
            &title,
            TEXT,
            Anchor::Middle,
            Ink::Text,
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
            let x = axis.place(tick);
            svg.line((x, top + TITLE), (x, bottom), Stroke::new(Ink::Grid, 1.0));
            svg.text(
                (x, bottom + 16.0),
                &label,
                SMALL,
                Anchor::Middle,
                Ink::Muted,
            );
        }
        if let Some(reference) = panel.reference {
            let x = axis.place(reference);
            let stroke = Stroke {
                dashes: "4 3",
                ..Stroke::new(Ink::Muted, 1.5)
            };
            svg.line((x, top + TITLE), (x, bottom), stroke);
        }
        let mut y = top + TITLE;
        for (row, value) in self.rows.iter().zip(panel.values) {
            let height = self.height(row);
            if row.ruled {
                svg.line((left, y), (right, y), Stroke::new(Ink::Muted, 1.0));
            }
            draw_estimate(svg, &axis, row.look, value.as_ref(), y + height / 2.0);
            y += height;
        }
        svg.line(
            (left, bottom),
            (right, bottom),
            Stroke::new(Ink::Muted, 1.0),
        );
    }
}

fn draw_estimate(svg: &mut Svg, axis: &Axis, look: usize, estimate: Option<&Estimate>, y: f64) {
    let ink = Ink::Series(look);
    let Some(estimate) = estimate else {
        let left = axis.place(axis.low);
        svg.text(
            (left, y + SMALL * 0.35),
            "means only",
            SMALL,
            Anchor::Start,
            Ink::Muted,
        );
        return;
    };
    let x = axis.place(estimate.value);
    match estimate.interval {
        Some(interval) => {
            let (low, high) = (axis.place(interval.low), axis.place(interval.high));
            svg.bar((low, y - 6.0), (high - low, 12.0), ink, 0.4);
            svg.line((x, y - 8.0), (x, y + 8.0), Stroke::new(ink, 3.0));
        }
        None => svg.dot((x, y), 4.0, ink, false),
    }
}
