//! The figures of a report.

mod aggregates;
mod curves;
mod improvement;
mod intervals;
mod losses;
mod panel;
mod profiles;

use crate::loss_curves::LossPanel;
use crate::losses::Split;
use crate::plot::svg::{Svg, TextMode};
use crate::plot::theme::Theme;
use crate::report::Report;
use crate::tables::confidence_level;

/// A figure that can be drawn on any canvas.
pub struct Figure {
    /// The name of its files, without theme and extension.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The text below it.
    pub caption: String,
    draw: fn(&Report, &Canvas, &AltText) -> String,
}

/// How to draw a figure.
#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    /// The color scheme.
    pub theme: Theme,
    /// The width.
    pub size: Size,
    /// Text elements or outlines.
    pub text_mode: TextMode,
}

/// The width of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For a desktop screen, or two columns in print.
    Wide,
    /// For a phone.
    Narrow,
}

/// Title and description for screen readers.
struct AltText<'a> {
    id: &'a str,
    title: &'a str,
    description: &'a str,
}

impl Canvas {
    fn width(&self) -> f64 {
        match self.size {
            Size::Wide => 880.0,
            Size::Narrow => 360.0,
        }
    }

    fn svg(&self) -> Svg {
        Svg::new(self.width(), self.theme).with_text_mode(self.text_mode)
    }
}

/// Font sizes in pixels.
const TEXT: f64 = 13.0;
const SMALL: f64 = 12.0;

/// The names of all figures that any report may have.
pub const NAMES: [&str; 5] = ["aggregates", "profiles", "improvement", "curves", "losses"];

impl Figure {
    /// The figure as SVG. `id` is unique among the figures of a page.
    pub fn svg(&self, report: &Report, canvas: Canvas, id: &str) -> String {
        let alt = AltText {
            id,
            title: &self.title,
            description: &self.caption,
        };
        (self.draw)(report, &canvas, &alt)
    }
}

/// The figures of a report, without empty ones.
pub fn all(report: &Report) -> Vec<Figure> {
    let mut figures = Vec::new();
    let level = confidence_level(report);
    if !report.summaries.is_empty() {
        let line = if report.has_two_families() {
            " A line separates token-based systems from others."
        } else {
            ""
        };
        let rings = if report.summaries.iter().any(|summary| {
            summary
                .metrics
                .iter()
                .flatten()
                .any(|e| e.interval.is_none())
        }) {
            " A ring marks systems with one number per game, which have no interval."
        } else {
            ""
        };
        figures.push(Figure {
            name: "aggregates",
            title: format!("Aggregate metrics with {level} intervals"),
            caption: format!(
                "Human-normalized scores over {} games: mean, median, interquartile mean (IQM) and optimality gap, with {level} stratified bootstrap intervals.{line}{rings}",
                report.games.len()
            ),
            draw: aggregates::draw,
        });
    }
    if report
        .summaries
        .iter()
        .any(|summary| summary.profile.is_some())
    {
        figures.push(Figure {
            name: "profiles",
            title: "Performance profiles".into(),
            caption: format!(
                "Fraction of runs above each human-normalized score. All games have equal weight. Shaded areas are pointwise {level} stratified bootstrap intervals."
            ),
            draw: profiles::draw,
        });
    }
    if !report.improvements.is_empty() {
        figures.push(Figure {
            name: "improvement",
            title: "Probability of improvement".into(),
            caption: format!(
                "Probability that a run of X scores higher than a run of Y on a random one of {} games, with {level} stratified bootstrap intervals. At 0.5 neither is better.",
                report.games.len()
            ),
            draw: improvement::draw,
        });
    }
    if !report.panels.is_empty() {
        figures.push(Figure {
            name: "curves",
            title: "Sample efficiency".into(),
            caption: format!(
                "Evaluation scores against environment steps. Thick lines are means over runs, at steps where all runs were evaluated; thin lines are single runs. The panel of all games shows the interquartile mean of human-normalized scores with {level} intervals."
            ),
            draw: curves::draw,
        });
    }
    if !report.losses.is_empty() {
        figures.push(Figure {
            name: "losses",
            title: "Observation loss of the world model".into(),
            caption: format!(
                "Cross-entropy of observation tokens over epochs: means over an epoch's training batches, with dropout (dashed), and on episodes of the evaluation, without dropout (solid, a dot per evaluation). Lines are means over seeds, at epochs that all runs have; shaded areas are one standard deviation over seeds.{}",
                missing_test_losses(report)
            ),
            draw: losses::draw,
        });
    }
    figures
}

/// A sentence about games on which a system has losses of training only.
fn missing_test_losses(report: &Report) -> &'static str {
    let lacks_test = |panel: &LossPanel| {
        let count = |split| {
            panel
                .curves
                .iter()
                .filter(move |c| c.split == split)
                .count()
        };
        count(Split::Test) < count(Split::Training)
    };
    match report.losses.iter().any(lacks_test) {
        true => " Runs without a solid line have no losses on test episodes in their logs.",
        false => "",
    }
}
