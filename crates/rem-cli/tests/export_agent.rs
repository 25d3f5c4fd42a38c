//! `rem export-agent` writes a small run directory that can be used but not trained on.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::web::Server;
use support::{
    SHORT, all_files, fails, finished, numbers, rem, resume, stdout, succeeds, temp_dir,
};

fn export(run: &Path, out: &Path, words: &str) -> Command {
    let mut command = rem();
    command.arg("export-agent").arg(run).arg("--out").arg(out);
    command.args(words.split_whitespace());
    command
}

#[test]
fn an_exported_agent_plays_and_records_its_origin() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let out = temp.path().join("agent");
    let mut command = export(run.dir(), &out, "--command");
    let printed = stdout(&succeeds(command.arg("rem train --preset debug")));
    assert!(printed.contains("agent of epoch 2"), "{printed}");

    // Weights of inference, each in half of its bytes, and none of the training state.
    let files = all_files(&out);
    let weights = |name: &str| format!("checkpoints/epoch-000002/{name}.safetensors");
    let of_run = all_files(run.dir());
    for component in ["tokenizer", "world_model", "actor_critic"] {
        let (small, full) = (&files[&weights(component)], &of_run[&weights(component)]);
        assert!(small.len() < full.len() * 6 / 10, "{component}");
    }
    assert!(
        !files.keys().any(|name| name.contains("optimizer")),
        "{:?}",
        files.keys()
    );
    for same in [
        "config.toml",
        "metrics.jsonl",
        "timing.jsonl",
        "scores.json",
        "media/epoch-000002-dream.png",
    ] {
        assert_eq!(files[same], of_run[same], "{same}");
    }
    assert!(!files.contains_key("media/epoch-000001-dream.png"));
    let protocol: serde_json::Value = serde_json::from_slice(&files["protocol.json"]).unwrap();
    assert_eq!(protocol["exported"]["command"], "rem train --preset debug");
    assert_eq!(protocol["exported"]["weights"], "bfloat16");
    assert_eq!(protocol["exported"]["run"], "run");
    assert_eq!(protocol["game"], "catch");

    // The agent plays, and its replay holds whole episodes.
    let json = stdout(&succeeds(rem().arg("eval").arg(&out).args([
        "--episodes",
        "3",
        "--json",
    ])));
    assert_eq!(numbers(&json, "returns").len(), 3);
    let episodes = stdout(&succeeds(rem().arg("episodes").arg(&out)));
    let rows: Vec<&str> = episodes.lines().skip(1).collect();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.contains("terminated")),
        "{episodes}"
    );
    let server = Server::watch(&out, "");
    let (status, dream) = server.get(
        "/api/runs/agent/dream?episode=0&step=0&length=16&temperature=1&seed=0",
        &[],
    );
    assert_eq!(status, 200, "{dream}");
    let (status, _) = server.get("/api/runs/agent/codebook", &[]);
    assert_eq!(status, 200);
}

#[test]
fn an_exported_agent_cannot_be_resumed_or_overwritten() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let out = temp.path().join("agent");
    succeeds(&mut export(run.dir(), &out, "--replay-steps 0"));
    assert_eq!(
        stdout(&succeeds(rem().arg("episodes").arg(&out)))
            .lines()
            .count(),
        1
    );
    let before = all_files(&out);
    let (error, hint) = fails(&mut resume(&out));
    assert!(error.contains("it is an exported agent"), "{error}");
    assert!(hint.contains("rem play"), "{hint}");
    let (error, _) = fails(&mut export(run.dir(), &out, ""));
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(all_files(&out), before);

    // An exported agent can be exported again, to the same weights.
    let again = temp.path().join("again");
    succeeds(&mut export(&out, &again, ""));
    let weights = "checkpoints/epoch-000002/world_model.safetensors";
    assert_eq!(all_files(&again)[weights], before[weights]);
}

#[test]
fn a_damaged_run_is_not_exported() {
    let run = finished(SHORT).changed(|dir| {
        let weights = dir.join("checkpoints/epoch-000002/tokenizer.safetensors");
        let mut bytes = fs::read(&weights).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(weights, bytes).unwrap();
    });
    let temp = temp_dir();
    let out = temp.path().join("agent");
    let (error, _) = fails(&mut export(run.dir(), &out, ""));
    assert!(error.contains("wrong checksum"), "{error}");
    assert!(!out.exists());
    succeeds(&mut export(run.dir(), &out, "--epoch 1"));
}
