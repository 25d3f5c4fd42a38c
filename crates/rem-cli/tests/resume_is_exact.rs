//! A run that is killed at any moment and resumed ends with the same bytes as one that was never stopped.

mod support;

use std::fs;
use std::path::Path;

use support::*;

/// Six epochs: five with collection, evaluations at 2, 4 and 6, dropout on.
const SETTINGS: &str = "--set train.epochs=6 --set collect.epochs=5 --set evaluate.every=2 --set world_model.dropout=0.1 \
    --set world_model.optimise.rate_falls_to=0.1 --set world_model.average=0.5";
const EPOCHS: u32 = 6;

/// Episodes reach over epochs, end with a life or are cut off.
const PADDLE: &str = "--game paddle --set env.max_steps.train=45 --set collect.steps_per_epoch=50";

fn uninterrupted(place: &Path, settings: &str) -> Files {
    let dir = place.join("uninterrupted");
    succeeds(&mut debug_run(&dir, settings));
    lasting_files(&dir)
}

#[test]
fn killed_in_the_middle_of_an_epoch_twice() {
    let place = place();
    let whole = uninterrupted(place.path(), SETTINGS);
    let dir = place.path().join("killed");
    killed_in(&dir, SETTINGS, &[(3, "tokenizer"), (5, "world_model")]);
    assert_same(&lasting_files(&dir), &whole);
}

/// Every way to see and to dream and every controller of the paper's ablations.
#[test]
fn killed_in_every_mode() {
    let modes = [
        "--set world_model.pop_mode=one_call",
        "--set tokenizer.sight=narrow --set tokenizer.quantiser_convs=false --set tokenizer.codebook_start=data \
         --set tokenizer.revive_after=1",
        "--set world_model.architecture=retnet",
        "--set world_model.architecture=transformer --set world_model.embeddings=own",
        "--set actor_critic.inputs=codes --set actor_critic.burn_in_inputs=observations",
        "--set actor_critic.inputs=pixels --set actor_critic.burn_in_inputs=observations",
    ];
    for mode in modes {
        let place = place();
        let settings = format!("{SETTINGS} {mode}");
        let whole = uninterrupted(place.path(), &settings);
        let dir = place.path().join("killed");
        killed_in(&dir, &settings, &[(3, "tokenizer"), (5, "world_model")]);
        assert_same(&lasting_files(&dir), &whole);
    }
}

/// What `auto` found faster is in the run's config, so that a resumed run has nothing to measure.
#[test]
fn a_measured_mode_is_kept() {
    let place = place();
    let dir = place.path().join("auto");
    let settings = format!("{SETTINGS} --set world_model.pop_mode=auto");
    let child = start(&mut debug_run(&dir, &settings));
    kill_when(child, || has_line(&dir, 3, "tokenizer"));
    let config = fs::read_to_string(dir.join("config.toml")).unwrap();
    let chosen = ["one_call", "two_calls"]
        .into_iter()
        .find(|mode| config.contains(&format!("pop_mode = \"{mode}\"")))
        .expect("a mode was chosen");
    let said = stderr(&succeeds(&mut resume(&dir)));
    assert!(said.contains("(auto: measured "), "{said}");
    let words = match chosen {
        "one_call" => "dreams: POP, one call a step",
        _ => "dreams: POP, two calls a step",
    };
    assert!(said.contains(words), "{said}");
    assert_eq!(fs::read_to_string(dir.join("config.toml")).unwrap(), config);

    // The same as a run that was told so.
    let told = place.path().join("told");
    let settings = format!("{SETTINGS} --set world_model.pop_mode={chosen}");
    succeeds(&mut debug_run(&told, &settings));
    let without_protocol = |dir: &Path| -> Files {
        let files = lasting_files(dir).into_iter();
        files.filter(|(name, _)| name != "protocol.json").collect()
    };
    assert_same(&without_protocol(&dir), &without_protocol(&told));
}

#[test]
fn killed_while_an_episode_reaches_over_epochs() {
    let place = place();
    let settings = format!("{SETTINGS} {PADDLE}");
    let whole = uninterrupted(place.path(), &settings);
    let chunks = whole.iter().filter(|(name, _)| name.starts_with("replay/"));
    let outcomes: Vec<Vec<u8>> = chunks.map(|(_, bytes)| outcomes(bytes)).collect();
    let (continues, ended, truncated) = (0, 1, 2);
    let open = |chunk: &Vec<u8>| chunk.last() == Some(&continues);
    assert!(outcomes.iter().any(open), "no episode reaches over epochs");
    assert!(outcomes.iter().any(|chunk| chunk.contains(&ended)));
    assert!(outcomes.iter().any(|chunk| chunk.contains(&truncated)));

    let dir = place.path().join("killed");
    let kills = [
        (2, "collect"),
        (3, "world_model"),
        (4, "tokenizer"),
        (5, "collect"),
    ];
    killed_in(&dir, &settings, &kills);
    assert_same(&lasting_files(&dir), &whole);
}

