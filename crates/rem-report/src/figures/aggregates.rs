//! Aggregate metrics of all systems with intervals (Figures 7 and 13).

use rem_stats::baselines::Family;
use rem_stats::{Estimate, Metric};

use super::intervals::{Panel, Row, Rows};
use super::{AltText, Canvas, SMALL, Size};
use crate::main_table::Label;
use crate::plot::svg::Anchor;
use crate::plot::theme::Color;
use crate::report::Report;

/// The figure as SVG.
pub fn draw(report: &Report, canvas: &Canvas, alt: &AltText) -> String {
    let mut svg = canvas.svg();
    let family =
        |index: usize| report.system(&report.summaries[index]).family == Family::TokenBased;
    let rows = report
        .summaries
        .iter()
        .enumerate()
        .map(|(index, summary)| Row {
            label: report.system(summary).name.clone(),
            style: report.styles[summary.system],
            ruled: index > 0 && family(index) != family(index - 1),
        });
    let max_width = match canvas.size {
        Size::Wide => 200.0,
        Size::Narrow => 110.0,
    };
    let rows = Rows::new(rows.collect(), max_width);
    let columns = match canvas.size {
        Size::Wide => 4,
        Size::Narrow => 1,
    };
    const GAP: f64 = 20.0;
    // Half of the last tick label extends beyond the axis.
    const MARGIN: f64 = 8.0;
    let left = rows.width;
    let width = (canvas.width() - left - MARGIN - GAP * (columns - 1) as f64) / columns as f64;
    for (index, metric) in Metric::ALL.into_iter().enumerate() {
        let (line, column) = (index / columns, index % columns);
        let top = line as f64 * (rows.panel_height() + 12.0);
        let start = left + column as f64 * (width + GAP);
        if column == 0 {
            rows.draw_labels(&mut svg, (0.0, top));
        }
        let values: Vec<Option<Estimate>> =
            report.summaries.iter().map(|s| s.metrics[index]).collect();
        let panel = Panel {
            title: &Label::Metric(metric).title(),
            values: &values,
            reference: None,
            range: None,
            ticks: if columns == 1 { 4 } else { 3 },
        };
        rows.draw_panel(&mut svg, &panel, (start, start + width), top);
    }
    let height = Metric::ALL.len().div_ceil(columns) as f64 * (rows.panel_height() + 12.0);
    let middle = left + (canvas.width() - left) / 2.0;
    svg.text(
        (middle, height),
        "Human-normalized score",
        SMALL,
        Anchor::Middle,
        Color::Muted,
    );
    svg.finish(height + 10.0, alt.id, alt.title, alt.description)
}
