//! The weights of the perceptual loss, in the user's data directory.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rem::Error;
use rem::config::{Config, ConfigError, Perceptual};
use rem::model::tokenizer::lpips::Lpips;
use rem::model::weights;
use rem::run::{Protocol, import};

use crate::data_dir;

/// The LPIPS weights, if the config uses them and they exist.
pub fn lpips_file(config: &Config) -> Result<Option<PathBuf>> {
    if config.tokenizer.perceptual == Perceptual::Off {
        return Ok(None);
    }
    let file = data_dir()?.join("lpips.safetensors");
    match config.tokenizer.perceptual {
        _ if file.exists() => Ok(Some(file)),
        Perceptual::Auto | Perceptual::Off => Ok(None),
        Perceptual::Required => Err(Error::Config(ConfigError::new(
            format!(
                "`tokenizer.perceptual = \"required\"`, but `{}` does not exist",
                file.display()
            ),
            "create it with `rem import lpips`, or set tokenizer.perceptual=auto",
        ))
        .into()),
    }
}

/// CRC-32 of a file of LPIPS weights.
pub fn checksum(file: &Path) -> Result<u32> {
    let bytes = std::fs::read(file).map_err(Error::io(file))?;
    Ok(crc32fast::hash(&bytes))
}

pub fn load_lpips(file: &Path, config: &Config) -> Result<Lpips> {
    let device = rem::device::of(config)?;
    let loaded = weights::apply(
        Lpips::new(config.precision.into(), &device),
        import::read(file)?,
    );
    Ok(loaded.map_err(|reason| Error::Weights {
        file: file.into(),
        reason,
    })?)
}

/// The weights that the run in `dir` was started with. `None` if it has no perceptual loss.
pub fn of_run(dir: &Path, config: &Config, protocol: &Protocol) -> Result<Option<Lpips>> {
    let Some(expected) = protocol.perceptual_crc32 else {
        return Ok(None);
    };
    let lost = |reason: &str| Error::Run {
        path: dir.into(),
        reason: reason.into(),
        hint: "run `rem import lpips` again with the same files".into(),
    };
    let file = lpips_file(config)?;
    let file = file.ok_or_else(|| {
        lost("it was started with the perceptual loss, but the LPIPS weights are missing")
    })?;
    if checksum(&file)? != expected {
        return Err(lost("it was started with different LPIPS weights").into());
    }
    Ok(Some(load_lpips(&file, config)?))
}
