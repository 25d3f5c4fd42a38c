//! Snapshots in layers: a wrapper's state, and inside it that of what it wraps.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::EnvError;

/// One layer of a snapshot: a line of JSON. A wrapper's line is followed by the snapshot of what it wraps,
/// byte for byte, so an emulator may keep a binary state of its own.
#[derive(Serialize, Deserialize)]
struct Layer<S> {
    layer: String,
    state: S,
}

/// Only the name: read first, so that a foreign snapshot is called that and not damaged.
#[derive(Deserialize)]
struct LayerName {
    layer: String,
}

pub(super) fn pack(layer: &str, state: &impl Serialize, inner: &[u8]) -> Vec<u8> {
    let layer = layer.to_owned();
    let mut bytes =
        serde_json::to_vec(&Layer { layer, state }).expect("plain data can be written as JSON");
    bytes.push(b'\n');
    bytes.extend_from_slice(inner);
    bytes
}

/// The state of the outermost layer, which must be called `layer`, and the snapshot inside it.
pub(super) fn unpack<'a, S: DeserializeOwned>(
    layer: &str,
    snapshot: &'a [u8],
) -> Result<(S, &'a [u8]), EnvError> {
    let end = snapshot.iter().position(|&byte| byte == b'\n');
    let end = end.ok_or_else(|| refused(format!("the state of `{layer}` is cut short")))?;
    let (line, inner) = (&snapshot[..end], &snapshot[end + 1..]);
    let damaged = |error| refused(format!("the state of `{layer}` is damaged ({error})"));
    let found: LayerName = serde_json::from_slice(line).map_err(damaged)?;
    if found.layer != layer {
        return Err(refused(format!(
            "the snapshot is of `{}`, not of `{layer}`",
            found.layer
        )));
    }
    let found: Layer<S> = serde_json::from_slice(line).map_err(damaged)?;
    Ok((found.state, inner))
}

pub(super) fn refused(reason: String) -> EnvError {
    EnvError::Snapshot { reason }
}
