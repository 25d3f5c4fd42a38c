//! `rem import`: weights from elsewhere.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use rem::error::Error;
use rem::run::{Protocol, RunDir};
use rem::{files, import, threads, train, weights};

use crate::data_dir;

/// Bring in weights made elsewhere
#[derive(Subcommand)]
pub enum ImportCommand {
    /// Prepare the weights of the perceptual loss (LPIPS) from their published PyTorch files
    ///
    /// They cannot ship with REM. Get torchvision's VGG-16 (`vgg16-397923af.pth`, from PyTorch's model zoo) and
    /// the heads `vgg.pth` of the `lpips` Python package (in its folder `weights/v0.1`), then name both here.
    Lpips {
        /// torchvision's VGG-16, .pth or .safetensors
        vgg: PathBuf,
        /// The LPIPS heads for VGG, .pth or .safetensors
        heads: PathBuf,
        /// File to write [default: lpips.safetensors in the user's data directory]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Make a run of an agent saved by the authors' PyTorch code, for `rem eval`
    Agent {
        /// The agent, .pt or .safetensors
        file: PathBuf,
        /// Game that it plays; its number of actions must be the agent's
        #[arg(long, value_name = "NAME")]
        game: String,
        /// Directory of the new run
        #[arg(long, value_name = "DIR")]
        run_dir: PathBuf,
    },
}

pub fn run(command: ImportCommand) -> Result<()> {
    match command {
        ImportCommand::Lpips { vgg, heads, out } => lpips(vgg, heads, out),
        ImportCommand::Agent {
            file,
            game,
            run_dir,
        } => agent(file, game, run_dir),
    }
}

fn lpips(vgg: PathBuf, heads: PathBuf, out: Option<PathBuf>) -> Result<()> {
    let arrays = import::lpips(&vgg, &heads)?;
    let out = match out {
        Some(out) => out,
        None => data_dir()?.join("lpips.safetensors"),
    };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io(parent))?;
    }
    files::write_atomic(&out, &weights::to_safetensors(&arrays)).map_err(Error::File)?;
    println!("{}: {} arrays", out.display(), arrays.len());
    Ok(())
}

fn agent(file: PathBuf, game: String, run_dir: PathBuf) -> Result<()> {
    let (mut config, agent) = import::agent(&file, &game)?;
    config.threads = threads::set(config.threads)?;
    let actions = rem::evaluate::test_env(&config.env, 0)
        .map_err(Error::from)?
        .actions()
        .len();
    if actions != agent.actions() {
        let reason = format!(
            "it plays with {} actions, `{game}` has {actions}",
            agent.actions()
        );
        return Err(Error::Weights {
            file: file.clone(),
            reason,
        }
        .into());
    }
    // Everything that can be wrong is found out before anything is written.
    let weights = [agent.tokenizer, agent.world_model, agent.actor_critic];
    let checkpoint = train::imported(&config, &file, weights)?;
    let lpips = crate::train::lpips_file(&config)?;
    let crc32 = lpips.as_deref().map(crate::train::checksum).transpose()?;
    let protocol = Protocol::new(&config, config.threads, crc32)?;
    let run = RunDir::create(&run_dir)?;
    protocol.write(&run)?;
    train::write_imported(&run, &config, checkpoint)?;
    println!(
        "{}: try `rem eval {}`",
        run_dir.display(),
        run_dir.display()
    );
    Ok(())
}
