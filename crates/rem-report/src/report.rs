//! The content of a report, independent of the output format. [`build`](crate::build) computes it.

use rem_stats::baselines::Family;
use rem_stats::{Bootstrap, Estimate, Game};

use crate::curves::Panel;
use crate::loss_curves::LossPanel;
use crate::system::System;

/// A report: scores, statistics and notes.
#[derive(Debug)]
pub struct Report {
    /// All systems: published ones that are not token-based, published ones that are, then those of the user.
    pub systems: Vec<System>,
    /// The series index (color and dashes) of each system in figures.
    pub styles: Vec<usize>,
    /// The games that all systems with scores on the benchmark have.
    pub games: Vec<&'static Game>,
    /// The systems with scores on the benchmark, if they share a game.
    pub summaries: Vec<Summary>,
    /// The thresholds of the performance profiles.
    pub thresholds: Vec<f64>,
    /// Probabilities of improvement between pairs of systems.
    pub improvements: Vec<Improvement>,
    /// Learning curves, one panel per game.
    pub panels: Vec<Panel>,
    /// Observation losses of the world model, one panel per game.
    pub losses: Vec<LossPanel>,
    /// Comparisons with the tables of the paper.
    pub comparisons: Vec<Comparison>,
    /// Notes and warnings, warnings first.
    pub notes: Vec<Note>,
    /// The bootstrap behind all intervals.
    pub bootstrap: Bootstrap,
}

/// The statistics of a system on the games that all systems have.
#[derive(Debug)]
pub struct Summary {
    /// Its index in [`Report::systems`].
    pub system: usize,
    /// Mean raw score on each game.
    pub means: Vec<f64>,
    /// Number of games with a mean above human.
    pub superhuman: usize,
    /// Aggregate metrics in the order of [`rem_stats::Metric::ALL`]. `None` if only means are published and the metric needs runs.
    pub metrics: [Option<Estimate>; 4],
    /// Performance profile at [`Report::thresholds`]. `None` if only means are published.
    pub profile: Option<Vec<Estimate>>,
}

/// The probability that system `x` improves on system `y`. Both are indices in [`Report::systems`].
#[derive(Debug)]
pub struct Improvement {
    /// The system that is compared.
    pub x: usize,
    /// The system that `x` is compared with.
    pub y: usize,
    /// The probability with its interval.
    pub estimate: Estimate,
}

impl Report {
    /// The system of a summary.
    pub(crate) fn system(&self, summary: &Summary) -> &System {
        &self.systems[summary.system]
    }

    /// Whether there are both token-based and other systems.
    pub(crate) fn has_two_families(&self) -> bool {
        let family = |summary: &Summary| self.system(summary).family;
        let has = |wanted| {
            self.summaries
                .iter()
                .any(|summary| family(summary) == wanted)
        };
        has(Family::TokenBased) && has(Family::Other)
    }
}

/// The comparison of a report with a table of the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The table: `Table 1` or `Table 9`.
    pub table: &'static str,
    /// Number of compared cells.
    pub compared: usize,
    /// The cells that differ.
    pub differences: Vec<Difference>,
}

/// A cell that differs from the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The row: a game or a metric.
    pub row: String,
    /// The column: a system.
    pub system: String,
    /// The value or mark in the paper.
    pub printed: String,
    /// The value or mark in the report. `None` if it cannot be computed.
    pub ours: Option<String>,
    /// The reason, if known.
    pub reason: Option<&'static str>,
    /// What differs.
    pub kind: DifferenceKind,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The number differs.
    Number,
    /// Bold or underline differs.
    Marks,
}

impl Comparison {
    /// The number of cells with another number, without those where only marks differ.
    pub(crate) fn numbers_that_differ(&self) -> usize {
        let numbers = self
            .differences
            .iter()
            .filter(|difference| difference.kind == DifferenceKind::Number);
        numbers.count()
    }
}

/// A note or warning about the numbers of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Its severity.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub text: String,
}

/// How serious a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Numbers may not be comparable.
    Warning,
    /// For information.
    Note,
}

impl Severity {
    /// Its name: `warning` or `note`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}
