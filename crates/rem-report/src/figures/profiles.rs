//! Performance profiles: the fraction of runs above a score (Figures 8 and 14).

use super::{AltText, Canvas, SMALL, Size, TEXT};
use crate::plot::axis::Axis;
use crate::plot::legend;
use crate::plot::svg::{Anchor, Stroke};
use crate::plot::theme::{Color, dashes};
use crate::report::Report;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let (height, ticks) = match canvas.size {
        Size::Wide => (380.0, 8),
        Size::Narrow => (270.0, 4),
    };
    let (left, right, top) = (52.0, canvas.width() - 12.0, 8.0);
    let x_axis = Axis::around(report.thresholds.iter().copied(), ticks, (left, right));
    let y_axis = Axis::around([0.0, 1.0], 4, (top + height, top));
    for (tick, label) in y_axis.labels() {
        let y = y_axis.pixel(tick);
        svg.line((left, y), (right, y), Stroke::new(Color::Grid, 1.0));
        svg.text(
            (left - 7.0, y + SMALL * 0.35),
            &label,
            SMALL,
            Anchor::End,
            Color::Muted,
        );
    }
    for (tick, label) in x_axis.labels() {
        let x = x_axis.pixel(tick);
        svg.line(
            (x, top + height),
            (x, top + height + 5.0),
            Stroke::new(Color::Muted, 1.0),
        );
        svg.text(
            (x, top + height + 19.0),
            &label,
            SMALL,
            Anchor::Middle,
            Color::Muted,
        );
    }
    let curves = report
        .summaries
        .iter()
        .filter_map(|summary| Some((summary.system, summary.profile.as_ref()?)));
    let curves: Vec<_> = curves.collect();
    for (system, profile) in &curves {
        let points = || report.thresholds.iter().zip(profile.iter());
        let ends = |end: fn(&rem_stats::Interval) -> f64| {
            points().filter_map(move |(threshold, e)| Some((*threshold, end(e.interval.as_ref()?))))
        };
        let place =
            |(threshold, fraction): (f64, f64)| (x_axis.pixel(threshold), y_axis.pixel(fraction));
        let mut band: Vec<_> = ends(|interval| interval.high).map(place).collect();
        let below: Vec<_> = ends(|interval| interval.low).map(place).collect();
        band.extend(below.into_iter().rev());
        if !band.is_empty() {
            svg.polygon(&band, Color::Series(report.styles[*system]), 0.15);
        }
    }
    for (system, profile) in &curves {
        let points = report.thresholds.iter().zip(profile.iter());
        let points: Vec<_> = points
            .map(|(t, e)| (x_axis.pixel(*t), y_axis.pixel(e.value)))
            .collect();
        let stroke = Stroke {
            dashes: dashes(report.styles[*system]),
            ..Stroke::new(Color::Series(report.styles[*system]), 2.2)
        };
        svg.path(&points, stroke);
    }
    svg.line(
        (left, top + height),
        (right, top + height),
        Stroke::new(Color::Muted, 1.0),
    );
    svg.vertical_text(
        (13.0, top + height / 2.0),
        "Fraction of runs with a higher score",
        SMALL,
        Color::Muted,
    );
    let below = top + height + 40.0;
    svg.text(
        ((left + right) / 2.0, below),
        "Human-normalized score",
        SMALL,
        Anchor::Middle,
        Color::Muted,
    );
    let entry = |(system, _): &(usize, _)| {
        legend::Entry::new(report.styles[*system], &report.systems[*system].name)
    };
    let entries: Vec<_> = curves.iter().map(entry).collect();
    let legend = legend::draw(&mut svg, &entries, (left, below + 10.0), right - left, TEXT);
    svg.finish(below + 14.0 + legend, alt.id, alt.title, alt.description)
}
