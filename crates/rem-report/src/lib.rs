//! Scores of runs and of published systems to a report: one value, [`Report`], and functions from it to every format.
//!
//! Reads run directories through their files only, and knows nothing of the agent.

mod curves;
mod error;
mod figures;
mod files;
mod formats;
mod input;
mod main_table;
mod paper;
mod plot;
mod png;
mod protocol;
mod remarks;
mod report;
mod run;
mod system;
mod table;
mod tables;

use std::path::PathBuf;

use rem_stats::Bootstrap;

pub use curves::{Curve, Panel};
pub use error::{Error, Result};
pub use files::{Written, write};
pub use formats::html::page as html;
pub use formats::terminal::{Style, report as terminal};
pub use paper::{Comparison, Difference, Of};
/// The colours of all figures and pages.
pub use plot::theme;
pub use remarks::{Remark, Weight};
pub use report::{Improvement, Report, Summary};
pub use system::{Origin, System};
pub use table::{Cell, Marks, Row, Table};
pub use tables::all as tables;

/// What to report on.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Runs, folders of runs, JSON files of scores, each maybe as `NAME=PATH`.
    pub inputs: Vec<PathBuf>,
    /// Published systems by name; none asked for are those of the paper's main table, if there is something to compare
    /// with them.
    pub against: Option<Vec<String>>,
    /// Systems of the user's that are not token-based.
    pub not_token_based: Vec<String>,
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
    /// Reads what is asked for and computes the report.
    pub fn report(&self) -> Result<Report> {
        let mut inputs = input::read(&self.inputs)?;
        input::not_token_based(&mut inputs.systems, &self.not_token_based)?;
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
        Report::new(systems, inputs.remarks, bootstrap)
    }
}
