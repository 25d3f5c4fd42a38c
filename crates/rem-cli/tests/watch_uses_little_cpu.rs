//! `rem watch` with open pages uses less than 2% of the CPU time of concurrent training.
//! `scripts/compare-watched` measures the slowdown of the training.

#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use support::web::Server;
use support::{Training, debug_run, temp_dir};

/// CPU time of a process in seconds. The kernel counts in hundredths.
fn cpu_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

/// Long enough to resolve 1% with the kernel's 10 ms ticks.
const DURATION: Duration = Duration::from_secs(12);

#[test]
fn watching_uses_less_than_two_percent_of_the_cpu_time_of_training() {
    let temp = temp_dir();
    let run = temp.path().join("runs/one");
    std::fs::create_dir_all(temp.path().join("runs")).unwrap();
    let server = Server::watch(&temp.path().join("runs"), "");
    // Epochs of about a second, the shortest of real runs. The preset's own are much shorter.
    let settings = "--set train.epochs=100000 --set collect.epochs=60 --set evaluate.every=0 \
                    --set world_model.optimizer.start_after=0 \
                    --set world_model.optimizer.steps_per_epoch=300";
    let mut training = Training::start(&mut debug_run(&run, settings));
    while !run.join("metrics.jsonl").exists() {
        std::thread::yield_now();
    }
    // Two pages with an event stream, and one with the list of runs.
    for _ in 0..2 {
        let (_, mut stream) = server.listen("one");
        std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    }
    // Exclude the one-time cost of opening the pages.
    std::thread::sleep(Duration::from_secs(1));
    let both = [server.id(), training.id()];
    let used = || both.map(cpu_seconds);
    let (started, before) = (Instant::now(), used());
    while started.elapsed() < DURATION {
        assert_eq!(server.get("/api/runs", &[]).0, 200);
        std::thread::sleep(Duration::from_secs(3));
    }
    assert!(training.is_running(), "the training ended");
    // Both are CPU times, so a slow or busy machine changes them alike.
    let after = used();
    let [watcher, trainer] = [0, 1].map(|i| after[i] - before[i]);
    assert!(
        watcher < 0.02 * trainer,
        "watcher: {watcher:.2} s, training: {trainer:.2} s"
    );
}
