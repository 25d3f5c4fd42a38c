//! Who is likely to beat whom.

use rem_stats::Estimate;

use super::intervals::{Panel, Row, Rows};
use super::{Canvas, SMALL, Size, Words};
use crate::plot::svg::{Anchor, Svg};
use crate::plot::theme::Ink;
use crate::report::Report;

pub fn draw(report: &Report, canvas: &Canvas, words: &Words) -> String {
    let mut svg = Svg::new(canvas.width(), canvas.theme);
    let pairs = &report.improvements;
    let name = |index: usize| &report.systems[index].name;
    let rows = pairs.iter().enumerate().map(|(index, pair)| Row {
        label: format!("{} > {}", name(pair.x), name(pair.y)),
        look: report.looks[pair.y],
        ruled: index > 0 && pairs[index - 1].x != pair.x,
    });
    let room = match canvas.size {
        Size::Wide => 300.0,
        Size::Narrow => 120.0,
    };
    let rows = Rows::new(rows.collect(), room);
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
        Ink::Muted,
    );
    svg.finish(bottom + 20.0, words.id, words.title, words.description)
}
