//! Reports on runs and published systems: tables, figures and a web page.
//!
//! A [`Request`] names runs and published systems, [`Request::report`] computes a [`Report`], and [`html`], [`terminal`]
//! and [`write()`] turn it into a page, text or files. Runs are read from their directories, without the agent.
//!
//! [`plot`] is the SVG plotter of all figures, including those of `rem bench`.
//!
//! # Example
//!
//! ```
//! use rem_report::{Request, Style};
//!
//! let request = Request {
//!     against: Some(vec!["rem".into(), "iris".into()]),
//!     replicates: 100,
//!     ..Request::default()
//! };
//! let report = request.report()?;
//! assert_eq!(report.games.len(), 26);
//! assert!(rem_report::terminal(&report, Style::Plain).contains("Probability of improvement"));
//! # Ok::<(), rem_report::Error>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod build;
mod curves;
mod departures;
mod error;
mod figures;
mod files;
mod footnotes;
mod formats;
mod input;
mod loss_curves;
mod losses;
mod main_table;
mod notes;
mod paper;
pub mod plot;
mod png;
mod protocol;
mod report;
mod run;
mod settings;
mod system;
mod table;
mod tables;

use std::path::PathBuf;

use rem_stats::Bootstrap;

pub use curves::{Curve, Panel};
pub use error::{Error, Result};
pub use files::{Written, write};
pub use formats::html::page as html;
pub use formats::json::json;
pub use formats::terminal::{Style, report as terminal};
pub use loss_curves::{LossCurve, LossPanel, LossPoint};
pub use losses::Split;
pub use report::{
    Comparison, Difference, DifferenceKind, Improvement, Note, Report, Severity, Summary,
};
pub use system::System;
pub use table::{Cell, Footnote, Marks, Row, Table};
pub use tables::all as tables;

/// What to report on.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Runs, directories of runs and JSON files of scores. `NAME=PATH` names the system.
    pub inputs: Vec<PathBuf>,
    /// Published systems by name. `None` selects those of the paper's main table (Table 1) if the inputs have games of
    /// the benchmark.
    pub against: Option<Vec<String>>,
    /// Names of input systems that are not token-based.
    pub not_token_based: Vec<String>,
    /// Bootstrap replicates of each interval.
    pub replicates: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            against: None,
            not_token_based: Vec::new(),
            replicates: Bootstrap::default().replicates,
        }
    }
}

impl Request {
    /// Reads the inputs and computes the report.
    ///
    /// # Errors
    ///
    /// If an input cannot be read or is invalid, a name is unknown, two systems have the same name, or there are no
    /// systems.
    pub fn report(&self) -> Result<Report> {
        let mut inputs = input::read(&self.inputs)?;
        input::mark_not_token_based(&mut inputs.systems, &self.not_token_based)?;
        let comparable = inputs.systems.is_empty()
            || inputs.systems.iter().any(|system| system.scores.is_some());
        let default = if comparable { "paper" } else { "none" };
        let default = [default.to_owned()];
        let against = self.against.as_deref().unwrap_or(&default);
        let systems = system::published(against)?
            .into_iter()
            .chain(inputs.systems)
            .collect();
        let bootstrap = Bootstrap {
            replicates: self.replicates,
            ..Bootstrap::default()
        };
        build::build(systems, inputs.notes, bootstrap)
    }
}