/// What became of each step of a replay chunk (its layout: `replay/chunks.rs`).
fn outcomes(chunk: &[u8]) -> Vec<u8> {
    let steps = u64::from_le_bytes(chunk[24..32].try_into().unwrap()) as usize;
    chunk[32 + 5 * steps..][..steps].to_vec()
}

#[test]
fn killed_while_a_checkpoint_is_written() {
    let place = place();
    let whole = uninterrupted(place.path(), SETTINGS);
    let dir = place.path().join("killed");
    let mut left_behind = 0;
    for epoch in 1..=EPOCHS {
        let beside = checkpoint(&dir, epoch).with_extension("tmp");
        // Each time with more of its files written: none yet, one, … up to all but the manifest.
        let written = || fs::read_dir(&beside).map(|entries| entries.count());
        let far_enough = || written().is_ok_and(|n| n as u32 >= epoch - 1);
        let mut command = match epoch {
            1 => debug_run(&dir, SETTINGS),
            _ => resume(&dir),
        };
        // Once its checkpoint is there the moment is gone.
        let over = || checkpoint(&dir, epoch).exists();
        kill_when(start(&mut command), || far_enough() || over());
        left_behind += u32::from(beside.exists());
    }
    assert!(
        left_behind >= 2,
        "only {left_behind} kills hit a checkpoint that was being written"
    );
    succeeds(&mut resume(&dir));
    assert_same(&lasting_files(&dir), &whole);
}

#[test]
fn killed_before_the_first_epoch_was_over() {
    let place = place();
    let whole = uninterrupted(place.path(), SETTINGS);
    let dir = place.path().join("killed");
    let child = start(&mut debug_run(&dir, SETTINGS));
    assert!(kill_when(child, || dir.join("config.toml").exists()));
    assert!(!checkpoint(&dir, 1).exists(), "the kill came too late");
    succeeds(&mut resume(&dir));
    assert_same(&lasting_files(&dir), &whole);
}

#[test]
fn killed_before_it_was_a_run_it_is_begun_anew() {
    let place = place();
    let whole = uninterrupted(place.path(), SETTINGS);
    let dir = place.path().join("killed");
    let child = start(&mut debug_run(&dir, SETTINGS));
    assert!(kill_when(child, || dir.join("checkpoints").exists()));
    if !dir.join("config.toml").exists() {
        let (error, _) = refused(&mut resume(&dir));
        assert!(error.contains("there is no run in it"), "{error}");
        succeeds(&mut debug_run(&dir, SETTINGS));
    } else {
        succeeds(&mut resume(&dir));
    }
    assert_same(&lasting_files(&dir), &whole);
}

#[test]
fn killed_after_the_last_checkpoint_before_the_old_one_was_dropped() {
    let place = place();
    let dir = place.path().join("run");
    succeeds(&mut debug_run(&dir, SETTINGS));
    let whole = lasting_files(&dir);
    // What such a kill leaves: three checkpoints, the oldest perhaps half removed, and older scores.
    copy_dir(&checkpoint(&dir, EPOCHS - 1), &checkpoint(&dir, EPOCHS - 2));
    fs::remove_file(checkpoint(&dir, EPOCHS - 2).join("manifest.json")).unwrap();
    fs::remove_file(dir.join("scores.json")).unwrap();
    succeeds(&mut resume(&dir));
    assert_same(&lasting_files(&dir), &whole);
}

#[test]
fn killed_after_going_back_to_an_older_epoch() {
    let place = place();
    let dir = place.path().join("run");
    succeeds(&mut debug_run(&dir, SETTINGS));
    let whole = lasting_files(&dir);
    let back = (EPOCHS - 1).to_string();
    let child = start(resume(&dir).args(["--from-epoch", &back]));
    // The lines of the last epoch go and come back.
    let mut gone = false;
    kill_when(child, || {
        gone |= !has_line(&dir, EPOCHS, "evaluate");
        gone && has_line(&dir, EPOCHS, "tokenizer")
    });
    succeeds(&mut resume(&dir));
    assert_same(&lasting_files(&dir), &whole);
}

#[test]
fn resuming_a_finished_run_does_nothing() {
    let place = place();
    let dir = place.path().join("run");
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
fn two_processes_cannot_work_on_one_run() {
    let place = place();
    let dir = place.path().join("run");
    let settings = "--set train.epochs=1000 --set collect.epochs=1000";
    let first = start(&mut debug_run(&dir, settings));
    assert!(kill_when(first, || {
        if !has_line(&dir, 1, "collect") {
            return false;
        }
        let (error, _) = refused(&mut resume(&dir));
        assert!(error.contains("another process works on it"), "{error}");
        let (error, _) = refused(&mut debug_run(&dir, settings));
        assert!(error.contains("there is a run in it already"), "{error}");
        true
    }));
    // The lock died with its process: the next one is let in.
    let second = start(&mut resume(&dir));
    assert!(kill_when(second, || has_line(&dir, 2, "collect")));
}
