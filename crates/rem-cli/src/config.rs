//! `rem config`: prints a resolved preset, or what differs between two.

use crate::print;
use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::config::{Config, ConfigError, PRESETS};
use rem::run::read_config;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

use crate::table::Table;

/// Print the resolved config of a preset or a run as TOML
///
/// The output lists every key that `--set` accepts. Presets: quick, debug, atari-laptop, atari100k (the
/// published program), paper-text (the paper's text where it differs), iris, simulus (the follow-up of REM's authors).
/// Ablations: ablation-none, ablation-no-pop, ablation-iris, ablation-separate-embeddings, ablation-8x8, ablation-4x4,
/// ablation-iris-controller, ablation-no-action-inputs. In a comma-separated list, later presets override earlier ones.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem config                                       the default preset, quick
  rem config atari100k                             every key, with the published program's values
  rem config quick --docs                          with the meaning of every key
  rem config paper-text                            every key, with the values of the paper's text
  rem config atari100k,ablation-no-pop             an ablation of the paper
  rem config atari-laptop --set env.game=pong      with the preset's settings for one game
  rem config --diff quick paddle                   only the keys that differ
  rem config --diff runs/catch-seed1 quick         a run and a preset")]
pub struct ConfigArgs {
    /// Preset, or a comma-separated list of presets; or a run directory
    #[arg(default_value = "quick", value_name = "NAME|RUN")]
    preset: String,
    /// Override a config value, such as `tokenizer.vocabulary=128`; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With the meaning of every key as a comment; still a valid config
    #[arg(long)]
    docs: bool,
    /// Compare two presets or runs, and print the keys that differ
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["preset", "docs"])]
    diff: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "docs")]
    json: bool,
}

pub fn run(args: ConfigArgs) -> Result<()> {
    if let [a, b] = &args.diff[..] {
        return diff([a, b], &args.set, args.json);
    }
    let config = load(&args.preset, &args.set)?;
    match (args.json, args.docs) {
        (true, _) => print::line(serde_json::to_string(&config)?)?,
        (false, true) => print::text(config.to_documented_toml())?,
        (false, false) => print::text(config.to_toml())?,
    }
    Ok(())
}

/// The config of presets, or of a run.
fn load(name: &str, set: &[String]) -> Result<Config> {
    let first = name.split(',').next().unwrap_or_default().trim();
    let is_preset = PRESETS.iter().any(|(preset, _)| *preset == first);
    if is_preset || !Path::new(name).is_dir() {
        return Ok(Config::load(name, set).map_err(Error::from)?);
    }
    if !set.is_empty() {
        return Err(Error::from(ConfigError::new(
            format!("`{name}` is a run, whose config does not change"),
            "leave `--set` out, or name a preset",
        ))
        .into());
    }
    Ok(read_config(Path::new(name))?)
}

/// A key with its values; null where it does not exist, such as that of a variant that is not chosen.
#[derive(Serialize)]
struct Difference {
    key: String,
    a: Value,
    b: Value,
}

fn diff(names: [&String; 2], set: &[String], json: bool) -> Result<()> {
    let [a, b] = [load(names[0], set)?, load(names[1], set)?];
    let differences = a.differences(&b).into_iter();
    let differences: Vec<_> = differences
        .map(|(key, change)| Difference {
            key,
            a: change.from,
            b: change.to,
        })
        .collect();
    if json {
        print::line(serde_json::to_string(&differences)?)?;
        return Ok(());
    }
    if differences.is_empty() {
        print::message(format_args!("no key differs"));
        return Ok(());
    }
    let mut table = Table::new(&["key", names[0], names[1]], 3);
    let text = |value: Value| match value {
        Value::Null => "–".into(),
        value => value.to_string(),
    };
    for difference in differences {
        table.push(vec![difference.key, text(difference.a), text(difference.b)]);
    }
    print::text(table.terminal())?;
    Ok(())
}
