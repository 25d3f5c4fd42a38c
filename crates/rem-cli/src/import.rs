//! `rem import`: converts weights from PyTorch.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use rem::Error;
use rem::config::Embeddings;
use rem::model::weights;
use rem::run::RunDir;
use rem::run::import;
use rem::{threads, train};

use crate::data_dir;

/// Import weights from PyTorch files
#[derive(Subcommand)]
pub enum ImportCommand {
    /// Convert the published weights of the perceptual loss (LPIPS)
    ///
    /// REM cannot ship these weights. Download torchvision's VGG-16 (`vgg16-397923af.pth`, from PyTorch's model zoo) and
    /// take the heads (`weights/v0.1/vgg.pth`) from the `lpips` Python package, then pass both files.
    #[command(after_long_help = "\
Example:
  rem import lpips vgg16-397923af.pth vgg.pth")]
    Lpips {
        /// torchvision's VGG-16, .pth or .safetensors
        vgg: PathBuf,
        /// The LPIPS heads for VGG, .pth or .safetensors
        heads: PathBuf,
        /// Output file [default: lpips.safetensors in the user's data directory]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Convert an agent saved by the authors' PyTorch code into a run, for `rem eval`
    #[command(after_long_help = "\
Example:
  rem import agent last.pt --game pong --run-dir runs/pong-authors
  rem eval runs/pong-authors")]
    Agent {
        /// The agent, .pt or .safetensors
        file: PathBuf,
        /// Game of the agent; the number of actions must match
        #[arg(long, value_name = "NAME")]
        game: String,
        /// Run directory to create
        #[arg(long, value_name = "DIR")]
        run_dir: PathBuf,
        /// The world model's embeddings of observation tokens: the tokenizer's codes, or a separate table
        ///
        /// Not recorded in the file. By default the agent must use the tokenizer's codes: trained separate embeddings are
        /// detected by their values and rejected.
        #[arg(long, value_name = "KIND")]
        embeddings: Option<EmbeddingsArg>,
    },
}

/// The values of `--embeddings`, named as in the config.
#[derive(Clone, Copy, ValueEnum)]
pub enum EmbeddingsArg {
    /// The tokenizer's codes
    Tokenizer,
    /// A separate table in the world model
    Own,
}

impl From<EmbeddingsArg> for Embeddings {
    fn from(embeddings: EmbeddingsArg) -> Self {
        match embeddings {
            EmbeddingsArg::Tokenizer => Self::Tokenizer,
            EmbeddingsArg::Own => Self::Own,
        }
    }
}

pub fn run(command: ImportCommand) -> Result<()> {
    match command {
        ImportCommand::Lpips { vgg, heads, out } => lpips(vgg, heads, out),
        ImportCommand::Agent {
            file,
            game,
            run_dir,
            embeddings,
        } => agent(file, game, run_dir, embeddings.map(Embeddings::from)),
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
    rem_run::files::write_atomic(&out, &weights::to_safetensors(&arrays)).map_err(Error::File)?;
    println!("{}: {} arrays", out.display(), arrays.len());
    Ok(())
}

fn agent(
    file: PathBuf,
    game: String,
    run_dir: PathBuf,
    embeddings: Option<Embeddings>,
) -> Result<()> {
    let (mut config, agent) = import::agent(&file, &game, embeddings)?;
    config.threads = threads::set(config.threads)?;
    let actions = rem::train::evaluate::test_env(&config.env, 0)
        .map_err(Error::from)?
        .actions()
        .len();
    if actions != agent.actions() {
        let reason = format!(
            "the agent has {} actions, but `{game}` has {actions}",
            agent.actions()
        );
        return Err(Error::Weights {
            file: file.clone(),
            reason,
        }
        .into());
    }
    // Check everything that can fail before writing anything.
    let weights = [agent.tokenizer, agent.world_model, agent.actor_critic];
    let checkpoint = train::checkpoint_from_weights(&config, &file, weights)?;
    let lpips = crate::train::lpips_file(&config)?;
    let crc32 = lpips.as_deref().map(crate::train::checksum).transpose()?;
    let protocol = train::protocol(&config, config.threads, crc32, None)?;
    let run = RunDir::create(&run_dir)?;
    protocol.write(run.path()).map_err(Error::from)?;
    train::write_imported_run(&run, &config, checkpoint)?;
    println!(
        "{}: try `rem eval {}`",
        run_dir.display(),
        run_dir.display()
    );
    Ok(())
}
