//! `rem import`: converts weights from PyTorch, and recorded episodes.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use rem::Error;
use rem::config::{Embeddings, FRAME_SIZES, ResizeFilter};
use rem::data::dataset::Import;
use rem::env::python::minari;
use rem::env::{EnvError, EnvFactory};
use rem::model::weights;
use rem::run::RunDir;
use rem::run::import;
use rem::{threads, train};

use crate::args::whole;
use crate::data_dir;
use crate::print;

/// Import weights from PyTorch files, or recorded episodes
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
    /// Make a data set for `rem train --offline` from recorded episodes
    ///
    /// Reads `.npz` files, directories of them, and Minari data sets (`.hdf5`, or the directory of one; these need a Python
    /// with h5py). A file holds one or more episodes, as arrays of the same length:
    ///
    ///   frames        u8 [n, height, width], or with 1 or 3 channels last; also named observations, obs or images
    ///   actions       integers from 0
    ///   rewards       numbers
    ///   terminations  whether the episode ended in a terminal state; also named terminals or dones
    ///   truncations   whether it was cut off; also named timeouts; optional
    ///
    /// `frames` may have one element more: the frame after the last action. An episode that is open at the end of a file is
    /// truncated. Files of `rem episodes export` and `rem play` have `outcomes` instead of the last two.
    #[command(after_long_help = "\
Examples:
  rem episodes runs/catch-seed1 export --all --to npz --out episodes
  rem import episodes episodes --out data/catch
  rem train --offline data/catch
  rem import episodes ~/.minari/datasets/my/set-v0 --out data/set --python venv/bin/python")]
    Episodes {
        /// Files or directories
        #[arg(value_name = "FILE|DIR", required = true)]
        sources: Vec<PathBuf>,
        /// Directory of the data set to create
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Name of the environment [default: that in the files]
        #[arg(long, visible_alias = "env", value_name = "NAME")]
        game: Option<String>,
        /// Number of actions [default: those that the files name or take]
        #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=256))]
        actions: Option<usize>,
        /// Height and width of the frames in pixels
        #[arg(long, value_name = "32|64", default_value_t = 64, value_parser = frame_size)]
        frame_size: usize,
        /// How frames of another size are resized
        #[arg(long, value_enum, value_name = "FILTER", default_value = "bilinear")]
        resize: ResizeArg,
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

/// The values of `--resize`, named as in the config.
#[derive(Clone, Copy, ValueEnum)]
pub enum ResizeArg {
    /// Pillow's BILINEAR
    Bilinear,
    /// The nearest pixel
    Nearest,
}

fn frame_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| FRAME_SIZES.contains(size));
    size.ok_or_else(|| {
        let sizes: Vec<String> = FRAME_SIZES.iter().map(usize::to_string).collect();
        format!("must be {}", rem::suggest::or(&sizes))
    })
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
        ImportCommand::Episodes {
            sources,
            out,
            game,
            actions,
            frame_size,
            resize,
        } => {
            let import = Import {
                game,
                actions,
                frame_size,
                resize: match resize {
                    ResizeArg::Bilinear => ResizeFilter::Bilinear,
                    ResizeArg::Nearest => ResizeFilter::Nearest,
                },
            };
            episodes(&import, &sources, &out)
        }
        ImportCommand::Agent {
            file,
            game,
            run_dir,
            embeddings,
        } => agent(file, game, run_dir, embeddings.map(Embeddings::from)),
    }
}

fn episodes(import: &Import, sources: &[PathBuf], out: &Path) -> Result<()> {
    // Minari's files become NumPy files, in the user's Python.
    let temporary = tempfile::tempdir()?;
    let mut files = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        files.push(match minari::file(source) {
            Some(hdf5) => {
                let dir = temporary.path().join(i.to_string());
                minari::to_npz(&hdf5, &dir)
                    .map_err(EnvError::from)
                    .map_err(Error::from)?;
                dir
            }
            None => source.clone(),
        });
    }
    let info = import.run(&files, out).map_err(Error::from)?;
    print::line(format_args!(
        "{}: {} episodes, {} steps of {}, {} actions; try `rem train --offline {}`",
        out.display(),
        info.episodes,
        info.steps,
        info.game,
        info.actions.len(),
        out.display()
    ))?;
    Ok(())
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
    print::line(format_args!("{}: {} arrays", out.display(), arrays.len()))?;
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
    let envs = EnvFactory::named(&config.env).map_err(Error::from)?;
    let actions = envs.spaces().map_err(Error::from)?.action.count();
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
    let checkpoint = train::checkpoint_from_weights(&config, &envs, &file, weights)?;
    let lpips = crate::train::lpips_file(&config)?;
    let crc32 = lpips.as_deref().map(crate::train::checksum).transpose()?;
    let protocol = train::protocol(&config, &envs, config.threads, crc32, None)?;
    let run = RunDir::create(&run_dir)?;
    protocol.write(run.path()).map_err(Error::from)?;
    train::write_imported_run(&run, &config, checkpoint)?;
    print::line(format_args!(
        "{}: try `rem eval {}`",
        run_dir.display(),
        run_dir.display()
    ))?;
    Ok(())
}
