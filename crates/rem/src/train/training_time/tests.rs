//! Sums over a schedule, and durations in words.

use super::*;

fn config(set: &[&str]) -> Config {
    let set: Vec<String> = set.iter().map(|s| (*s).into()).collect();
    Config::load("debug", &set).unwrap()
}

fn alone(alone: Seconds) -> StepTimes {
    let beside = None;
    StepTimes { alone, beside }
}

#[test]
fn batches_fit_the_budget() {
    assert_eq!(batch_within(1.0, 0.1, 64), 10);
    assert_eq!(batch_within(1.0, 0.001, 64), 64);
    // Slow machines measure two elements, not one, unless the batch has only one.
    assert_eq!(batch_within(1.0, 3.0, 64), 2);
    assert_eq!(batch_within(1.0, 3.0, 1), 1);
}

#[test]
fn times_of_elements_are_scaled_to_whole_batches() {
    let config = config(&["world_model.optimizer.batch_size=7"]);
    let mut asked = Vec::new();
    let times = Seconds::of(&config, &mut |work, full| {
        asked.push(full);
        if matches!(work, Work::Encode) {
            0.5
        } else {
            0.25
        }
    });
    assert_eq!(asked, [4, 7, 4, ENCODED]);
    assert_eq!(
        [
            times.tokenizer,
            times.world_model,
            times.actor_critic,
            times.frame
        ],
        [1.0, 1.75, 1.0, 0.5]
    );
    assert_eq!(times.of_one(&config, Work::Step(Phase::WorldModel)), 0.25);
    assert_eq!(times.of_one(&config, Work::Encode), 0.5);
}

/// The schedule of the paper: tokenizer from epoch 6 on, world model from 26, controller from 51, of 600.
#[test]
fn steps_of_the_papers_schedule_add_up() {
    let config = Config::load("atari100k", &["env.game=catch".into()]).unwrap();
    let times = Seconds {
        tokenizer: 1.0,
        world_model: 10.0,
        actor_critic: 5.0,
        frame: 0.0,
    };
    let total = alone(times).over_the_run(&config);
    assert_eq!(total.tokenizer, 595.0 * 200.0);
    assert_eq!(total.world_model, 575.0 * 200.0 * 10.0);
    assert_eq!(total.actor_critic, 550.0 * 100.0 * 5.0);
    assert_eq!(
        total.to_string(),
        "about 18 days (tokenizer 33 h, world model 13 days, controller 3.2 days)"
    );

    // The world model reads 128,000 frames per epoch and the controller 268,800: nearly all of the replay's
    // 100,000 in the end, and each is encoded once.
    let frames = Seconds {
        tokenizer: 0.0,
        world_model: 0.0,
        actor_critic: 0.0,
        frame: 1.0,
    };
    let encoded = alone(frames).over_the_run(&config);
    assert_eq!(encoded.tokenizer, 0.0);
    let in_replay: f64 = (26..=600).map(|e| 200.0 * f64::from(500.min(e))).sum();
    assert!(encoded.total() < in_replay && encoded.total() > 0.95 * in_replay);
    assert!(encoded.world_model > encoded.actor_critic);
}

/// Debug preset: the controller learns in epochs 3 and 4, beside tokenizer and world model.
#[test]
fn overlapping_phases_count_once() {
    let config = config(&["train.overlap_phases=true"]);
    let on_all = Seconds {
        tokenizer: 10.0,
        world_model: 100.0,
        actor_critic: 70.0,
        frame: 0.0,
    };
    let beside = Seconds {
        tokenizer: 15.0,
        world_model: 150.0,
        actor_critic: 110.0,
        frame: 0.0,
    };
    let times = StepTimes {
        alone: on_all,
        beside: Some(beside),
    };
    let total = times.over_the_run(&config);
    // Two steps per phase and epoch. Epochs 1 and 2: 20 and 220 seconds. Epochs 3 and 4: 330 seconds each, within
    // which the controller takes 220.
    assert_eq!(total.overlap, 440.0);
    assert_eq!(total.total(), 240.0 + 660.0);
    assert!(
        total
            .to_string()
            .ends_with(", 7 min of them at the same time)"),
        "{total}"
    );
    assert_eq!(alone(on_all).over_the_run(&config).overlap, 0.0);
}

/// A component that stops counts up to its last epoch, and no number of epochs takes long to add up.
#[test]
fn epochs_after_the_last_change_are_equal() {
    let config = config(&[
        "tokenizer.optimizer.stop_after=10",
        "train.epochs=4000000000",
    ]);
    let times = Seconds {
        tokenizer: 1.0,
        world_model: 1.0,
        actor_critic: 1.0,
        frame: 0.0,
    };
    let total = alone(times).over_the_run(&config);
    assert_eq!(total.tokenizer, 10.0 * 2.0);
    assert_eq!(total.world_model, (4e9 - 1.0) * 2.0);
    assert_eq!(total.actor_critic, (4e9 - 2.0) * 2.0);
}

#[test]
fn durations_have_two_digits() {
    let cases = [
        (601.0, "10 min"),
        (89.0 * 60.0, "89 min"),
        (90.0 * 60.0, "1.5 h"),
        (35_900.0, "10 h"),
        (47.0 * 3600.0, "47 h"),
        (2.0 * 86_400.0, "2.0 days"),
        (15.7 * 86_400.0, "16 days"),
    ];
    for (seconds, words) in cases {
        assert_eq!(rounded(seconds), words);
    }
}

#[test]
fn short_runs_are_not_estimated_and_long_ones_are() {
    assert_eq!(TrainingTime::measure(&config(&[]), None).unwrap(), None);
    let long = config(&["train.epochs=10000000"]);
    let time = TrainingTime::measure(&long, None)
        .unwrap()
        .expect("long enough");
    assert!(time.total() > SHORT);
    for part in [time.tokenizer, time.world_model, time.actor_critic] {
        assert!(part > 0.0, "{time:?}");
    }
}

/// Every network and controller has the inputs that it needs.
#[test]
fn every_variant_is_measured() {
    for variant in [
        "world_model.architecture=retnet",
        "world_model.architecture=transformer",
        "actor_critic.inputs=pixels",
        "actor_critic.inputs=codes",
        "tokenizer.encoder=whitened_patches",
        "world_model.embeddings=own",
        "precision=f32",
    ] {
        let long = config(&["train.epochs=10000000", variant]);
        let time = TrainingTime::measure(&long, None).unwrap();
        assert!(time.is_some(), "{variant}");
    }
}
