//! Shares of runs above a score.

use super::{Canvas, SMALL, Size, TEXT, Words};
use crate::plot::axis::Axis;
use crate::plot::legend;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::{Ink, dashes};
use crate::report::Report;

pub fn draw(report: &Report, canvas: &Canvas, words: &Words) -> String {
    let mut svg = Svg::new(canvas.width(), canvas.theme);
    let (height, ticks) = match canvas.size {
        Size::Wide => (380.0, 8),
        Size::Narrow => (270.0, 4),
    };
    let (left, right, top) = (52.0, canvas.width() - 12.0, 8.0);
    let across = Axis::around(report.thresholds.iter().copied(), ticks, (left, right));
    let up = Axis::around([0.0, 1.0], 4, (top + height, top));
    for (tick, label) in up.labels() {
        let y = up.place(tick);
        svg.line((left, y), (right, y), Stroke::new(Ink::Grid, 1.0));
        svg.text(
            (left - 7.0, y + SMALL * 0.35),
            &label,
            SMALL,
            Anchor::End,
            Ink::Muted,
        );
    }
    for (tick, label) in across.labels() {
        let x = across.place(tick);
        svg.line(
            (x, top + height),
            (x, top + height + 5.0),
            Stroke::new(Ink::Muted, 1.0),
        );
        svg.text(
            (x, top + height + 19.0),
            &label,
            SMALL,
            Anchor::Middle,
            Ink::Muted,
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
        let place = |(threshold, share): (f64, f64)| (across.place(threshold), up.place(share));
        let mut band: Vec<_> = ends(|interval| interval.high).map(place).collect();
        let below: Vec<_> = ends(|interval| interval.low).map(place).collect();
        band.extend(below.into_iter().rev());
        if !band.is_empty() {
            svg.area(&band, Ink::Series(report.looks[*system]), 0.15);
        }
    }
    for (system, profile) in &curves {
        let points = report.thresholds.iter().zip(profile.iter());
        let points: Vec<_> = points
            .map(|(t, e)| (across.place(*t), up.place(e.value)))
            .collect();
        let stroke = Stroke {
            dashes: dashes(report.looks[*system]),
            ..Stroke::new(Ink::Series(report.looks[*system]), 2.2)
        };
        svg.path(&points, stroke);
    }
    svg.line(
        (left, top + height),
        (right, top + height),
        Stroke::new(Ink::Muted, 1.0),
    );
    svg.upright_text(
        (13.0, top + height / 2.0),
        "Share of runs with a higher score",
        SMALL,
        Ink::Muted,
    );
    let below = top + height + 40.0;
    svg.text(
        ((left + right) / 2.0, below),
        "Human-normalised score",
        SMALL,
        Anchor::Middle,
        Ink::Muted,
    );
    let entries: Vec<_> = curves
        .iter()
        .map(|(system, _)| (report.looks[*system], report.systems[*system].name.as_str()))
        .collect();
    let legend = legend::draw(&mut svg, &entries, (left, below + 10.0), right - left, TEXT);
    svg.finish(
        below + 14.0 + legend,
        words.id,
        words.title,
        words.description,
    )
}
