//! `rem sweep new`: makes a study.

use std::path::PathBuf;

use super::plural;
use crate::args::threads;
use crate::print;
use anyhow::Result;
use clap::Args;
use rem_study::{NamedVariant, Plan, Study};
use serde_json::json;

/// Make a study: list all runs with their configs, and train nothing
///
/// Loads and checks the config of every run. Runs are ordered by seed, then game, then variant, so that an unfinished
/// study has all games with some seeds.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem sweep new runs/paper --preset atari100k --games all --seeds 1..5
  rem sweep new runs/ablations --grid preset=ablation-none,ablation-no-pop --seeds 1,2
  rem sweep new runs/precision --games catch,paddle --grid precision=f32,mixed --seeds 1..5
  rem sweep new runs/entropy --games paddle --grid actor_critic.entropy_weight=0.001,0.003,0.01
  rem sweep new runs/parts --games paddle --seeds 1..5 --variants parts.toml

A file of variants is for what takes several settings, or a name of its own. It is TOML:
  [[variant]]
  name = \"whole\"
  set = []
  [[variant]]
  name = \"no-dropout\"
  set = [\"world_model.dropout=0.0\"]

Several grids are combined: the third example has 2 x 2 x 5 runs. A run is in STUDY/GAME-seedN, or with a grid in
STUDY/VARIANT/GAME-seedN.")]
pub struct NewArgs {
    /// Directory of the study
    #[arg(value_name = "STUDY")]
    study: PathBuf,
    /// Preset, or a list such as `atari100k,ablation-no-pop` [default: quick, or only those of `--grid preset=…`]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Games: `all`, the 26 of the Atari 100K benchmark, or a list [default: the game of the preset]
    #[arg(long, value_name = "all|NAME,…")]
    games: Option<String>,
    /// Seeds: `1..5`, both included, or a list
    #[arg(long, value_name = "A..B|N,…", default_value = "1")]
    seeds: String,
    /// Values of a config key, or of `preset`, to combine with all others; can be repeated
    #[arg(long, value_name = "KEY=A,B,…")]
    grid: Vec<String>,
    /// File of variants, each a name and config values that win over `--set`; combined with `--grid`
    #[arg(long, value_name = "FILE.toml")]
    variants: Option<PathBuf>,
    /// Override a config value of all runs; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Compute device of all runs
    #[arg(long, value_name = "NAME[:INDEX]")]
    device: Option<String>,
    /// CPU threads of each run; 0 means its share of the machine or of its task, decided when it starts
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// List the runs without writing anything
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: print one JSON object per run, with its config
    #[arg(long, requires = "dry_run")]
    json: bool,
}

pub fn run(args: NewArgs) -> Result<()> {
    let mut set = args.set;
    set.extend(args.device.map(|device| format!("device={device}")));
    set.extend(args.threads.map(|threads| format!("threads={threads}")));
    let words: Vec<String> = std::env::args().skip(1).map(shell_word).collect();
    let plan = Plan {
        preset: args.preset,
        games: args.games,
        seeds: args.seeds,
        grid: args.grid,
        variants: (args.variants).map_or(Ok(Vec::new()), |file| NamedVariant::read(&file))?,
        set,
        command: format!("rem {}", words.join(" ")),
    };
    let manifest = plan.manifest()?;
    if args.dry_run {
        for run in &manifest.runs {
            match args.json {
                true => {
                    let config = manifest.config(run)?;
                    print::line(json!({ "run": run.name, "config": config }))?;
                }
                false => print::line(&run.name)?,
            }
        }
        return Ok(());
    }
    let study = Study::create(&args.study, manifest)?;
    let dir = study.dir().display();
    print::line(format_args!(
        "{dir}: {}",
        plural(study.manifest.runs.len(), "run")
    ))?;
    print::message(format_args!(
        "train them with `rem sweep run {dir}`, or on Slurm with `rem sweep run {dir} --on slurm`"
    ));
    Ok(())
}

/// A word as a shell reads it.
fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-,:=+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
