//! `rem import agent` rejects weights that do not fit before it writes anything.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::*;

/// A file of the authors' agent for the golden tests, which has five actions.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rem/tests/golden")
        .join(name)
}

/// Asserts that `rem import agent FILE --game catch` fails with `part` in the error and creates no run.
#[track_caller]
fn assert_import_rejects(file: &Path, part: &str) {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let (error, _) = fails(
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
        "the file is not named exactly once: {error}"
    );
    assert!(!dir.exists(), "{error}: created the run directory");
}

#[test]
fn agents_with_another_number_of_actions_are_rejected() {
    for name in ["weights.safetensors", "checkpoint.pt"] {
        assert_import_rejects(&golden(name), "the agent has 5 actions, but `catch` has 3");
    }
}

#[test]
fn files_that_are_not_agents_are_rejected() {
    let temp = temp_dir();
    let file = |name: &str, bytes: &[u8]| {
        let path = temp.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let prose = b"Not a weight in the world. ".repeat(40);
    assert_import_rejects(&file("prose.safetensors", &prose), "not a safetensors file");
    assert_import_rejects(&file("prose.pt", &prose), "not a PyTorch file");
    assert_import_rejects(&file("prose.txt", &prose), ".safetensors");
    assert_import_rejects(&file("empty.safetensors", b""), "not a safetensors file");
    assert_import_rejects(&file("empty.pt", b""), "not a PyTorch file");
    let whole = fs::read(golden("weights.safetensors")).unwrap();
    assert_import_rejects(
        &file("cut.safetensors", &whole[..whole.len() / 2]),
        "not a safetensors file",
    );
    let whole = fs::read(golden("checkpoint.pt")).unwrap();
    assert_import_rejects(
        &file("cut.pt", &whole[..whole.len() / 2]),
        "not a PyTorch file",
    );
    assert_import_rejects(&temp.path().join("absent.safetensors"), "no such file");
    assert_import_rejects(&temp.path().join("absent.pt"), "no such file");
}

#[test]
fn missing_and_reshaped_arrays_are_rejected() {
    let temp = temp_dir();
    let written = |name: &str, arrays: &[Array]| {
        let path = temp.path().join(name);
        fs::write(&path, to_safetensors(arrays)).unwrap();
        path
    };
    let agent = three_action_agent();
    // Unchanged, the agent imports and plays.
    let dir = temp.path().join("run");
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
    let transposed = |shape: &[usize]| shape.iter().rev().copied().collect();
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
        assert_import_rejects(&reshaped(name, &flat), "shape");
    }
    assert_import_rejects(
        &reshaped("actor_critic.dense.0.weight", &transposed),
        "shape",
    );
    for name in [
        "actor_critic.rnn.bias_hh",
        "tokenizer.embedding.weight",
        "world_model.head_ends.2.bias",
    ] {
        let without: Vec<Array> = agent.iter().filter(|a| a.name != name).cloned().collect();
        assert_import_rejects(&written("short.safetensors", &without), "missing");
    }
}

/// The file of an agent with separate embeddings has the names and shapes of one that shares the tokenizer's codes.
#[test]
fn separate_embeddings_are_not_imported_as_shared_ones() {
    let temp = temp_dir();
    let mut arrays = three_action_agent();
    let table = "world_model.embedding.weight";
    let array = arrays.iter_mut().find(|a| a.name == table).unwrap();
    // As after training: every value has moved by up to 1.
    for (i, bytes) in array.bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let moved = f32::from_le_bytes(*bytes) + (i as f32).sin();
        *bytes = moved.to_le_bytes();
    }
    let file = temp.path().join("separate.safetensors");
    fs::write(&file, to_safetensors(&arrays)).unwrap();
    assert_import_rejects(&file, "`--embeddings own`");

    let embeddings = |kind: &str| {
        let dir = temp.path().join(kind);
        let mut import = rem();
        import.args(["import", "agent", "--game", "catch", "--embeddings", kind]);
        succeeds(import.arg(&file).arg("--run-dir").arg(&dir));
        let eval = succeeds(rem().args(["eval", "--episodes", "2", "--json"]).arg(&dir));
        assert!(stdout(&eval).contains("\"returns\":["), "{}", stdout(&eval));
        fs::read_to_string(dir.join("config.toml")).unwrap()
    };
    assert!(embeddings("own").contains("embeddings = \"own\"\n"));
    assert!(embeddings("tokenizer").contains("embeddings = \"tokenizer\"\n"));
}

/// An array of a safetensors file.
#[derive(Clone)]
struct Array {
    name: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The golden agent without its last two actions, to match `catch`.
fn three_action_agent() -> Vec<Array> {
    let mut arrays = from_safetensors(&fs::read(golden("weights.safetensors")).unwrap());
    for array in &mut arrays {
        let rows = array.shape[0];
        let row = array.bytes.len() / rows;
        let dropped = match array.name.as_str() {
            "actor_critic.actions_embeddings.weight"
            | "actor_critic.actor_linear.weight"
            | "actor_critic.actor_linear.bias" => rows - 2..rows,
            // Rows: codes, actions, padding.
            "world_model.embedding.weight" => rows - 3..rows - 1,
            _ => continue,
        };
        array.bytes.drain(dropped.start * row..dropped.end * row);
        array.shape[0] -= 2;
    }
    arrays
}

/// Layout: header length (8 bytes), JSON header `{"name":{"dtype":"F32","shape":[..],"data_offsets":[..]},..}`, data.
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
