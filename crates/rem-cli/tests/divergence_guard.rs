//! On a loss or gradient that is not finite, a run retries from its last checkpoint, then stops and dumps the batch.

mod support;

use std::path::Path;

use support::*;

/// Trains until the guard stops the run; returns stderr.
fn train_until_stopped(dir: &Path, settings: &str) -> String {
    let output = output_of(&mut debug_run(dir, settings));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

/// Asserts two notes about a retry from `epoch`, one error, and a hint that names a dump with arrays in it.
fn assert_retried_and_stopped(text: &str, phase: &str, epoch: u32) {
    let back = format!("reloaded the checkpoint of epoch {epoch}");
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("note: ") && line.contains(&back))
        .collect();
    assert_eq!(notes.len(), 2, "{text}");
    assert!(notes.iter().all(|note| note.contains(phase)), "{text}");
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    let [hint, error] = last[..] else {
        panic!("{text}")
    };
    let expected = format!(
        "error: {phase} diverged 3 times in a row at epoch {}",
        epoch + 1
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(hint.starts_with("hint: "), "{hint}");
    let dump = hint.split('`').nth(1).expect("a file in backquotes");
    let bytes = std::fs::read(dump).unwrap();
    // Safetensors: header length, header, arrays.
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    assert!(bytes.len() > 8 + header, "{dump} holds no arrays");
}

#[test]
fn diverging_tokenizer_stops_at_the_initial_checkpoint() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let text = train_until_stopped(&dir, "--set tokenizer.optimizer.learning_rate=1e30");
    assert_retried_and_stopped(&text, "tokenizer", 0);
    assert!(checkpoint(&dir, 0).exists() && !checkpoint(&dir, 1).exists());
    succeeds(rem().arg("eval").arg(&dir).args(["--episodes", "2"]));
}

#[test]
fn diverging_controller_keeps_earlier_epochs() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let text = train_until_stopped(&dir, "--set actor_critic.optimizer.learning_rate=1e30");
    assert_retried_and_stopped(&text, "actor_critic", 2);
    assert!(checkpoint(&dir, 2).exists() && !checkpoint(&dir, 3).exists());

    // The last good checkpoint still reproduces its score.
    let scores = std::fs::read_to_string(dir.join("scores.json")).unwrap();
    let output = succeeds(
        rem()
            .arg("eval")
            .arg(&dir)
            .args(["--episodes", "2", "--json"]),
    );
    assert_eq!(numbers(&stdout(&output), "epoch"), [2.0]);
    assert_eq!(
        numbers(&stdout(&output), "returns"),
        numbers(&scores, "returns")
    );
}

#[test]
fn resumed_diverging_run_stops_the_same_way() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let text = train_until_stopped(&dir, "--set world_model.optimizer.learning_rate=1e30");
    assert_retried_and_stopped(&text, "world_model", 1);
    let before = reproducible_files(&dir);
    let output = output_of(&mut resume(&dir));
    assert_eq!(output.status.code(), Some(1));
    assert_retried_and_stopped(&stderr(&output), "world_model", 1);
    assert_same(&reproducible_files(&dir), &before);
}

/// Either side undoes the epoch of both.
#[test]
fn a_diverging_phase_stops_the_phase_beside_it() {
    for phase in ["world_model", "actor_critic"] {
        let temp = temp_dir();
        let dir = temp.path().join("run");
        let settings = format!(
            "--set train.overlap_phases=true --set world_model.optimizer.start_after=2 \
             --set {phase}.optimizer.learning_rate=1e30"
        );
        let text = train_until_stopped(&dir, &settings);
        assert_retried_and_stopped(&text, phase, 2);
        assert!(checkpoint(&dir, 2).exists() && !checkpoint(&dir, 3).exists());
    }
}
