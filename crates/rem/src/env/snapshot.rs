//! The format of snapshots: one layer per wrapper, and one for the game.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::EnvError;

/// A layer of a snapshot: a line of JSON, followed by the snapshot of the wrapped environment, which may be binary.
#[derive(Serialize, Deserialize)]
struct Layer<S> {
    layer: String,
    state: S,
}

/// The name of a layer. Parsed first, so that a snapshot of another environment is not reported as damaged.
#[derive(Deserialize)]
struct LayerName {
    layer: String,
}

/// The bytes of a layer around the snapshot `inner`.
pub(super) fn pack(layer: &str, state: &impl Serialize, inner: &[u8]) -> Vec<u8> {
    let layer = layer.to_owned();
    let mut bytes = serde_json::to_vec(&Layer { layer, state }).expect("plain data is valid JSON");
    bytes.push(b'\n');
    bytes.extend_from_slice(inner);
    bytes
}

/// The state of the outermost layer, which must be named `layer`, and the snapshot inside it.
pub(super) fn unpack<'a, S: DeserializeOwned>(
    layer: &str,
    snapshot: &'a [u8],
) -> Result<(S, &'a [u8]), EnvError> {
    let end = snapshot.iter().position(|&byte| byte == b'\n');
    let end = end.ok_or_else(|| invalid(format!("the state of `{layer}` is truncated")))?;
    let (line, inner) = (&snapshot[..end], &snapshot[end + 1..]);
    let damaged = |error| invalid(format!("the state of `{layer}` is damaged ({error})"));
    let found: LayerName = serde_json::from_slice(line).map_err(damaged)?;
    if found.layer != layer {
        return Err(invalid(format!(
            "the snapshot is of `{}`, not of `{layer}`",
            found.layer
        )));
    }
    let found: Layer<S> = serde_json::from_slice(line).map_err(damaged)?;
    Ok((found.state, inner))
}

/// The error of a snapshot that cannot be restored.
pub(super) fn invalid(reason: String) -> EnvError {
    EnvError::Snapshot { reason }
}
