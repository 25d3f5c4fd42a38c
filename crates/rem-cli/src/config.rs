//! `rem config`: prints a resolved preset.

use crate::print;
use clap::Args;
use rem::Error;
use rem::config::Config;

/// Print the resolved config of a preset as TOML
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
  rem config paper-text                            every key, with the values of the paper's text
  rem config atari100k,ablation-no-pop             an ablation of the paper
  rem config atari-laptop --set env.game=pong      with the preset's settings for one game")]
pub struct ConfigArgs {
    /// Preset, or a comma-separated list of presets
    #[arg(default_value = "quick", value_name = "NAME")]
    preset: String,
    /// Override a config value, such as `tokenizer.vocabulary=128`; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: ConfigArgs) -> anyhow::Result<()> {
    let config = Config::load(&args.preset, &args.set).map_err(Error::from)?;
    print::text(config.to_toml())?;
    Ok(())
}
