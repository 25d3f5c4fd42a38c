//! Probability of improvement between pairs of systems (Figures 9 and 12).

use rem_stats::Estimate;

use super::intervals::{Panel, Row, Rows};
use super::{AltText, Canvas, SMALL, Size};
use crate::plot::svg::Anchor;
use crate::plot::theme::Color;
use crate::report::Report;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let pairs = &report.improvements;
    let name = |index: usize| &report.systems[index].name;
    let rows = pairs.iter().enumerate().map(|(index, pair)| Row {
        label: format!("{} > {}", name(pair.x), name(pair.y)),
        style: report.styles[pair.y],
        ruled: index > 0 && pairs[index - 1].x != pair.x,
    });
    let max_width = match canvas.size {
        Size::Wide => 300.0,
        Size::Narrow => 120.0,
    };
    let rows = Rows::new(rows.collect(), max_width);
    let values: Vec<Option<Estimate>> = pairs.iter().map(|pair| Some(pair.estimate)).collect();
    let panel = Panel {
        title: "",
        values: &values,
        reference: Some(0.5),
        range: Some((0.0, 1.0)),
        ticks: 4,
    };
    let (left, right) = (rows.width, canvas.width() - 12.0);
    rows.draw_labels(&mut svg, (0.0, -14.0));
    rows.draw_panel(&mut svg, &panel, (left, right), -14.0);
    let bottom = rows.panel_height() - 14.0;
    let place = ((left + right) / 2.0, bottom + 12.0);
    svg.text(
        place,
        "Probability that X improves on Y",
        SMALL,
        Anchor::Middle,
        Color::Muted,
    );
    svg.finish(bottom + 20.0, alt.id, alt.title, alt.description)
}
