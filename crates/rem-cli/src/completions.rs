//! `rem completions` and `rem man`: what shells and `man` read about the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;
use rem::Error;

use crate::print;

/// Print completions of commands and options for a shell
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem completions bash > ~/.local/share/bash-completion/completions/rem
  rem completions zsh > ~/.zfunc/_rem                    with ~/.zfunc in fpath
  rem completions fish > ~/.config/fish/completions/rem.fish")]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Write the manual pages of all commands
#[derive(Args)]
#[command(after_long_help = "\
Example:
  rem man ~/.local/share/man/man1        then `man rem-train`")]
pub struct ManArgs {
    /// Directory to write rem.1, rem-train.1, … to
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub fn completions(args: CompletionsArgs, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "rem", &mut script);
    std::io::stdout().write_all(&script).map_err(Error::File)?;
    Ok(())
}

pub fn man(args: ManArgs, command: Command) -> Result<()> {
    std::fs::create_dir_all(&args.dir).map_err(Error::io(&args.dir))?;
    clap_mangen::generate_to(command, &args.dir).map_err(Error::io(&args.dir))?;
    print::line(format_args!(
        "{}: manual pages of all commands",
        args.dir.display()
    ))?;
    Ok(())
}
