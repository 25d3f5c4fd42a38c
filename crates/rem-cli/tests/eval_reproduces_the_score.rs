//! A finished run has a score that `rem eval` reproduces, media files, a protocol and metrics for every phase.

mod support;

use std::fs;

use support::*;

#[test]
fn eval_reproduces_the_final_score_exactly() {
    for settings in [
        "--seed 3",
        "--game paddle --seed 4 --set evaluate.final_episodes=9",
    ] {
        let temp = temp_dir();
        let dir = temp.path().join("run");
        succeeds(&mut debug_run(&dir, settings));
        let before = all_files(&dir);
        let scores = fs::read_to_string(dir.join("scores.json")).unwrap();
        let last = &scores[scores.find("\"final\"").unwrap()..];

        let json = stdout(&succeeds(rem().arg("eval").arg(&dir).arg("--json")));
        assert_eq!(json.lines().count(), 1, "{json}");
        for key in ["epoch", "mean", "returns"] {
            assert_eq!(numbers(&json, key), numbers(last, key), "{key}");
        }
        assert_eq!(
            numbers(&json, "lengths").len(),
            numbers(last, "returns").len()
        );

        // Without `--json`, stdout is one line.
        let text = stdout(&succeeds(rem().arg("eval").arg(&dir)));
        let mean = format!("mean return {:.3}", numbers(last, "mean")[0]);
        assert!(text.contains(&mean) && text.lines().count() == 1, "{text}");
        // Evaluation does not modify the run.
        assert_same(&all_files(&dir), &before);
    }
}

#[test]
fn every_evaluation_writes_media() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, ""));
    let files = all_files(&dir);
    let images = files.keys().filter(|name| name.starts_with("media/"));
    let mut expected = Vec::new();
    for epoch in [2, 4] {
        for name in [
            "dream.gif",
            "dream.png",
            "episode.gif",
            "reconstructions.png",
        ] {
            expected.push(format!("media/epoch-{epoch:06}-{name}"));
        }
    }
    assert_eq!(images.cloned().collect::<Vec<_>>(), expected);
    for name in expected {
        let magic: &[u8] = match name.ends_with(".gif") {
            true => b"GIF89a",
            false => b"\x89PNG\r\n",
        };
        assert!(files[&name].starts_with(magic), "{name}");
    }
}

#[test]
fn scores_and_protocol_are_complete() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, "--seed 5"));
    let scores = fs::read_to_string(dir.join("scores.json")).unwrap();
    assert!(scores.contains("\"game\": \"catch\""), "{scores}");
    assert_eq!(numbers(&scores, "seed"), [5.0]);
    // Two evaluations, of two and four episodes; the second is the final one.
    let (evaluations, last) = scores.split_once("\"final\"").unwrap();
    assert_eq!(evaluations.matches("\"returns\"").count(), 2, "{scores}");
    assert_eq!(numbers(evaluations, "epoch"), [2.0]);
    assert_eq!(numbers(evaluations, "returns").len(), 2);
    assert_eq!(numbers(last, "epoch"), [4.0]);
    assert_eq!(numbers(last, "steps"), [120.0]);
    let returns = numbers(last, "returns");
    assert_eq!(returns.len(), 4);
    assert_eq!(numbers(last, "mean"), [returns.iter().sum::<f64>() / 4.0]);

    let protocol = fs::read_to_string(dir.join("protocol.json")).unwrap();
    for field in [
        "rem_version",
        "git_revision",
        "burn_version",
        "device",
        "threads",
        "precision",
        "game",
        "actions",
        "frame_size",
        "frame_skip",
        "sticky_actions",
        "max_noops_train",
        "max_noops_test",
        "end_on_life_loss_train",
        "end_on_life_loss_test",
        "max_steps_train",
        "max_steps_test",
        "evaluation_temperature",
        "final_episodes",
        "environment_steps",
        "perceptual_loss",
        "random_player",
        "scripted_player",
    ] {
        assert!(
            protocol.contains(&format!("\n  \"{field}\": ")),
            "no {field} in {protocol}"
        );
    }
    assert_eq!(numbers(&protocol, "threads"), [2.0]);
    assert_eq!(numbers(&protocol, "scripted_player"), [1.0]);
    assert!(protocol.contains("\"perceptual_loss\": false"));
}

#[test]
fn every_phase_logs_one_line_per_epoch_after_start_after() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let settings = "--set train.epochs=5 --set collect.epochs=4 --set evaluate.every=3 \
        --set tokenizer.optimizer.start_after=1 --set world_model.optimizer.start_after=2 \
        --set actor_critic.optimizer.start_after=3";
    succeeds(&mut debug_run(&dir, settings));
    let lines = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        let phase = |line: &str| {
            let (epoch, rest) = line.split_once(",\"phase\":\"").unwrap();
            let phase = rest.split('"').next().unwrap();
            format!("{} {phase}", epoch.strip_prefix("{\"epoch\":").unwrap())
        };
        text.lines().map(phase).collect()
    };
    let expected = [
        "1 collect",
        "2 collect",
        "2 tokenizer",
        "3 collect",
        "3 tokenizer",
        "3 world_model",
        "3 evaluate",
        "4 collect",
        "4 tokenizer",
        "4 world_model",
        "4 actor_critic",
        "5 tokenizer",
        "5 world_model",
        "5 actor_critic",
        "5 evaluate",
    ];
    assert_eq!(lines("metrics.jsonl"), expected);
    assert_eq!(lines("timing.jsonl"), expected);
    let metrics = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    let learning = metrics.lines().filter(|line| line.contains("\"loss\":"));
    let (mut count, with_norm) = (0, "\"grad_norm\":");
    for line in learning {
        assert!(line.contains(with_norm), "{line}");
        assert!(!line.contains("null"), "a value is not finite: {line}");
        count += 1;
    }
    assert_eq!(count, 9);
    // The last epoch collects nothing, so there are no validation losses.
    let world_model = metrics.lines().filter(|l| l.contains("\"world_model\""));
    let validated: Vec<bool> = world_model
        .map(|line| line.contains("\"validation/loss_rewards\":"))
        .collect();
    assert_eq!(validated, [true, true, false]);
}
