//! Every phase runs at the model sizes of the paper and of Simulus, with little data.

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

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

/// At full size, with the preset's segments per update of the world model; fewer frames and rollouts. A run that is killed
/// in its second epoch and resumed writes the same bytes.
#[test]
fn simulus_runs_every_phase_and_resumes_exactly() {
    let temp = temp_dir();
    let game = match cfg!(feature = "atari") {
        true => "breakout",
        false => "catch",
    };
    let settings = format!(
        "--set env.game={game} --set env.max_steps.test=40 --set train.epochs=2 --set collect.steps_per_epoch=60 \
         --set evaluate.final_episodes=1 \
         --set tokenizer.optimizer.start_after=0 --set tokenizer.optimizer.steps_per_epoch=1 \
         --set tokenizer.optimizer.batch_size=16 \
         --set world_model.optimizer.start_after=0 --set world_model.optimizer.steps_per_epoch=1 \
         --set actor_critic.optimizer.start_after=0 --set actor_critic.optimizer.steps_per_epoch=1 \
         --set actor_critic.optimizer.batch_size=8"
    );
    let train = |dir: &Path| {
        let mut command = rem();
        command.args(["train", "--preset", "simulus", "--run-dir"]);
        command.arg(dir).args(settings.split_whitespace());
        command
    };
    let whole = temp.path().join("whole");
    succeeds(&mut train(&whole));
    let sizes = [
        "frame_size = 64",
        "vocabulary = 512",
        "embedding = 256",
        "channels = 64",
        "downsamplings = 3",
        "type = \"pop_attention\"",
        "layers = 10",
        "heads = 4",
        "feed_forward = 1024",
        "ensemble_heads = 4",
        "prioritized_fraction = 0.3",
        "horizon = 10",
        "batch_size = 32",
        "lstm_dim = 512",
    ];
    assert_every_phase_ran(&whole, 2, &sizes);
    let metrics = fs::read_to_string(whole.join("metrics.jsonl")).unwrap();
    let of_world_model = [
        "loss",
        "loss_obs",
        "loss_rewards",
        "loss_ends",
        "loss_ensemble",
    ];
    let of_controller = [
        "loss_policy",
        "loss_value",
        "return_scale",
        "imagined_disagreement",
    ];
    let names = (of_world_model.map(|name| ("world_model", name)).into_iter())
        .chain(of_controller.map(|name| ("actor_critic", name)));
    for (phase, name) in names {
        assert!(
            value(&metrics, 2, phase, name).is_finite(),
            "{phase} {name}"
        );
    }
    // The floor, and less than the entropy of 512 codes.
    assert!(value(&metrics, 2, "actor_critic", "return_scale") >= 1.0);
    let disagreement = value(&metrics, 2, "actor_critic", "imagined_disagreement");
    assert!(disagreement > 0.0 && disagreement < 512f64.ln());

    let killed = temp.path().join("killed");
    let mut training = Training::start(&mut train(&killed));
    while !has_line(&killed, 2, "world_model") {
        assert!(training.is_running(), "the run has ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(training);
    assert!(!checkpoint(&killed, 2).exists(), "the kill came too late");
    succeeds(&mut resume(&killed));
    assert_same(&reproducible_files(&killed), &reproducible_files(&whole));
}

/// A number in the line of an epoch and phase of `metrics.jsonl`.
fn value(metrics: &str, epoch: u32, phase: &str, name: &str) -> f64 {
    let lines = (metrics.lines()).map(|line| serde_json::from_str(line).unwrap());
    let mut lines =
        lines.filter(|line: &serde_json::Value| line["epoch"] == epoch && line["phase"] == phase);
    let line = lines.next().expect("a line of the phase");
    line[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name} in {line}"))
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
    assert_every_phase_ran(&dir, 1, sizes);
    succeeds(rem().arg("eval").arg(&dir));
}

/// In the last epoch, with finite metrics, and with the lines of `config.toml` in `sizes`.
fn assert_every_phase_ran(dir: &Path, epoch: u32, sizes: &[&str]) {
    for phase in [
        "collect",
        "tokenizer",
        "world_model",
        "actor_critic",
        "evaluate",
    ] {
        assert!(has_line(dir, epoch, phase), "no {phase}");
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
}
