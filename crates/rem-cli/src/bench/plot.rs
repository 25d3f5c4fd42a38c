//! Time per imagined frame against tokens per frame, both on logarithmic axes, as an SVG.

use rem_report::plot::axis::Axis;
use rem_report::plot::svg::{Anchor, Stroke, Svg};
use rem_report::plot::theme::{Color, Theme};

use super::dreams::ImaginationMode;
use super::imagination::Line;

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = HEIGHT - 44.0;
const TEXT: f64 = 12.0;

/// Draws one line per imagination mode and horizon: the shortest horizon solid, the others dashed.
pub fn draw(lines: &[Line]) -> String {
    let tokens = sorted(lines.iter().map(|line| line.tokens));
    let across = Axis::logarithmic(tokens.iter().map(|k| *k as f64).collect(), (LEFT, RIGHT));
    let up = Axis::decades(lines.iter().map(|line| line.ms_per_frame), (BOTTOM, TOP));
    let mut svg = Svg::new(WIDTH, Theme::Light);
    draw_axes(&mut svg, &across, &up);
    let horizons = sorted(lines.iter().map(|line| line.horizon));
    let mut legend = TOP;
    for (series, mode) in ImaginationMode::ALL.into_iter().enumerate() {
        for (index, horizon) in horizons.iter().enumerate() {
            let own = lines
                .iter()
                .filter(|line| line.mode == mode && line.horizon == *horizon);
            let points: Vec<(f64, f64)> = own
                .map(|line| {
                    (
                        across.pixel(line.tokens as f64),
                        up.pixel(line.ms_per_frame),
                    )
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            let color = Color::Series(series);
            let stroke = Stroke {
                dashes: if index == 0 { "" } else { "5 4" },
                ..Stroke::new(color, 2.0)
            };
            svg.path(&points, stroke);
            for point in &points {
                svg.dot(*point, 2.0, color, true);
            }
            legend += 18.0;
            let start = RIGHT + 14.0;
            svg.line((start, legend - 4.0), (start + 24.0, legend - 4.0), stroke);
            let label = format!("{}, H = {horizon}", mode.name());
            svg.text(
                (start + 30.0, legend),
                &label,
                TEXT,
                Anchor::Start,
                Color::Text,
            );
        }
    }
    svg.finish(
        HEIGHT,
        "imagination",
        "Time per imagined frame",
        "Milliseconds per imagined frame against tokens per frame, by imagination mode and horizon",
    )
}

fn draw_axes(svg: &mut Svg, across: &Axis, up: &Axis) {
    for (tick, label) in up.labels() {
        let y = up.pixel(tick);
        svg.line((LEFT, y), (RIGHT, y), Stroke::new(Color::Grid, 1.0));
        svg.text(
            (LEFT - 6.0, y + 4.0),
            &label,
            TEXT,
            Anchor::End,
            Color::Text,
        );
    }
    for (tick, label) in across.labels() {
        let place = (across.pixel(tick), BOTTOM + 18.0);
        svg.text(place, &label, TEXT, Anchor::Middle, Color::Text);
    }
    let middle = ((LEFT + RIGHT) / 2.0, HEIGHT - 8.0);
    svg.text(
        middle,
        "tokens per frame (K)",
        TEXT,
        Anchor::Middle,
        Color::Text,
    );
    svg.vertical_text(
        (14.0, HEIGHT / 2.0),
        "ms per imagined frame",
        TEXT,
        Color::Text,
    );
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}
