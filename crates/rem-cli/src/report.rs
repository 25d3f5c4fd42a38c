//! `rem report`: scores to tables, figures and a web page.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem_report::{Request, Style};

/// Compare runs with each other and with published systems: tables, intervals, figures, a web page
///
/// Reads runs of `rem train` and JSON files of scores, prints the paper's main table with aggregates, and writes one
/// web page that needs nothing else (report.html), the figures as SVG and PNG, light and dark, and the tables as
/// Markdown, LaTeX and CSV.
///
/// A run counts once it is finished, with its final score; until then it is in the curves only. Runs are one system
/// with all others in the same folder; NAME=PATH gives a run, a folder or a file another name. Systems are compared on
/// the games that all of them have. What a reader must know (games that are missing, unequal numbers of runs, protocols
/// that differ) is said below the tables.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem report                                   the paper's main table, from the published scores
  rem report --against ablations               its ablation table
  rem report runs                              all runs in a folder, beside the paper's systems
  rem report runs/pong-seed* --against rem     some runs, beside REM as published
  rem report mine=runs/a theirs=scores.json    two systems under names of your own

Scores in a JSON file look like {\"Pong\": [20.5, 18.0], \"Qbert\": [743.0]}: for each game, the score of each run.")]
pub struct ReportArgs {
    /// Runs, folders of runs, and JSON files of scores, each maybe as NAME=PATH
    #[arg(value_name = "RUN|DIR|SCORES.json")]
    inputs: Vec<PathBuf>,
    /// Published systems to compare with: rem, iris, delta-iris, simulus, simple, twm, dreamerv3, storm, efficientzero,
    /// the paper's ablations by name; or paper, ablations, all, none [default: paper, where there is a game to compare]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    against: Option<Vec<String>>,
    /// Systems of yours that are not token-based, and so never bold in the main table
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    not_token_based: Vec<String>,
    /// Folder to write into; files of an older report are replaced, others left alone
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Bootstrap replicates behind each interval
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    replicates: u32,
}

pub fn run(args: ReportArgs) -> Result<()> {
    let request = Request {
        inputs: args.inputs,
        against: args.against,
        not_token_based: args.not_token_based,
        replicates: args.replicates as usize,
    };
    let report = request.report()?;
    let written = rem_report::write(&report, &args.out)?;
    let style = match std::io::stdout().is_terminal() {
        true => Style::Ansi,
        false => Style::Plain,
    };
    print!("{}", rem_report::terminal(&report, style));
    eprintln!("{written}");
    Ok(())
}
