//! `rem config`: a preset, resolved.

use clap::Args;

/// Print a preset with everything resolved, as TOML
///
/// Every key that `--set` takes is in it. The presets are quick, paddle, crossing, debug, atari-laptop, atari100k and iris, and
/// the ablations ablation-none, -no-pop, -iris, -separate-embeddings, -8x8, -4x4, -iris-controller and -no-action-inputs.
/// Several with commas between them are laid over each other.
#[derive(Args)]
pub struct ConfigArgs {
    /// Preset to print
    #[arg(default_value = "quick")]
    preset: String,
    /// Change a value first
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: ConfigArgs) -> anyhow::Result<()> {
    let config = rem::config::Config::load(&args.preset, &args.set)?;
    print!("{}", config.to_toml());
    Ok(())
}
