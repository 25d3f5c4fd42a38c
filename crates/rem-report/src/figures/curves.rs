//! Learning curves: scores against environment steps, one panel per game.

use super::{AltText, Canvas, SMALL, Size, TEXT};
use crate::curves::{Curve, Panel};
use crate::plot::axis::Axis;
use crate::plot::svg::{Anchor, Stroke, Svg};
use crate::plot::theme::{Color, dashes};
use crate::plot::{font, legend};
use crate::report::Report;
use crate::table::fixed;

const GAP: f64 = 22.0;
const HEIGHT: f64 = 170.0;
/// Height of the title, the ticks and the axis label of a panel.
const PADDING: f64 = 78.0;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let columns = match canvas.size {
        Size::Wide => report.panels.len().clamp(2, 3),
        Size::Narrow => 1,
    };
    let width = (canvas.width() - GAP * (columns - 1) as f64) / columns as f64;
    for (index, panel) in report.panels.iter().enumerate() {
        let left = (index % columns) as f64 * (width + GAP);
        let top = (index / columns) as f64 * (HEIGHT + PADDING);
        draw_panel(&mut svg, report, panel, (left, top), width);
    }
    let bottom = report.panels.len().div_ceil(columns) as f64 * (HEIGHT + PADDING);
    let mut systems: Vec<usize> = Vec::new();
    for curve in report.panels.iter().flat_map(|panel| &panel.curves) {
        if !systems.contains(&curve.system) {
            systems.push(curve.system);
        }
    }
    let entries: Vec<_> = systems
        .iter()
        .map(|system| {
            (
                report.styles[*system],
                report.systems[*system].name.as_str(),
            )
        })
        .collect();
    let legend = legend::draw(
        &mut svg,
        &entries,
        (8.0, bottom),
        canvas.width() - 16.0,
        TEXT,
    );
    svg.finish(bottom + legend + 4.0, alt.id, alt.title, alt.description)
}

fn draw_panel(svg: &mut Svg, report: &Report, panel: &Panel, (left, top): (f64, f64), width: f64) {
    let above = top + 26.0;
    let (low, high) = range(panel);
    // A reference far from all curves would flatten them: show only its name and value.
    let near = |score: f64| score >= low - 2.0 * (high - low) && score <= high + 2.0 * (high - low);
    let shown = panel.references.iter().filter(|(_, score)| near(*score));
    let y_axis = Axis::around(
        [low, high]
            .into_iter()
            .chain(shown.map(|(_, score)| *score)),
        4,
        (above + HEIGHT, above),
    );
    let labels = y_axis.labels();
    let widest = labels
        .iter()
        .map(|(_, label)| font::width(label, SMALL))
        .fold(0.0, f64::max);
    let (start, end) = (left + 22.0 + widest + 6.0, left + width - 16.0);
    let title = font::truncate(&panel.title, TEXT, end - start);
    svg.text(
        ((start + end) / 2.0, top + 15.0),
        &title,
        TEXT,
        Anchor::Middle,
        Color::Text,
    );
    for (tick, label) in &labels {
        let y = y_axis.pixel(*tick);
        svg.line((start, y), (end, y), Stroke::new(Color::Grid, 1.0));
        svg.text(
            (start - 6.0, y + SMALL * 0.35),
            label,
            SMALL,
            Anchor::End,
            Color::Muted,
        );
    }
    let steps = panel.curves.iter().flat_map(steps);
    let x_axis = Axis::around([0.0].into_iter().chain(steps), 4, (start, end));
    for (tick, label) in x_axis.labels() {
        let x = x_axis.pixel(tick);
        svg.line(
            (x, above + HEIGHT),
            (x, above + HEIGHT + 4.0),
            Stroke::new(Color::Muted, 1.0),
        );
        svg.text(
            (x, above + HEIGHT + 17.0),
            &label,
            SMALL,
            Anchor::Middle,
            Color::Muted,
        );
    }
    svg.line(
        (start, above + HEIGHT),
        (end, above + HEIGHT),
        Stroke::new(Color::Muted, 1.0),
    );
    svg.vertical_text(
        (left + 12.0, above + HEIGHT / 2.0),
        panel.scale,
        SMALL,
        Color::Muted,
    );
    let middle = (start + end) / 2.0;
    svg.text(
        (middle, above + HEIGHT + 34.0),
        "Environment steps",
        SMALL,
        Anchor::Middle,
        Color::Muted,
    );
    for curve in &panel.curves {
        draw_curve(svg, curve, report.styles[curve.system], &x_axis, &y_axis);
    }
    draw_references(svg, panel, &y_axis, near, (start, end), above);
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
