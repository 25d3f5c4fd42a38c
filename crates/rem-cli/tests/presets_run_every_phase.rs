//! The presets for the paper's text, IRIS and Simulus train every component, at small sizes.

mod support;

use std::fs;

use support::*;

/// Trains `debug` with another preset on top, on a game with long episodes. Returns the run's config.
fn trains(preset: &str, set: &[&str]) -> String {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let mut train = rem();
    train.args(["train", "--preset", &format!("debug,{preset}")]);
    for value in ["env.game=paddle"].iter().chain(set) {
        train.args(["--set", value]);
    }
    succeeds(train.arg("--run-dir").arg(&dir));
    for phase in [
        "collect",
        "tokenizer",
        "world_model",
        "actor_critic",
        "evaluate",
    ] {
        assert!(has_line(&dir, 4, phase), "{preset}: no {phase}");
    }
    let metrics = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    for absent in ["null", "\"note\""] {
        assert!(!metrics.contains(absent), "{preset}: {metrics}");
    }
    for present in ["validation/loss_obs", "imagined_return"] {
        assert!(metrics.contains(present), "{preset}: {metrics}");
    }
    fs::read_to_string(dir.join("config.toml")).unwrap()
}

#[test]
fn paper_text_trains() {
    let config = trains("paper-text", &["train.horizon=10", "collect.epochs=4"]);
    for line in [
        "loss_start = \"every_step\"",
        "rollout_length = \"horizon\"",
        "context = 10",
        "burn_in = 9",
        "reset_per_epoch = true",
        "reconstruction = \"l1\"",
        "type = \"powers_of_two\"",
        "quantizer_convs = false",
    ] {
        assert!(config.lines().any(|l| l == line), "{line} in {config}");
    }
    // The horizon of the paper's algorithm with the context of its Table 5.
    trains(
        "paper-text",
        &[
            "train.horizon=4",
            "world_model.context=2",
            "collect.epochs=4",
        ],
    );
}

#[test]
fn every_step_has_a_loss_without_pop() {
    let set = [
        "train.horizon=10",
        "collect.epochs=4",
        "world_model.architecture=retnet",
    ];
    trains("paper-text", &set);
}

#[test]
fn simulus_trains() {
    let small = [
        "collect.epochs=4",
        "world_model.layers=2",
        "tokenizer.channels=8",
        "tokenizer.vocabulary=512",
        "world_model.optimizer.batch_size=4",
        "actor_critic.optimizer.steps_per_epoch=2",
    ];
    let config = trains("simulus", &small);
    for line in [
        "type = \"pop_attention\"",
        "type = \"finite_scalar\"",
        "type = \"quantile_range\"",
        "rewards = \"hl_gauss\"",
        "values = \"hl_gauss\"",
        "reward_head_input = \"predicted_observation\"",
        "ensemble_heads = 4",
    ] {
        assert!(config.lines().any(|l| l == line), "{line} in {config}");
    }
}

#[test]
fn iris_and_its_ablation_train() {
    let small = [
        "collect.epochs=4",
        "train.horizon=5",
        "world_model.layers=2",
        "tokenizer.optimizer.batch_size=4",
        "tokenizer.downsamplings=3",
        "actor_critic.optimizer.steps_per_epoch=2",
        "actor_critic.optimizer.batch_size=4",
    ];
    let config = trains("iris", &small);
    assert!(config.contains("loss_start = \"every_step\""), "{config}");
    let config = trains("ablation-iris", &["collect.epochs=4"]);
    assert!(
        config.contains("reward_loss_start = \"from_context\""),
        "{config}"
    );
}
