//! Observation losses of the world model over epochs, in training and on test episodes, one panel per game.

use super::panel::{Axes, Grid, Labels, Place};
use super::{AltText, Canvas, TEXT};
use crate::loss_curves::{LossCurve, LossPanel};
use crate::losses::Split;
use crate::plot::legend;
use crate::plot::svg::{Stroke, Svg};
use crate::plot::theme::Color;
use crate::report::Report;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let grid = Grid::new(report.losses.len(), canvas);
    for (index, panel) in report.losses.iter().enumerate() {
        draw_panel(&mut svg, report, panel, grid.place(index));
    }
    let mut shown: Vec<(usize, Split, String)> = Vec::new();
    for curve in report.losses.iter().flat_map(|panel| &panel.curves) {
        if !shown
            .iter()
            .any(|(s, split, _)| (*s, *split) == (curve.system, curve.split))
        {
            let name = &report.systems[curve.system].name;
            let name = format!("{name}, {}", curve.split.name());
            shown.push((curve.system, curve.split, name));
        }
    }
    shown.sort_by_key(|(system, ..)| *system);
    let entries: Vec<_> = shown
        .iter()
        .map(|(system, split, name)| legend::Entry {
            series: report.styles[*system],
            dashes: dashes(*split),
            name,
        })
        .collect();
    let bottom = grid.bottom();
    let width = canvas.width() - 16.0;
    let legend = legend::draw(&mut svg, &entries, (8.0, bottom), width, TEXT);
    svg.finish(bottom + legend + 4.0, alt.id, alt.title, alt.description)
}

fn dashes(split: Split) -> &'static str {
    match split {
        Split::Training => "5 3",
        Split::Test => "",
    }
}

fn draw_panel(svg: &mut Svg, report: &Report, panel: &LossPanel, place: Place) {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let epochs = points().map(|point| f64::from(point.epoch));
    let losses = points().flat_map(|point| {
        let (low, high) = point.band().unwrap_or((point.mean, point.mean));
        [low, high]
    });
    let labels = Labels {
        title: &panel.title,
        x: "Epoch",
        y: "Loss, nats per token",
    };
    let zero = || [0.0].into_iter();
    let axes = Axes::draw(
        svg,
        place,
        labels,
        zero().chain(epochs),
        zero().chain(losses),
    );
    for curve in &panel.curves {
        draw_curve(svg, curve, report.styles[curve.system], &axes);
    }
}

fn draw_curve(svg: &mut Svg, curve: &LossCurve, style: usize, axes: &Axes) {
    let color = Color::Series(style);
    let place = |epoch: u32, loss: f64| (axes.x.pixel(f64::from(epoch)), axes.y.pixel(loss));
    let bands = || {
        let points = curve.points.iter();
        points.filter_map(|point| Some((point.epoch, point.band()?)))
    };
    let above = bands().map(|(epoch, (_, high))| place(epoch, high));
    let below = bands().map(|(epoch, (low, _))| place(epoch, low));
    let mut outline: Vec<_> = above.collect();
    outline.extend(below.collect::<Vec<_>>().into_iter().rev());
    if !outline.is_empty() {
        svg.polygon(&outline, color, 0.18);
    }
    let points = curve.points.iter();
    let points: Vec<_> = points.map(|point| place(point.epoch, point.mean)).collect();
    let stroke = Stroke {
        dashes: dashes(curve.split),
        ..Stroke::new(color, 2.0)
    };
    svg.path(&points, stroke);
    // Evaluations are few.
    if curve.split == Split::Test || points.len() == 1 {
        for point in points {
            svg.dot(point, 2.5, color, true);
        }
    }
}
