//! Run directories with the files that a report reads.
#![allow(dead_code)] // not every test uses every item

use std::fs;
use std::path::{Path, PathBuf};

use rem_report::{Report, Request};
use serde_json::{Value, json};

/// A run to write to disk.
pub struct Run<'a> {
    pub game: &'a str,
    pub seed: u64,
    /// Steps and score of each evaluation.
    pub evaluations: &'a [(u64, f64)],
    pub finished: bool,
}

impl Run<'_> {
    /// Writes `scores.json`, `protocol.json` and `config.toml` into `dir`: the protocol with `changes`, the config of the
    /// preset `atari100k`.
    pub fn write(&self, dir: &Path, changes: Value) {
        fs::create_dir_all(dir).unwrap();
        let score = |(epoch, (steps, mean)): (usize, &(u64, f64))| json!({"epoch": epoch, "steps": steps, "mean": mean, "returns": [mean - 1.0, mean + 1.0]});
        let evaluations: Vec<_> = self.evaluations.iter().enumerate().map(score).collect();
        let last = if self.finished {
            evaluations.last().cloned()
        } else {
            None
        };
        let scores = json!({
            "game": self.game, "seed": self.seed, "evaluations": evaluations, "final": last,
        });
        fs::write(dir.join("scores.json"), scores.to_string()).unwrap();
        // The sizes of the minimal action sets.
        let actions = match self.game {
            "boxing" => 18,
            "ms_pacman" => 9,
            _ => 6,
        };
        let mut protocol = json!({
            "rem_version": "0.1.0", "git_revision": "0123abc", "burn_version": "0.22.1", "device": "flex",
            "threads": 2, "precision": "f32", "game": self.game, "actions": vec!["noop"; actions],
            "frame_size": 64, "frame_skip": 4, "sticky_actions": 0.0, "max_noops_train": 30,
            "max_noops_test": 1, "ale_version": "0.12.1", "end_on_life_loss_train": true,
            "end_on_life_loss_test": false, "max_steps_train": 20000, "max_steps_test": 108000,
            "rewards_in_scores": "unclipped", "rewards_in_world_model": "sign",
            "evaluation_temperature": 0.5, "final_episodes": 100, "environment_steps": 100000,
            "perceptual_loss": true, "perceptual_crc32": 7, "random_player": 0.25,
            "scripted_player": null, "baseline_episodes": 200,
        });
        for (key, value) in changes.as_object().unwrap() {
            protocol[key] = value.clone();
        }
        fs::write(dir.join("protocol.json"), protocol.to_string()).unwrap();
        let game = format!("game = \"{}\"", self.game);
        let config = ATARI100K.replace("game = \"breakout\"", &game);
        fs::write(dir.join("config.toml"), config).unwrap();
    }
}

const ATARI100K: &str = include_str!("../../../../configs/atari100k.toml");

/// Replaces a part of the `config.toml` of a run.
pub fn change_config(dir: &Path, from: &str, to: &str) {
    let path = dir.join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Writes a `metrics.jsonl` of 600 epochs with an evaluation every 50.
pub fn write_losses(dir: &Path, training: f64, test: f64) {
    let mut log = String::new();
    for epoch in 26..=600 {
        let more = 4.0 / f64::from(epoch - 25);
        let line = json!({"epoch": epoch, "phase": "world_model", "loss_obs": training + more, "validation/loss_obs": 9.0});
        log.push_str(&format!("{line}\n"));
        if epoch % 50 == 0 {
            let line = json!({"epoch": epoch, "phase": "evaluate", "mean_return": 1.0, "test/loss_obs": test + more});
            log.push_str(&format!("{line}\n"));
        }
    }
    fs::write(dir.join("metrics.jsonl"), log).unwrap();
}

/// A directory `ours` with three seeds of three games of the benchmark, one of them not finished, and two runs of `catch`.
pub fn runs(place: &Path) -> PathBuf {
    let dir = place.join("ours");
    for (game, human) in [("pong", 14.6), ("boxing", 12.1), ("ms_pacman", 6951.6)] {
        for seed in 1..=3 {
            let fraction = 0.2 + 0.2 * seed as f64;
            let evaluations: Vec<_> = (1..=5)
                .map(|n| (n * 20_000, human * fraction * n as f64 / 5.0))
                .collect();
            let run = Run {
                game,
                seed,
                evaluations: &evaluations,
                finished: !(game == "ms_pacman" && seed == 3),
            };
            run.write(&dir.join(format!("{game}-seed{seed}")), json!({}));
        }
    }
    for seed in 1..=2 {
        let run = Run {
            game: "catch",
            seed,
            evaluations: &[(1000, -0.5), (2000, 0.25), (3000, 1.0)],
            finished: true,
        };
        let own = json!({"frame_skip": 1, "environment_steps": 9600, "scripted_player": 1.0, "ale_version": null});
        run.write(&dir.join(format!("catch-seed{seed}")), own);
    }
    dir
}

/// A report with few replicates, for tests that do not check intervals.
pub fn quick(inputs: &[&Path], against: &[&str]) -> rem_report::Result<Report> {
    let request = Request {
        inputs: inputs.iter().map(|path| path.to_path_buf()).collect(),
        against: Some(against.iter().map(|name| (*name).to_owned()).collect()),
        replicates: 200,
        ..Request::default()
    };
    request.report()
}
