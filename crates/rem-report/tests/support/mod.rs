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
    /// Writes `scores.json` and `protocol.json` into `dir`, the latter with `changes`.
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
        let mut protocol = json!({
            "rem_version": "0.1.0", "git_revision": "0123abc", "burn_version": "0.22.1", "device": "flex",
            "threads": 2, "precision": "f32", "game": self.game, "actions": ["noop", "fire"],
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
    }
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
