//! A run that is killed at any moment and resumed writes the same bytes as an uninterrupted one.

mod support;

use std::fs;
use std::path::Path;

use support::*;

/// Six epochs: five with collection, evaluations at 2, 4 and 6, dropout on.
const SETTINGS: &str = "--set train.epochs=6 --set collect.epochs=5 --set evaluate.every=2 --set world_model.dropout=0.1 \
    --set world_model.optimizer.final_lr_fraction=0.1 --set world_model.weight_averaging=0.5";
const EPOCHS: u32 = 6;

/// Episodes span epochs, and end by life loss or truncation.
const PADDLE: &str = "--game paddle --set env.max_steps.train=45 --set collect.steps_per_epoch=50";

fn uninterrupted(temp: &Path, settings: &str) -> Files {
    let dir = temp.join("uninterrupted");
    succeeds(&mut debug_run(&dir, settings));
    reproducible_files(&dir)
}

#[test]
fn exact_after_two_kills_within_epochs() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path(), SETTINGS);
    let dir = temp.path().join("killed");
    kill_and_resume(&dir, SETTINGS, &[(3, "tokenizer"), (5, "world_model")]);
    assert_same(&reproducible_files(&dir), &whole);
}

/// Every tokenizer, imagination mode and controller of the paper's ablations, and every setting with a state of its own.
#[test]
fn exact_in_every_mode() {
    let modes = [
        "--set world_model.architecture.mode=one_call",
        "--set tokenizer.encoder=whitened_patches --set tokenizer.codebook_init=data \
         --set tokenizer.dead_code_reset_after=1",
        "--set world_model.architecture=retnet",
        "--set world_model.architecture=transformer --set world_model.embeddings=own",
        "--set actor_critic.inputs=codes",
        "--set actor_critic.inputs=pixels",
        "--set world_model.rewards=hl_gauss --set actor_critic.values=hl_gauss",
        "--set actor_critic.slow_critic=target --set actor_critic.uniform_mix=0.01",
        "--set actor_critic.slow_critic=regularizer --set actor_critic.values=hl_gauss",
        "--set world_model.reward_head_input=predicted_observation",
        "--set world_model.prioritized_fraction=0.5 --set world_model.optimizer.steps_per_epoch=5",
        "--set tokenizer.vocabulary=512 --set tokenizer.quantizer=finite_scalar",
        "--set tokenizer.random_shift=3 --set world_model.random_shift=2",
        "--set world_model.ensemble_heads=2 --set actor_critic.curiosity_weight=1",
        "--set world_model.architecture=pop_attention",
        // A window that is full, and one that is not.
        "--set actor_critic.return_scaling=quantile_range --set actor_critic.return_scaling.window=3 \
         --set actor_critic.return_scaling.floor=0.001",
        "--set actor_critic.return_scaling=quantile_range --set actor_critic.return_scaling.floor=0.001",
    ];
    for mode in modes {
        let temp = temp_dir();
        let settings = format!("{SETTINGS} {mode}");
        let whole = uninterrupted(temp.path(), &settings);
        let dir = temp.path().join("killed");
        kill_and_resume(&dir, &settings, &[(3, "tokenizer"), (5, "world_model")]);
        assert_same(&reproducible_files(&dir), &whole);
    }
}

/// Kills hit two phases at once: the controller's takes longest, so it runs when the world model's is logged.
#[test]
fn exact_when_phases_overlap() {
    let temp = temp_dir();
    let settings = format!(
        "{SETTINGS} --set train.overlap_phases=true --set actor_critic.optimizer.steps_per_epoch=20 \
         --set tokenizer.optimizer.stop_after=4 --set tokenizer.codebook_init=data \
         --set tokenizer.dead_code_reset_after=1 --set world_model.prioritized_fraction=0.5 \
         --set actor_critic.slow_critic=target --set actor_critic.return_scaling=quantile_range"
    );
    let whole = uninterrupted(temp.path(), &settings);
    let dir = temp.path().join("killed");
    let kills = [
        (3, "tokenizer"),
        (3, "world_model"),
        (4, "tokenizer"),
        (5, "world_model"),
    ];
    kill_and_resume(&dir, &settings, &kills);
    assert_same(&reproducible_files(&dir), &whole);
}

/// A run's config stores the mode that `auto` selected, so that resume does not measure again.
#[test]
fn resume_keeps_the_measured_pop_mode() {
    let temp = temp_dir();
    let dir = temp.path().join("auto");
    let settings = format!("{SETTINGS} --set world_model.architecture.mode=auto");
    let child = start(&mut debug_run(&dir, &settings));
    kill_when(child, || has_line(&dir, 3, "tokenizer"));
    let config = fs::read_to_string(dir.join("config.toml")).unwrap();
    let chosen = ["one_call", "two_calls"]
        .into_iter()
        .find(|mode| config.contains(&format!("\nmode = \"{mode}\"\n")))
        .expect("a mode is set");
    let text = stderr(&succeeds(&mut resume(&dir)));
    assert!(text.contains("(auto: measured "), "{text}");
    let words = match chosen {
        "one_call" => "imagination: POP, one call per step",
        _ => "imagination: POP, two calls per step",
    };
    assert!(text.contains(words), "{text}");
    assert_eq!(fs::read_to_string(dir.join("config.toml")).unwrap(), config);

    // Identical to a run with that mode in its config.
    let explicit = temp.path().join("explicit");
    let settings = format!("{SETTINGS} --set world_model.architecture.mode={chosen}");
    succeeds(&mut debug_run(&explicit, &settings));
    let without_protocol = |dir: &Path| -> Files {
        let files = reproducible_files(dir).into_iter();
        files.filter(|(name, _)| name != "protocol.json").collect()
    };
    assert_same(&without_protocol(&dir), &without_protocol(&explicit));
}

