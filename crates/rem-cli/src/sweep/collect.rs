//! `rem sweep collect`: scores, tables and figures of a study.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem_report::Request;
use rem_study::collect;

use super::{StudyArg, plural};
use crate::args::whole;
use crate::print;
use crate::report;

/// Write the scores of a study, and report on them
///
/// Writes the final scores of each variant to STUDY/scores/NAME.json, in the form in which other agents publish theirs:
/// {\"Pong\": [20.5, 18.0], …}, one number per seed. Then prints and writes the report of `rem report`, with bootstrap
/// intervals. A study that is not complete is collected, too, and the output says what is missing.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep collect runs/paper
  rem sweep collect runs/ablations --against ablations
  rem report mine=runs/paper/scores/paper.json theirs.json          only the score files, with others")]
pub struct CollectArgs {
    #[command(flatten)]
    study: StudyArg,
    /// Published systems to compare with, as for `rem report`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    against: Option<Vec<String>>,
    /// Output directory of the report [default: STUDY/report]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Bootstrap replicates per confidence interval
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = whole::<u32>(1..=report::MOST_REPLICATES))]
    replicates: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub fn run(args: CollectArgs) -> Result<()> {
    let study = args.study.open()?;
    let collected = collect(&study)?;
    let total = study.manifest.runs.len();
    let missing = &collected.missing;
    let state = if missing.is_empty() {
        format!("all {} are done", plural(total, "run"))
    } else {
        let done = total - missing.len();
        format!(
            "PARTIAL, {done} of {} are done; not counted: {}",
            plural(total, "run"),
            missing.join(", ")
        )
    };
    let mut summary = vec![format!("{}: {state}", study.name())];
    summary.extend(
        collected
            .files
            .iter()
            .map(|file| file.display().to_string()),
    );
    // Nothing but JSON is on standard output with `--json`.
    match args.json {
        true => print::message(summary.join("\n")),
        false => print::line(summary.join("\n"))?,
    }
    let request = Request {
        inputs: collected.runs,
        against: args.against,
        not_token_based: Vec::new(),
        replicates: args.replicates as usize,
    };
    let out = args.out.unwrap_or_else(|| study.report_dir());
    report::write(&request, &out, args.json)
}
