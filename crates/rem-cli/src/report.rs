//! `rem report`: turns scores into tables, figures and a web page.

use std::path::{Path, PathBuf};

use crate::print;
use anyhow::Result;
use clap::Args;
use rem_report::{Request, Style};

use crate::args::whole;

/// Compare runs with each other and with published systems
///
/// Reads runs of `rem train` and JSON files of scores. Prints the paper's main table with aggregates, and writes a
/// self-contained web page (report.html), figures as SVG and PNG in light and dark, and tables as Markdown, LaTeX and
/// CSV.
///
/// Tables include finished runs with their final score; unfinished runs appear in the learning curves only. Runs in the
/// same directory form one system; NAME=PATH renames a run, a directory or a file. Systems are compared on the games
/// they have in common. Scores of runs that depart from the protocol of the benchmark or from the paper have a mark and a
/// footnote. Notes below the tables list missing games, unequal numbers of runs and differing protocols.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem report                                   the paper's main table, from published scores
  rem report --against ablations               the paper's ablation table
  rem report runs                              all runs in a directory, against the paper's systems
  rem report runs/pong-seed* --against rem     some runs, against the published REM
  rem report mine=runs/a theirs=scores.json    two systems with names of your choice

A score file maps each game to the scores of its runs: {\"Pong\": [20.5, 18.0], \"Qbert\": [743.0]}.")]
pub struct ReportArgs {
    /// Runs, directories of runs, or JSON files of scores; NAME=PATH renames one
    #[arg(value_name = "RUN|DIR|SCORES.json")]
    inputs: Vec<PathBuf>,
    /// Published systems to compare with: rem, iris, delta-iris, simulus, simple, twm, dreamerv3, storm, efficientzero,
    /// the paper's ablations by name, or paper, ablations, all, none [default: paper, if a game is in common]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    against: Option<Vec<String>>,
    /// Your systems that are not token-based; they are never bold in the main table
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    not_token_based: Vec<String>,
    /// Output directory; replaces the files of an older report and keeps other files
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Bootstrap replicates per confidence interval
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = whole::<u32>(1..=MOST_REPLICATES))]
    replicates: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Most bootstrap replicates.
pub const MOST_REPLICATES: u64 = 10_000_000;

pub fn run(args: ReportArgs) -> Result<()> {
    let request = Request {
        inputs: args.inputs,
        against: args.against,
        not_token_based: args.not_token_based,
        replicates: args.replicates as usize,
    };
    write(&request, &args.out, args.json)
}

/// Prints a report and writes its files.
pub fn write(request: &Request, out: &Path, json: bool) -> Result<()> {
    let report = request.report()?;
    let written = rem_report::write(&report, out)?;
    let style = match print::has_color(&std::io::stdout()) {
        true => Style::Ansi,
        false => Style::Plain,
    };
    match json {
        true => print::line(rem_report::json(&report))?,
        false => print::text(rem_report::terminal(&report, style))?,
    }
    print::message(format_args!("{written}"));
    Ok(())
}