#[test]
fn exact_when_an_episode_spans_epochs() {
    let temp = temp_dir();
    let settings = format!("{SETTINGS} {PADDLE}");
    let whole = uninterrupted(temp.path(), &settings);
    let chunks = whole.iter().filter(|(name, _)| name.starts_with("replay/"));
    let outcomes: Vec<Vec<u8>> = chunks.map(|(_, bytes)| outcomes(bytes)).collect();
    let (running, terminated, truncated) = (0, 1, 2);
    let open = |chunk: &Vec<u8>| chunk.last() == Some(&running);
    assert!(outcomes.iter().any(open), "no episode spans epochs");
    assert!(outcomes.iter().any(|chunk| chunk.contains(&terminated)));
    assert!(outcomes.iter().any(|chunk| chunk.contains(&truncated)));

    let dir = temp.path().join("killed");
    let kills = [
        (2, "collect"),
        (3, "world_model"),
        (4, "tokenizer"),
        (5, "collect"),
    ];
    kill_and_resume(&dir, &settings, &kills);
    assert_same(&reproducible_files(&dir), &whole);
}

/// The outcome of each step of a replay chunk (layout: `replay/chunks.rs`).
fn outcomes(chunk: &[u8]) -> Vec<u8> {
    let steps = u64::from_le_bytes(chunk[24..32].try_into().unwrap()) as usize;
    chunk[32 + 5 * steps..][..steps].to_vec()
}

#[test]
fn exact_after_kills_while_writing_checkpoints() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path(), SETTINGS);
    let dir = temp.path().join("killed");
    let mut interrupted = 0;
    for epoch in 1..=EPOCHS {
        let unfinished = checkpoint(&dir, epoch).with_extension("tmp");
        // Kill later each time: with no file written, one, … up to all but the manifest.
        let written = || fs::read_dir(&unfinished).map(|entries| entries.count());
        let far_enough = || written().is_ok_and(|n| n as u32 >= epoch - 1);
        let mut command = match epoch {
            1 => debug_run(&dir, SETTINGS),
            _ => resume(&dir),
        };
        // Too late once the checkpoint exists.
        let over = || checkpoint(&dir, epoch).exists();
        kill_when(start(&mut command), || far_enough() || over());
        interrupted += u32::from(unfinished.exists());
    }
    assert!(
        interrupted >= 2,
        "only {interrupted} kills interrupted a checkpoint"
    );
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &whole);
}

#[test]
fn exact_after_a_kill_in_the_first_epoch() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path(), SETTINGS);
    let dir = temp.path().join("killed");
    let child = start(&mut debug_run(&dir, SETTINGS));
    assert!(kill_when(child, || dir.join("config.toml").exists()));
    assert!(!checkpoint(&dir, 1).exists(), "the kill came too late");
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &whole);
}

#[test]
fn exact_after_a_kill_before_the_run_is_initialized() {
    let temp = temp_dir();
    let whole = uninterrupted(temp.path(), SETTINGS);
    let dir = temp.path().join("killed");
    let child = start(&mut debug_run(&dir, SETTINGS));
    assert!(kill_when(child, || dir.join("checkpoints").exists()));
    if !dir.join("config.toml").exists() {
        let (error, _) = fails(&mut resume(&dir));
        assert!(error.contains("does not contain a run"), "{error}");
        succeeds(&mut debug_run(&dir, SETTINGS));
    } else {
        succeeds(&mut resume(&dir));
    }
    assert_same(&reproducible_files(&dir), &whole);
}

#[test]
fn exact_after_a_kill_before_old_checkpoints_are_deleted() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, SETTINGS));
    let whole = reproducible_files(&dir);
    // State after such a kill: three checkpoints, the oldest partly deleted, and no current scores.
    copy_dir(&checkpoint(&dir, EPOCHS - 1), &checkpoint(&dir, EPOCHS - 2));
    fs::remove_file(checkpoint(&dir, EPOCHS - 2).join("manifest.json")).unwrap();
    fs::remove_file(dir.join("scores.json")).unwrap();
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &whole);
}

#[test]
fn exact_after_a_kill_during_resume_from_an_older_epoch() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, SETTINGS));
    let whole = reproducible_files(&dir);
    let back = (EPOCHS - 1).to_string();
    let child = start(resume(&dir).args(["--from-epoch", &back]));
    // The lines of the last epoch disappear and are written again.
    let mut gone = false;
    kill_when(child, || {
        gone |= !has_line(&dir, EPOCHS, "evaluate");
        gone && has_line(&dir, EPOCHS, "tokenizer")
    });
    succeeds(&mut resume(&dir));
    assert_same(&reproducible_files(&dir), &whole);
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    succeeds(&mut debug_run(&dir, ""));
    let before = all_files(&dir);
    let output = succeeds(&mut resume(&dir));
    assert_same(&all_files(&dir), &before);
    assert!(
        stdout(&output).contains("mean return"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn run_directory_is_locked() {
    let temp = temp_dir();
    let dir = temp.path().join("run");
    let settings = "--set train.epochs=1000 --set collect.epochs=1000";
    let first = start(&mut debug_run(&dir, settings));
    assert!(kill_when(first, || {
        if !has_line(&dir, 1, "collect") {
            return false;
        }
        let (error, _) = fails(&mut resume(&dir));
        assert!(error.contains("another process is using it"), "{error}");
        let (error, _) = fails(&mut debug_run(&dir, settings));
        assert!(error.contains("already contains a run"), "{error}");
        true
    }));
    // The lock is released when its process dies.
    let second = start(&mut resume(&dir));
    assert!(kill_when(second, || has_line(&dir, 2, "collect")));
}
