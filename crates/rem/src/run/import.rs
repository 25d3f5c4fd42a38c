//! Import of weights: agents of the authors' code (PyTorch or safetensors) and the published LPIPS files.

use std::path::Path;

use pytorch_reader::{DType, PytorchReader};

use crate::config::{Config, Embeddings};
use crate::error::{Error, Result};
use crate::model::tokenizer::lpips;
use crate::model::weights::{self, Array, Arrays};

mod authors;

pub use authors::{AuthorsAgent, actor_critic, tokenizer, world_model};

/// Reads the arrays of a `.pt`, `.pth` or `.safetensors` file.
///
/// # Errors
/// If the file cannot be read, or has another format.
pub fn read(path: &Path) -> Result<Arrays> {
    // Report a missing file as such, not as one of an unknown kind.
    std::fs::metadata(path).map_err(Error::io(path))?;
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    match extension {
        "safetensors" => {
            let bytes = std::fs::read(path).map_err(Error::io(path))?;
            weights::from_safetensors(&bytes).map_err(|reason| Error::Weights {
                file: path.into(),
                reason,
            })
        }
        "pt" | "pth" => read_pytorch(path),
        other => Err(Error::Weights {
            file: path.into(),
            reason: format!("unknown extension `{other}`, expected .pt, .pth or .safetensors"),
        }),
    }
}

fn read_pytorch(path: &Path) -> Result<Arrays> {
    let failed = |reason: String| Error::Weights {
        file: path.into(),
        reason,
    };
    let reader =
        PytorchReader::new(path).map_err(|e| failed(format!("not a PyTorch file: {e}")))?;
    let mut arrays = Arrays::new();
    for (name, tensor) in reader.tensors() {
        let bytes = tensor
            .read()
            .map_err(|e| failed(format!("`{name}`: {e}")))?;
        let data: Vec<f32> = match tensor.dtype() {
            DType::F32 => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect(),
            DType::F64 => bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| f64::from_le_bytes(*b) as f32)
                .collect(),
            DType::F16 | DType::BF16 => {
                return Err(failed(format!(
                    "`{name}` is in half precision, which is not supported"
                )));
            }
            // Integers, such as counters, are not weights.
            _ => continue,
        };
        arrays.insert(
            name.clone(),
            Array {
                shape: tensor.shape().to_vec(),
                data,
            },
        );
    }
    Ok(arrays)
}

/// The index of each VGG-16 convolution in torchvision's `features`.
const VGG_LAYERS: [usize; 13] = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28];

/// Reads torchvision's VGG-16 and the LPIPS heads, with the parameter names of [`lpips::Lpips`].
///
/// # Errors
/// If a file cannot be read, or an array is missing or has another shape.
pub fn lpips(vgg: &Path, heads: &Path) -> Result<Arrays> {
    let mut out = Arrays::new();
    let take =
        |file: &Path, arrays: &Arrays, names: [String; 2], shape: &[usize]| -> Result<Array> {
            let failed = |reason: String| Error::Weights {
                file: file.into(),
                reason,
            };
            let found = names.iter().find_map(|n| arrays.get(n));
            let array = found.ok_or_else(|| failed(format!("`{}` is missing", names[0])))?;
            if array.shape != shape {
                return Err(failed(format!(
                    "`{}` has shape {:?}, not {shape:?}",
                    names[0], array.shape
                )));
            }
            Ok(array.clone())
        };
    let (vgg_arrays, head_arrays) = (read(vgg)?, read(heads)?);
    let mut layers = VGG_LAYERS.iter();
    let mut from = 3;
    for (stage, &(count, width)) in lpips::STAGES.iter().enumerate() {
        for conv in 0..count {
            let layer = layers.next().expect("13 convolutions");
            for (part, shape) in [("weight", &[width, from, 3, 3][..]), ("bias", &[width][..])] {
                let names = [
                    format!("features.{layer}.{part}"),
                    format!("vgg.features.{layer}.{part}"),
                ];
                let array = take(vgg, &vgg_arrays, names, shape)?;
                out.insert(format!("stages.{stage}.convs.{conv}.{part}"), array);
            }
            from = width;
        }
        let names = [
            format!("lin{stage}.model.1.weight"),
            format!("lins.{stage}.model.1.weight"),
        ];
        let array = take(heads, &head_arrays, names, &[1, width, 1, 1])?;
        out.insert(format!("heads.{stage}.weight"), array);
    }
    Ok(out)
}

/// Reads an agent of the authors' code, and derives the config of a run on `game` from its sizes. `embeddings` are those
/// of observation tokens, which the file does not tell; `None` means the tokenizer's.
///
/// # Errors
/// If the file cannot be read, is not such an agent, or `embeddings` is `None` and the world model has embeddings of
/// observation tokens that look trained.
pub fn agent(
    path: &Path,
    game: &str,
    embeddings: Option<Embeddings>,
) -> Result<(Config, AuthorsAgent)> {
    let arrays = read(path)?;
    let failed = |reason: String| Error::Weights {
        file: path.into(),
        reason,
    };
    let agent = AuthorsAgent::new(&arrays, embeddings).map_err(failed)?;
    let config = Config::load("atari100k", &agent.overrides(game))?;
    Ok((config, agent))
}
