//! Every phase runs at the paper's model size, with little data.

mod support;

use std::fs;

use support::*;

#[test]
fn atari100k_runs_every_phase_on_catch() {
    // The paper's sizes: 64x64 frames as 8x8 tokens of 512 codes, 5 layers of width 256, an LSTM of 512.
    let sizes = [
        "frame_size = 64",
        "vocabulary = 512",
        "embedding = 256",
        "channels = 32",
        "downsamplings = 3",
        "layers = 5",
        "heads = 4",
        "feed_forward = 1024",
        "horizon = 10",
        "lstm_dim = 512",
        "burn_in = 20",
    ];
    runs_every_phase_on_catch("atari100k", &sizes);
}

#[test]
fn simulus_runs_every_phase_on_catch() {
    let sizes = [
        "vocabulary = 512",
        "embedding = 256",
        "channels = 64",
        "layers = 10",
        "ensemble_heads = 4",
        "horizon = 10",
    ];
    runs_every_phase_on_catch("simulus", &sizes);
}

/// With the lines of `config.toml` in `sizes`.
fn runs_every_phase_on_catch(preset: &str, sizes: &[&str]) {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let settings = "--set env.game=catch --set env.max_steps.train=100 --set env.max_steps.test=100 \
        --set train.epochs=1 --set collect.steps_per_epoch=30 --set evaluate.final_episodes=1 \
        --set tokenizer.optimizer.start_after=0 --set tokenizer.optimizer.steps_per_epoch=1 \
        --set tokenizer.optimizer.batch_size=2 \
        --set world_model.optimizer.start_after=0 --set world_model.optimizer.steps_per_epoch=1 \
        --set world_model.optimizer.batch_size=2 \
        --set actor_critic.optimizer.start_after=0 --set actor_critic.optimizer.steps_per_epoch=1 \
        --set actor_critic.optimizer.batch_size=1";
    succeeds(
        rem()
            .args(["train", "--preset", preset])
            .args(settings.split_whitespace())
            .arg("--run-dir")
            .arg(&dir),
    );
    for phase in [
        "collect",
        "tokenizer",
        "world_model",
        "actor_critic",
        "evaluate",
    ] {
        assert!(has_line(&dir, 1, phase), "no {phase}");
    }
    let metrics = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    assert!(
        !metrics.contains("null"),
        "a value is not finite: {metrics}"
    );
    assert!(!metrics.contains("\"note\""), "{metrics}");

    let config = fs::read_to_string(dir.join("config.toml")).unwrap();
    for line in sizes {
        assert!(
            config.lines().any(|l| l == *line),
            "no `{line}` in\n{config}"
        );
    }
    succeeds(rem().arg("eval").arg(&dir));
}
