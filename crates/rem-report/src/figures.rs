//! The figures of a report.

mod aggregates;
mod curves;
mod improvement;
mod intervals;
mod profiles;

use crate::plot::theme::Theme;
use crate::report::Report;
use crate::tables::percent;

/// A figure that can be drawn for any place.
pub struct Figure {
    /// Of its files.
    pub name: &'static str,
    pub title: String,
    pub caption: String,
    draw: fn(&Report, &Canvas, &Words) -> String,
}

/// Where a figure is to be seen.
#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    pub theme: Theme,
    pub size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A page, or the width of two columns in print.
    Wide,
    /// A phone.
    Narrow,
}

/// What a figure is called where it cannot be seen.
struct Words<'a> {
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
}

/// Letters, in pixels.
const TEXT: f64 = 13.0;
const SMALL: f64 = 12.0;

/// Every name that a figure can have, for files of an older report.
pub const NAMES: [&str; 4] = ["aggregates", "profiles", "improvement", "curves"];

impl Figure {
    /// As SVG; `id` names it among other figures on a page.
    pub fn svg(&self, report: &Report, canvas: Canvas, id: &str) -> String {
        let words = Words {
            id,
            title: &self.title,
            description: &self.caption,
        };
        (self.draw)(report, &canvas, &words)
    }
}

/// Those that there is something to draw for.
pub fn all(report: &Report) -> Vec<Figure> {
    let mut figures = Vec::new();
    let level = percent(report);
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
            " A ring: no interval, for there is one number a game."
        } else {
            ""
        };
        figures.push(Figure {
            name: "aggregates",
            title: format!("Aggregate metrics with {level} intervals"),
            caption: format!(
                "Human-normalised scores over {} games: mean, median, interquartile mean (IQM) and optimality gap, with {level} stratified bootstrap intervals.{line}{rings}",
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
                "For every human-normalised score, the share of a system's runs that are better; each game weighs the same. Shaded: pointwise {level} stratified bootstrap bands."
            ),
            draw: profiles::draw,
        });
    }
    if !report.improvements.is_empty() {
        figures.push(Figure {
            name: "improvement",
            title: "Probability of improvement".into(),
            caption: format!(
                "How likely a run of X beats a run of Y on a game drawn at random from {}, with {level} stratified bootstrap intervals. At one half neither is better.",
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
                "Scores of evaluations during training against environment steps. Thick: the mean over runs, where all of them were evaluated; thin: single runs. Over all games: the interquartile mean of human-normalised scores with {level} intervals."
            ),
            draw: curves::draw,
        });
    }
    figures
}
