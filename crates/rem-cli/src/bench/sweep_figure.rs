//! Time per imagined frame against the batch size, a panel for each number of tokens, as an SVG.

use rem_report::plot::axis::Axis;
use rem_report::plot::svg::{Anchor, Stroke, Svg};
use rem_report::plot::theme::{Color, Theme};

use super::imagination::Line;
use super::sweep::{MODES, Sweep};

const PANEL: f64 = 200.0;
const GAP: f64 = 16.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 290.0;
const TEXT: f64 = 12.0;
const DASHES: &str = "4 4";

/// Solid lines are measured. Dashed lines are the time of the multiply-adds at the machine's peak.
pub fn draw(sweep: &Sweep) -> String {
    let tokens = sweep.tokens();
    let right = LEFT + tokens.len() as f64 * (PANEL + GAP) - GAP;
    let bounds = sweep.lines().iter().filter_map(|line| sweep.at_peak(line));
    let times = sweep.lines().iter().map(|line| line.ms_per_frame);
    let up = Axis::decades(times.chain(bounds), (BOTTOM, TOP));
    let mut svg = Svg::new(right + 12.0, Theme::Light);
    for (tick, label) in up.labels() {
        let place = (LEFT - 6.0, up.pixel(tick) + 4.0);
        svg.text(place, &label, TEXT, Anchor::End, Color::Muted);
    }
    for (panel, tokens) in tokens.into_iter().enumerate() {
        let left = LEFT + panel as f64 * (PANEL + GAP);
        draw_panel(&mut svg, sweep, tokens, &up, left);
    }
    let middle = (LEFT + right) / 2.0;
    svg.text(
        (middle, BOTTOM + 36.0),
        "dreams in a batch",
        TEXT,
        Anchor::Middle,
        Color::Text,
    );
    let center = (14.0, (TOP + BOTTOM) / 2.0);
    svg.vertical_text(center, "ms per imagined frame", TEXT, Color::Text);
    draw_legend(&mut svg, BOTTOM + 58.0);
    svg.finish(
        BOTTOM + 92.0,
        "when-pop-pays",
        "Time per imagined frame",
        "Milliseconds per imagined frame against the batch size, with POP and token by token, for each number of tokens, \
         beside the time of their multiply-adds at the machine's peak",
    )
}

fn draw_panel(svg: &mut Svg, sweep: &Sweep, tokens: usize, up: &Axis, left: f64) {
    let batches = sweep.batches().into_iter().map(|b| b as f64).collect();
    let across = Axis::logarithmic(batches, (left + 8.0, left + PANEL - 8.0));
    let title = format!("K = {tokens}");
    let middle = left + PANEL / 2.0;
    svg.text(
        (middle, TOP - 10.0),
        &title,
        TEXT,
        Anchor::Middle,
        Color::Text,
    );
    for (tick, _) in up.labels() {
        let y = up.pixel(tick);
        svg.line((left, y), (left + PANEL, y), Stroke::new(Color::Grid, 1.0));
    }
    for (tick, label) in across.labels() {
        let place = (across.pixel(tick), BOTTOM + 16.0);
        svg.text(place, &label, TEXT - 1.0, Anchor::Middle, Color::Muted);
    }
    for (series, mode) in MODES.into_iter().enumerate() {
        let own = |line: &&Line| line.mode == mode && line.tokens == tokens;
        let lines: Vec<&Line> = sweep.lines().iter().filter(own).collect();
        let color = Color::Series(series);
        // Both modes of POP have the same multiply-adds.
        let bound = lines.first().and_then(|line| sweep.at_peak(line));
        if let Some(bound) = bound.filter(|_| series != 1) {
            let y = up.pixel(bound);
            let stroke = Stroke {
                dashes: DASHES,
                ..Stroke::new(color, 1.5)
            };
            svg.line((left, y), (left + PANEL, y), stroke);
        }
        let place = |line: &&Line| (across.pixel(line.batch as f64), up.pixel(line.ms_per_frame));
        let points: Vec<(f64, f64)> = lines.iter().map(place).collect();
        svg.path(&points, Stroke::new(color, 2.0));
        for point in points {
            svg.dot(point, 2.0, color, true);
        }
    }
}

fn draw_legend(svg: &mut Svg, y: f64) {
    let mut x = LEFT;
    for (series, mode) in MODES.into_iter().enumerate() {
        let color = Color::Series(series);
        svg.line((x, y - 4.0), (x + 24.0, y - 4.0), Stroke::new(color, 2.0));
        svg.text((x + 30.0, y), mode.name(), TEXT, Anchor::Start, Color::Text);
        x += 150.0;
    }
    let dashed = Stroke {
        dashes: DASHES,
        ..Stroke::new(Color::Text, 1.5)
    };
    let y = y + 20.0;
    svg.line((LEFT, y - 4.0), (LEFT + 24.0, y - 4.0), dashed);
    let label = "their multiply-adds at the measured peak of the processor";
    svg.text((LEFT + 30.0, y), label, TEXT, Anchor::Start, Color::Text);
}
