//! The server of `rem watch` shows the readable parts of damaged runs, with an error message for the others.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use support::web::Server;
use support::{BRIEF, checkpoint, corrupt_outcome, finished};

/// If the last checkpoint is damaged, an older one is used. Without any, episodes still have frames.
#[test]
fn older_checkpoint_replaces_a_damaged_one() {
    let run = finished(BRIEF);
    let damage = |dir: &Path, epoch: u32| {
        let file = checkpoint(dir, epoch).join("world_model.safetensors");
        fs::write(file, "damaged").unwrap();
    };
    let last = run.changed(|dir| damage(dir, 2));
    let server = Server::watch(last.dir(), "");
    let (status, response) = server.get("/api/runs/run/codebook", &[]);
    assert!(
        status == 200 && response.contains("\"epoch\":1,"),
        "{status}"
    );
    let (status, response) = server.get("/api/runs/run/episodes/0", &[]);
    assert!(status == 200 && response.contains("\"epoch\":1,\"problem\":null"));
    assert!(!response.contains("\"value\":null"));

    let all = run.changed(|dir| (1..=2).for_each(|epoch| damage(dir, epoch)));
    let server = Server::watch(all.dir(), "");
    let (status, response) = server.get("/api/runs/run/codebook", &[]);
    assert!(
        status == 409 && response.contains("epoch-000002"),
        "{response}"
    );
    let (status, response) = server.get("/api/runs/run/episodes/0", &[]);
    assert_eq!(status, 200);
    assert!(
        response.contains("\"epoch\":null,\"problem\":\"") && response.contains("\"value\":null")
    );
    assert!(response.contains("\"actions\":[\"noop\""));
}

#[test]
fn damaged_replay_chunks_are_skipped() {
    let run = finished(BRIEF);
    let bad = run.changed(|dir| corrupt_outcome(&dir.join("replay/epoch-000002.chunk")));
    let server = Server::watch(bad.dir(), "");
    let (status, response) = server.get("/api/runs/run/episodes", &[]);
    assert!(
        status == 200 && response.contains("impossible outcome"),
        "{response}"
    );
    assert!(response.contains("\"epoch\":1,") && !response.contains("\"epoch\":2,"));
}

#[test]
fn readable_files_of_a_damaged_run_are_shown() {
    let whole = finished(BRIEF);
    let damaged = whole.changed(|dir| {
        fs::write(dir.join("config.toml"), "seed = ").unwrap();
        let mut log = fs::OpenOptions::new()
            .append(true)
            .open(dir.join("metrics.jsonl"))
            .unwrap();
        log.write_all(b"{\"epoch\":3,\"pha").unwrap();
        fs::remove_dir_all(dir.join("checkpoints")).unwrap();
    });
    let server = Server::watch(damaged.dir(), "");
    let (status, response) = server.get("/api/runs/run", &[]);
    assert_eq!(status, 200);
    assert!(
        response.contains("not valid TOML") && response.contains("\"random_player\""),
        "{response}"
    );
    let (status, response) = server.get("/api/runs/run/codebook", &[]);
    assert!(
        status == 409 && response.contains("no checkpoint yet"),
        "{response}"
    );
    assert_eq!(server.get("/api/runs/run/episodes", &[]).0, 200);
    let (status, response) = server.get("/api/runs/run/episodes/0", &[]);
    assert!(status == 200 && response.contains("\"problem\":\""));
}
