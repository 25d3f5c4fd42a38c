//! `rem diagnose` measures every component of a run, trains a controller in the game, and changes nothing.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::*;

fn diagnose(run: &Path, words: &str) -> Command {
    let mut command = rem();
    command.arg("diagnose").arg(run);
    command.args(words.split_whitespace());
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(&succeeds(command))).unwrap()
}

/// All shares that are not of nothing.
fn shares(value: &Value) -> Vec<f64> {
    let [tokenizer, model] = ["tokenizer", "world_model"].map(|part| &value[part]);
    let names = [
        "exact",
        "changed_tokens",
        "changed_without_pixels",
        "unchanged_with_pixels",
    ];
    let of_tokenizer = names
        .into_iter()
        .filter_map(|name| tokenizer[name].as_f64());
    let ahead = model["ahead"].as_array().unwrap().iter();
    let of_steps = ahead.map(|step| step["tokens"].as_f64().unwrap());
    of_tokenizer.chain(of_steps).collect()
}

#[test]
fn every_component_is_measured_and_the_run_stays_as_it_is() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, "--game paddle --seed 2"));
    let before = all_files(&dir);

    let words = "--json --steps 400 --simulator --updates 3 --episodes 2";
    let found = json(&mut diagnose(&dir, words));
    assert_eq!(found["epoch"], 4);
    let tokenizer = &found["tokenizer"];
    assert!(tokenizer["frames"].as_u64().unwrap() >= 400);
    assert!(tokenizer["distinct_frames"].as_u64() <= tokenizer["frames"].as_u64());
    assert!(
        shares(&found)
            .iter()
            .all(|share| (0.0..=1.0).contains(share)),
        "{found}"
    );
    // A rollout has three imagined observations: a horizon of 5 steps less a context of 2.
    let model = &found["world_model"];
    assert_eq!(model["ahead"].as_array().unwrap().len(), 3);
    let loss = model["losses"]["observations"].as_f64().unwrap();
    assert!(loss > 0.0 && loss < 4.0, "{loss}");
    assert!(model["returns"]["states"].as_u64().unwrap() > 20);

    // The score of the run is that of `rem eval`, on the same episodes.
    let controller = &found["controller"];
    let score = |part: &str| controller[part]["mean"].as_f64().unwrap();
    let eval = stdout(&succeeds(rem().arg("eval").arg(&dir).args([
        "--json",
        "--episodes",
        "2",
    ])));
    assert_eq!(score("with_dreams"), numbers(&eval, "mean")[0]);
    assert_eq!(
        (&controller["updates"], &controller["updates_in_dreams"]),
        (&3.into(), &4.into())
    );
    assert!(score("in_the_game") >= 0.0);
    for part in ["tokenizer", "world_model", "controller"] {
        assert!(found[part]["verdict"].as_str().unwrap().ends_with('.'));
    }
    // The seed of the run determines everything.
    assert_eq!(json(&mut diagnose(&dir, words)), found);
    assert_same(&all_files(&dir), &before);

    let text = stdout(&succeeds(&mut diagnose(&dir, "--steps 400")));
    for part in [
        "tokenizer\n",
        "world model\n",
        "steps ahead",
        "explained variance",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("controller\n"), "{text}");
    for part in ["tokenizer", "world_model"] {
        let verdict = found[part]["verdict"].as_str().unwrap();
        assert!(text.contains(verdict), "{verdict}\n{text}");
    }
}

#[test]
fn what_cannot_be_diagnosed_is_an_error() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let late =
        "--set actor_critic.optimizer.start_after=9 --set train.epochs=2 --set evaluate.every=0";
    succeeds(&mut debug_run(&dir, late));
    let (error, hint) = fails(&mut diagnose(&dir, "--simulator --json"));
    assert_eq!(error, "the controller is not trained yet at epoch 2");
    assert!(hint.contains("after epoch 9"), "{hint}");
    let (error, _) = fails(&mut diagnose(
        &dir,
        "--simulator --set tokenizer.vocabulary=8",
    ));
    assert!(error.contains("tokenizer.vocabulary"), "{error}");
    fails(&mut diagnose(&temp.path().join("none"), ""));
}
