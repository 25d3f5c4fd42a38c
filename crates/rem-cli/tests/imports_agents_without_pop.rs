//! An agent of the authors' code without POP can be imported and evaluated.

mod support;

use std::path::Path;

use rem::model::weights::{self, Array, Arrays};
use rem::run::import;
use support::*;

/// The recorded agent without POP, reduced from five actions to the three of `catch`.
fn agent() -> Arrays {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rem/tests/golden");
    let mut arrays = import::read(&golden.join("weights.safetensors")).unwrap();
    arrays.retain(|name, _| !name.starts_with("world_model."));
    arrays.extend(import::read(&golden.join("nopop/weights.safetensors")).unwrap());
    let (actions, kept) = (5, 3);
    for name in [
        "actor_critic.actor_linear.weight",
        "actor_critic.actor_linear.bias",
        "actor_critic.actions_embeddings.weight",
    ] {
        let array = arrays.get_mut(name).unwrap();
        assert_eq!(array.shape[0], actions);
        *array = without_rows(array, kept, actions);
    }
    let codes = arrays["tokenizer.embedding.weight"].shape[0];
    let table = arrays.get_mut("world_model.embedding.weight").unwrap();
    assert_eq!(table.shape[0], codes + actions + 1);
    *table = without_rows(table, codes + kept, codes + actions);
    arrays
}

fn without_rows(array: &Array, from: usize, to: usize) -> Array {
    let row = array.data.len() / array.shape[0];
    let mut left = array.clone();
    left.data.drain(from * row..to * row);
    left.shape[0] -= to - from;
    left
}

#[test]
fn imported_agent_without_pop_plays() {
    let temp = temp_dir();
    let file = temp.path().join("agent.safetensors");
    std::fs::write(&file, weights::to_safetensors(&agent())).unwrap();
    let dir = temp.path().join("run");
    let mut import = rem();
    import
        .args(["import", "agent", "--game", "catch"])
        .arg(&file);
    succeeds(import.arg("--run-dir").arg(&dir));
    let config = std::fs::read_to_string(dir.join("config.toml")).unwrap();
    let architecture = "[world_model.architecture]\ntype = \"retnet\"\n";
    assert!(config.contains(architecture), "{config}");
    let eval = succeeds(rem().args(["eval", "--episodes", "3", "--json"]).arg(&dir));
    assert!(stdout(&eval).contains("\"returns\":["), "{}", stdout(&eval));
}
