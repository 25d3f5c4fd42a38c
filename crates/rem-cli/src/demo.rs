//! `rem demo`: plays the trained agent that is part of the program.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::run::{read_config, read_protocol};
use rem::threads;
use rust_embed::RustEmbed;

use crate::print;
use crate::watch::ServeArgs;

/// An exported agent; `scripts/make-demo-agent` makes it anew.
#[derive(RustEmbed)]
#[folder = "demo-agent/"]
struct DemoAgent;

/// Play in the dream of a trained agent, without training one first
///
/// The program contains a small agent that `rem train` trained on the built-in game `catch`. This command serves the console
/// of `rem play` with it: the arrow keys move the paddle, and every frame that you see is imagined by the world model. When
/// an episode ends, the next key starts another one.
///
/// The agent is unpacked into a temporary directory, which is removed at the end. Nothing else is written.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem demo                        play; prints the address to open in a browser
  rem demo --save demo-agent      write the agent as a run directory, for `rem eval`, `rem watch` and others")]
pub struct DemoArgs {
    /// Write the agent to this directory instead of playing
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
    /// CPU threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub fn run(args: DemoArgs) -> Result<()> {
    if let Some(dir) = &args.save {
        return save(dir);
    }
    let temporary = tempfile::Builder::new().prefix("rem-demo-").tempdir();
    let temporary = temporary.map_err(Error::File)?;
    // The page shows this name.
    let dir = temporary.path().join("demo");
    unpack(&dir)?;
    print::message(origin(&dir)?);
    threads::set(args.threads)?;
    let served = args.serve.run(vec![dir], "#/play");
    // Before an error is printed: the process then exits without dropping anything.
    temporary.close().map_err(Error::File)?;
    served
}

fn save(dir: &Path) -> Result<()> {
    if dir.exists() {
        return Err(Error::Run {
            path: dir.into(),
            reason: "it exists already".into(),
            hint: "choose another directory for `--save`".into(),
        }
        .into());
    }
    unpack(dir)?;
    let (origin, dir) = (origin(dir)?, dir.display());
    Ok(print::line(format_args!(
        "{dir}: {origin}; try `rem eval {dir}`"
    ))?)
}

/// Writes the files of the agent.
fn unpack(dir: &Path) -> Result<(), Error> {
    for name in DemoAgent::iter() {
        let file = DemoAgent::get(&name).expect("a listed file is part of the program");
        let path = dir.join(&*name);
        let parent = rem_run::files::parent(&path);
        std::fs::create_dir_all(parent).map_err(Error::io(parent))?;
        std::fs::write(&path, file.data).map_err(Error::io(&path))?;
    }
    Ok(())
}

/// Which agent it is, and how it was trained.
fn origin(dir: &Path) -> Result<String, Error> {
    let (config, protocol) = (read_config(dir)?, read_protocol(dir)?);
    let command = protocol.exported.and_then(|exported| exported.command);
    Ok(format!(
        "an agent for `{}`, trained by `{}` at commit {:.7}",
        config.env.game,
        command.as_deref().unwrap_or("rem train"),
        protocol.git_revision
    ))
}
