//! Weights that do not fit are refused before anything is written.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::*;

/// A file of the agent that the authors' code wrote for the golden tests; it has five actions.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rem/tests/golden")
        .join(name)
}

/// `rem import agent FILE --game catch` is refused for a reason with `part` in it, and no run appears.
#[track_caller]
fn import_is_refused(file: &Path, part: &str) {
    let place = place();
    let dir = place.path().join("run");
    let (error, _) = refused(
        rem()
            .args(["import", "agent", "--game", "catch"])
            .arg(file)
            .arg("--run-dir")
            .arg(&dir),
    );
    assert!(error.contains(part), "{error}");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        error.matches(name).count(),
        1,
        "the file is not named once: {error}"
    );
    assert!(!dir.exists(), "{error}: the run directory appeared");
}

#[test]
fn an_agent_with_other_actions_than_the_game() {
    for name in ["weights.safetensors", "checkpoint.pt"] {
        import_is_refused(&golden(name), "it plays with 5 actions, `catch` has 3");
    }
}

#[test]
fn a_file_that_is_no_agent() {
    let place = place();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let prose = b"Not a weight in the world. ".repeat(40);
    import_is_refused(&file("prose.safetensors", &prose), "not a safetensors file");
    import_is_refused(&file("prose.pt", &prose), "not a PyTorch file");
    import_is_refused(&file("prose.txt", &prose), ".safetensors");
    import_is_refused(&file("empty.safetensors", b""), "not a safetensors file");
    import_is_refused(&file("empty.pt", b""), "not a PyTorch file");
    let whole = fs::read(golden("weights.safetensors")).unwrap();
    import_is_refused(
        &file("cut.safetensors", &whole[..whole.len() / 2]),
        "not a safetensors file",
    );
    let whole = fs::read(golden("checkpoint.pt")).unwrap();
    import_is_refused(
        &file("cut.pt", &whole[..whole.len() / 2]),
        "not a PyTorch file",
    );
    import_is_refused(&place.path().join("absent.safetensors"), "No such file");
    import_is_refused(&place.path().join("absent.pt"), "No such file");
}

#[test]
fn an_agent_with_arrays_of_the_wrong_shape() {
    let place = place();
    let written = |name: &str, arrays: &[Array]| {
        let path = place.path().join(name);
        fs::write(&path, to_safetensors(arrays)).unwrap();
        path
    };
    let agent = three_action_agent();
    // As it should be it can be imported and plays.
    let dir = place.path().join("run");
    let file = written("right.safetensors", &agent);
    succeeds(
        rem()
            .args(["import", "agent", "--game", "catch"])
            .arg(file)
            .arg("--run-dir")
            .arg(&dir),
    );
    succeeds(rem().arg("eval").arg(&dir).args(["--episodes", "2"]));

    let reshaped = |name: &str, shape: &dyn Fn(&[usize]) -> Vec<usize>| {
        let mut arrays = agent.clone();
        let array = arrays.iter_mut().find(|a| a.name == name).unwrap();
        array.shape = shape(&array.shape);
        written("wrong.safetensors", &arrays)
    };
    let turned = |shape: &[usize]| shape.iter().rev().copied().collect();
    let flat = |shape: &[usize]| vec![shape.iter().product()];
    for name in [
        "actor_critic.dense.0.weight",
        "tokenizer.encoder.blocks.1.3.weight",
        "tokenizer.embedding.weight",
        "world_model.embedding.weight",
        "world_model.placeholder_embeddings.weight",
        "world_model._model.layers.1.linear2.weight",
        "actor_critic.actor_linear.weight",
    ] {
        import_is_refused(&reshaped(name, &flat), "shape");
    }
    import_is_refused(&reshaped("actor_critic.dense.0.weight", &turned), "shape");
    for name in [
        "actor_critic.rnn.bias_hh",
        "tokenizer.embedding.weight",
        "world_model.head_ends.2.bias",
    ] {
        let without: Vec<Array> = agent.iter().filter(|a| a.name != name).cloned().collect();
        import_is_refused(&written("short.safetensors", &without), "missing");
    }
}

/// An array of a safetensors file.
#[derive(Clone)]
struct Array {
    name: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The golden agent with two of its five actions cut off, so that it fits `catch`.
fn three_action_agent() -> Vec<Array> {
    let mut arrays = from_safetensors(&fs::read(golden("weights.safetensors")).unwrap());
    for array in &mut arrays {
        let rows = array.shape[0];
        let row = array.bytes.len() / rows;
        let dropped = match array.name.as_str() {
            "actor_critic.actions_embeddings.weight"
            | "actor_critic.actor_linear.weight"
            | "actor_critic.actor_linear.bias" => rows - 2..rows,
            // Codes, actions, and a row for padding.
            "world_model.embedding.weight" => rows - 3..rows - 1,
            _ => continue,
        };
        array.bytes.drain(dropped.start * row..dropped.end * row);
        array.shape[0] -= 2;
    }
    arrays
}

/// Eight bytes of length, a JSON header `{"name":{"dtype":"F32","shape":[..],"data_offsets":[..]},..}`, the data.
fn from_safetensors(file: &[u8]) -> Vec<Array> {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let (header, data) = file[8..].split_at(length);
    let header = std::str::from_utf8(header).unwrap().trim_end();
    let list = |text: &str, key: &str| {
        numbers(text, key)
            .iter()
            .map(|n| *n as usize)
            .collect::<Vec<_>>()
    };
    let entries = header
        .split("}")
        .filter(|entry| entry.contains("\"dtype\":\"F32\""));
    entries
        .map(|entry| {
            let (name, rest) = entry.split_once(":{").unwrap();
            let offsets = list(rest, "data_offsets");
            Array {
                name: name.trim_matches(['{', ',', '"', ' ']).into(),
                shape: list(rest, "shape"),
                bytes: data[offsets[0]..offsets[1]].to_vec(),
            }
        })
        .collect()
}

fn to_safetensors(arrays: &[Array]) -> Vec<u8> {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for Array { name, shape, bytes } in arrays {
        let start = data.len();
        data.extend(bytes);
        let end = data.len();
        entries.push(format!(
            "\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}"
        ));
    }
    let header = format!("{{{}}}", entries.join(","));
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}
