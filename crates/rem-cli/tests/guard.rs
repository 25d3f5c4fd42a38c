//! A loss or gradient that is not finite: the run goes back, tries again, and gives up with the batch on the disk.

mod support;

use std::path::Path;

use support::*;

/// Trains until the guard gives up; returns what was said.
fn gives_up(dir: &Path, settings: &str) -> String {
    let output = outcome(&mut debug_run(dir, settings));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

/// Two notes of going back to `epoch`, one error, and a hint that names a dump with something in it.
fn says_what_it_did(said: &str, phase: &str, epoch: u32) {
    let back = format!("back to the checkpoint of epoch {epoch}");
    let notes: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("note: ") && line.contains(&back))
        .collect();
    assert_eq!(notes.len(), 2, "{said}");
    assert!(notes.iter().all(|note| note.contains(phase)), "{said}");
    let last: Vec<&str> = said.lines().rev().take(2).collect();
    let [hint, error] = last[..] else {
        panic!("{said}")
    };
    let expected = format!(
        "error: {phase} diverged 3 times in a row at epoch {}",
        epoch + 1
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(hint.starts_with("hint: "), "{hint}");
    let dump = hint.split('`').nth(1).expect("a file in backquotes");
    let bytes = std::fs::read(dump).unwrap();
    // Safetensors: the length of the header, the header, the arrays.
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    assert!(bytes.len() > 8 + header, "{dump} holds no arrays");
}

#[test]
fn a_tokenizer_that_diverges_at_once() {
    let place = place();
    let dir = place.path().join("run");
    let said = gives_up(&dir, "--set tokenizer.optimise.learning_rate=1e30");
    says_what_it_did(&said, "tokenizer", 0);
    assert!(checkpoint(&dir, 0).exists() && !checkpoint(&dir, 1).exists());
    succeeds(rem().arg("eval").arg(&dir).args(["--episodes", "2"]));
}

#[test]
fn a_controller_that_diverges_after_good_epochs() {
    let place = place();
    let dir = place.path().join("run");
    let said = gives_up(&dir, "--set actor_critic.optimise.learning_rate=1e30");
    says_what_it_did(&said, "actor_critic", 2);
    assert!(checkpoint(&dir, 2).exists() && !checkpoint(&dir, 3).exists());

    // The good epochs are as they were: the checkpoint plays as well as it did when it was scored.
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
fn a_world_model_that_diverges_and_is_resumed_says_the_same_again() {
    let place = place();
    let dir = place.path().join("run");
    let said = gives_up(&dir, "--set world_model.optimise.learning_rate=1e30");
    says_what_it_did(&said, "world_model", 1);
    let before = lasting_files(&dir);
    let output = outcome(&mut resume(&dir));
    assert_eq!(output.status.code(), Some(1));
    says_what_it_did(&stderr(&output), "world_model", 1);
    assert_same(&lasting_files(&dir), &before);
}
