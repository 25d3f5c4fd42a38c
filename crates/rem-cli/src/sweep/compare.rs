//! `rem sweep compare`: the variants of a study against one of them.

use anyhow::Result;
use clap::Args;
use rem_study::{Comparison, GameComparison, Number, VariantScores, compare};

use super::{StudyArg, plural};
use crate::args::at_least_one;
use crate::print;
use crate::table::Table;

/// Compare the variants of a study with one of them, game by game
///
/// Prints the mean final score of each variant over its seeds, and its difference to that of a baseline, each with a 95%
/// bootstrap interval. A difference whose interval contains 0 may be due to the seeds. Runs that are not finished are left
/// out. Unlike `rem sweep collect`, this compares scores on any game, and within each game.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep compare runs/parts
  rem sweep compare runs/parts --baseline whole --markdown     a table for a page, with the settings of each variant
  rem sweep compare runs/parts --json")]
pub struct CompareArgs {
    #[command(flatten)]
    study: StudyArg,
    /// Variant to compare the others with [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Bootstrap replicates per confidence interval
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = at_least_one::<u32>)]
    replicates: u32,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: CompareArgs) -> Result<()> {
    let study = args.study.open()?;
    let replicates = args.replicates as usize;
    let comparison = compare(&study, args.baseline.as_deref(), replicates)?;
    if args.json {
        print::line(serde_json::to_string(&comparison)?)?;
        return Ok(());
    }
    if !comparison.missing.is_empty() {
        let missing = comparison.missing.join(", ");
        print::note(format_args!("not finished and not counted: {missing}"));
    }
    let tables = comparison.games.iter().map(|game| match args.markdown {
        true => markdown(game, &comparison),
        false => terminal(game, &comparison),
    });
    Ok(print::text(tables.collect::<Vec<_>>().join("\n"))?)
}

fn terminal(game: &GameComparison, comparison: &Comparison) -> String {
    let difference = format!("minus {}", comparison.baseline);
    let mut table = Table::new(
        &["variant", "seeds", "mean score", "95%", &difference, "95%"],
        1,
    );
    for variant in &game.variants {
        table.push(numbers(variant));
    }
    format!("{}\n{}", game.game, table.terminal())
}

/// As [`terminal`], with the settings and the score of every seed.
fn markdown(game: &GameComparison, comparison: &Comparison) -> String {
    let difference = format!("minus {}", comparison.baseline);
    let header = [
        "variant",
        "settings",
        "seeds",
        "mean score",
        "95% interval",
        &difference,
        "95% interval",
        "score per seed",
    ];
    let mut table = Table::new(&header, 2);
    for variant in &game.variants {
        let settings = variant
            .settings
            .iter()
            .map(|setting| format!("`{setting}`"));
        let scores = variant.scores.iter().map(|score| format!("{score:.2}"));
        let mut row = numbers(variant);
        row.insert(1, settings.collect::<Vec<_>>().join(", "));
        row.push(scores.collect::<Vec<_>>().join(", "));
        table.push(row);
    }
    let most = game.variants.iter().map(|v| v.scores.len()).max();
    format!(
        "`{}`, up to {}:\n\n{}",
        game.game,
        plural(most.unwrap_or(0), "seed"),
        table.markdown()
    )
}

/// Name, number of seeds, mean and difference with their intervals.
fn numbers(variant: &VariantScores) -> Vec<String> {
    let [mean, mean_interval] = columns(Some(variant.mean), |x| format!("{x:.2}"));
    let [difference, interval] = columns(variant.difference, |x| format!("{x:+.2}"));
    vec![
        variant.name.clone(),
        variant.scores.len().to_string(),
        mean,
        mean_interval,
        difference,
        interval,
    ]
}

fn columns(number: Option<Number>, text: impl Fn(f64) -> String) -> [String; 2] {
    let interval = number.and_then(|number| number.interval);
    [
        number.map_or_else(String::new, |number| text(number.value)),
        interval.map_or_else(String::new, |[low, high]| {
            format!("{} to {}", text(low), text(high))
        }),
    ]
}
