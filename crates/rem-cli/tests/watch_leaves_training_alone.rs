//! A watcher with open pages takes less than 2% of the processor time that the training beside it takes.
//! `scripts/compare-watched` measures what the training loses by it.

#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use support::web::Server;
use support::{Training, debug_run, place};

/// Seconds of processor time that a process has used. The kernel counts in hundredths.
fn processor_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

/// Long enough for the kernel's hundredths of a second to tell a percent.
const WATCHED: Duration = Duration::from_secs(12);

#[test]
fn a_watcher_takes_less_than_two_percent() {
    let place = place();
    let run = place.path().join("runs/one");
    std::fs::create_dir_all(place.path().join("runs")).unwrap();
    let server = Server::watch(&place.path().join("runs"), "");
    // Epochs of about a second, as short as those of a real run may be; the preset's own are many a second.
    let settings = "--set train.epochs=100000 --set collect.epochs=60 --set evaluate.every=0 \
                    --set world_model.optimise.start_after=0 \
                    --set world_model.optimise.steps_per_epoch=300";
    let mut training = Training::start(&mut debug_run(&run, settings));
    while !run.join("metrics.jsonl").exists() {
        std::thread::yield_now();
    }
    // Two pages that listen to it, and one with the list of runs, as the page asks for it.
    for _ in 0..2 {
        let (_, mut stream) = server.listen("one");
        std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    }
    // What opening the pages takes does not grow with the training.
    std::thread::sleep(Duration::from_secs(1));
    let both = [server.id(), training.id()];
    let used = || both.map(processor_seconds);
    let (began, before) = (Instant::now(), used());
    while began.elapsed() < WATCHED {
        assert_eq!(server.get("/api/runs", &[]).0, 200);
        std::thread::sleep(Duration::from_secs(3));
    }
    assert!(training.goes_on(), "there was no training to be watched");
    // Both as processor time: a slow or busy machine changes them alike.
    let after = used();
    let [watcher, trainer] = [0, 1].map(|i| after[i] - before[i]);
    assert!(
        watcher < 0.02 * trainer,
        "{watcher:.2} s of the watcher, {trainer:.2} s of the training"
    );
}
