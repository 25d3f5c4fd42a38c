//! Learning curves: scores against environment steps, one panel per game.

use super::panel::{Axes, Grid, HEIGHT, Labels, Place};
use super::{AltText, Canvas, SMALL, TEXT};
use crate::curves::{Curve, Panel};
use crate::plot::axis::Axis;
use crate::plot::legend;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::{Color, dashes};
use crate::report::Report;
use crate::table::fixed;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let grid = Grid::new(report.panels.len(), canvas);
    for (index, panel) in report.panels.iter().enumerate() {
        draw_panel(&mut svg, report, panel, grid.place(index));
    }
    let bottom = grid.bottom();
    let mut systems: Vec<usize> = Vec::new();
    for curve in report.panels.iter().flat_map(|panel| &panel.curves) {
        if !systems.contains(&curve.system) {
            systems.push(curve.system);
        }
    }
    let entry =
        |system: &usize| legend::Entry::new(report.styles[*system], &report.systems[*system].name);
    let entries: Vec<_> = systems.iter().map(entry).collect();
    let legend = legend::draw(
        &mut svg,
        &entries,
        (8.0, bottom),
        canvas.width() - 16.0,
        TEXT,
    );
    svg.finish(bottom + legend + 4.0, alt.id, alt.title, alt.description)
}

fn draw_panel(svg: &mut Svg, report: &Report, panel: &Panel, place: Place) {
    let (low, high) = range(panel);
    // A reference far from all curves would flatten them: show only its name and value.
    let near = |score: f64| score >= low - 2.0 * (high - low) && score <= high + 2.0 * (high - low);
    let shown = panel.references.iter().filter(|(_, score)| near(*score));
    let scores = [low, high].into_iter().chain(shown.map(|(_, s)| *s));
    let steps = panel.curves.iter().flat_map(steps);
    let labels = Labels {
        title: &panel.title,
        x: "Environment steps",
        y: panel.scale,
    };
    let axes = Axes::draw(svg, place, labels, [0.0].into_iter().chain(steps), scores);
    for curve in &panel.curves {
        draw_curve(svg, curve, report.styles[curve.system], &axes.x, &axes.y);
    }
    draw_references(svg, panel, &axes.y, near, (axes.start, axes.end), axes.top);
}

fn draw_curve(svg: &mut Svg, curve: &Curve, style: usize, x_axis: &Axis, y_axis: &Axis) {
    let color = Color::Series(style);
    let place = |steps: u64, score: f64| (x_axis.pixel(steps as f64), y_axis.pixel(score));
    for run in &curve.runs {
        let points: Vec<_> = run
            .iter()
            .map(|&(steps, score)| place(steps, score))
            .collect();
        let thin = Stroke {
            opacity: 0.45,
            ..Stroke::new(color, 1.0)
        };
        svg.path(&points, thin);
    }
    let intervals = curve
        .points
        .iter()
        .filter_map(|(steps, e)| Some((*steps, e.interval?)));
    let mut band: Vec<_> = intervals
        .clone()
        .map(|(steps, i)| place(steps, i.high))
        .collect();
    let below: Vec<_> = intervals.map(|(steps, i)| place(steps, i.low)).collect();
    band.extend(below.into_iter().rev());
    if !band.is_empty() {
        svg.polygon(&band, color, 0.18);
    }
    let points: Vec<_> = curve
        .points
        .iter()
        .map(|(steps, e)| place(*steps, e.value))
        .collect();
    let thick = Stroke {
        dashes: dashes(style),
        ..Stroke::new(color, 2.4)
    };
    svg.path(&points, thick);
    if let [single] = points[..] {
        svg.dot(single, 3.0, color, true);
    }
}

/// Draws references as dotted lines, with names that do not overlap.
fn draw_references(
    svg: &mut Svg,
    panel: &Panel,
    y_axis: &Axis,
    near: impl Fn(f64) -> bool,
    (start, end): (f64, f64),
    above: f64,
) {
    let mut taken: Vec<f64> = Vec::new();
    for (name, score) in &panel.references {
        if !near(*score) {
            let arrow = if *score > y_axis.high { "↑" } else { "↓" };
            let y = if *score > y_axis.high {
                above + 12.0
            } else {
                above + HEIGHT - 5.0
            };
            let text = format!("{name} {} {arrow}", fixed(*score, 1).replace('-', "−"));
            svg.text_over_lines((end - 3.0, y), &text, SMALL, Anchor::End, Color::Muted);
            taken.push(y);
            continue;
        }
        let y = y_axis.pixel(*score);
        let stroke = Stroke {
            dashes: "2 3",
            ..Stroke::new(Color::Text, 1.2)
        };
        svg.line((start, y), (end, y), stroke);
        let free = |place: &f64| {
            *place > above + 9.0
                && *place < above + HEIGHT - 2.0
                && taken
                    .iter()
                    .all(|other| (other - place).abs() > SMALL + 2.0)
        };
        let places = [y - 4.0, y + SMALL, y - 4.0 - SMALL * 1.4, y + SMALL * 2.4];
        if let Some(place) = places.into_iter().find(free) {
            svg.text_over_lines((end - 3.0, place), name, SMALL, Anchor::End, Color::Muted);
            taken.push(place);
        }
    }
}

/// All steps of a curve.
fn steps(curve: &Curve) -> impl Iterator<Item = f64> {
    let runs = curve.runs.iter().flatten().map(|(steps, _)| *steps as f64);
    runs.chain(curve.points.iter().map(|(steps, _)| *steps as f64))
}

/// The range of all scores and intervals of a panel.
fn range(panel: &Panel) -> (f64, f64) {
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    let mut extend = |score: f64| range = (range.0.min(score), range.1.max(score));
    for curve in &panel.curves {
        curve
            .runs
            .iter()
            .flatten()
            .for_each(|(_, score)| extend(*score));
        for (_, estimate) in &curve.points {
            extend(estimate.value);
            if let Some(interval) = estimate.interval {
                extend(interval.low);
                extend(interval.high);
            }
        }
    }
    match range {
        (low, high) if low > high => (0.0, 1.0),
        (low, high) if low == high => (
            low - 0.5 * low.abs().max(1.0),
            high + 0.5 * high.abs().max(1.0),
        ),
        range => range,
    }
}
