//! With `train.overlap_phases` two phases report their steps at the same time.

use std::collections::BTreeMap;

use rem::train::Event;
use rem::{Config, Trainer};

#[test]
fn every_step_is_reported_with_its_phase_and_in_order() {
    let set = [
        "train.overlap_phases=true",
        "threads=2",
        "world_model.optimizer.steps_per_epoch=7",
        "actor_critic.optimizer.steps_per_epoch=5",
    ];
    let config = Config::load("debug", &set.map(String::from)).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let trainer = Trainer::named(config).unwrap();
    let trainer = trainer.start(temp.path().join("run")).unwrap();
    // The steps done of each running phase, and the finished phases of the epoch.
    let mut running: BTreeMap<&str, usize> = BTreeMap::new();
    let mut finished: Vec<&str> = Vec::new();
    let mut most_running = 0;
    trainer
        .train(&mut |event| match event {
            Event::Epoch => finished.clear(),
            Event::Phase { phase, .. } => {
                assert_eq!(running.insert(phase, 0), None, "{phase} runs twice");
                most_running = most_running.max(running.len());
            }
            Event::Step { phase, done } => {
                let before = running.insert(phase, done).expect("the phase runs");
                match phase {
                    "collect" | "evaluate" => assert!(before <= done, "{phase}"),
                    _ => assert_eq!(before + 1, done, "{phase}"),
                }
            }
            Event::PhaseDone { phase, steps, .. } => {
                let done = running.remove(phase);
                assert_eq!(done, Some(steps), "{phase}");
                finished.push(phase);
            }
            Event::EpochDone { epoch: 3, .. } => {
                let expected = ["collect", "tokenizer", "world_model", "actor_critic"];
                assert_eq!(finished, expected);
                assert!(running.is_empty());
            }
            _ => {}
        })
        .unwrap();
    assert_eq!(most_running, 2);
}
