//! A watcher with open pages takes less than 2% of the processor while a run trains, so the training keeps its speed.

#![cfg(target_os = "linux")]

mod support;

use std::io::Write;
use std::time::Instant;

use support::web::Server;
use support::{debug_run, place, start};

/// Seconds of processor time that a process has used. The kernel counts in hundredths.
fn processor_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

#[test]
fn a_watcher_takes_less_than_two_percent() {
    let place = place();
    let run = place.path().join("runs/one");
    std::fs::create_dir_all(place.path().join("runs")).unwrap();
    let server = Server::watch(&place.path().join("runs"), "");
    let settings = "--set train.epochs=60 --set collect.epochs=60 --set evaluate.every=0";
    let mut training = start(&mut debug_run(&run, settings));
    while !run.join("metrics.jsonl").exists() {
        std::thread::yield_now();
    }
    // Two pages that listen to it.
    let listeners: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = server.connect();
            let request = format!(
                "GET /api/events?runs=%5B%22one%22%5D HTTP/1.1\r\nHost: {}\r\n\r\n",
                server.host()
            );
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let (began, before) = (Instant::now(), processor_seconds(server.id()));
    assert!(training.wait().unwrap().success());
    let used = processor_seconds(server.id()) - before;
    let share = used / began.elapsed().as_secs_f64();
    drop(listeners);
    // What opening the pages takes at their start does not grow with the training.
    assert!(
        used < 0.03 || share < 0.02,
        "{:.1}% of one core",
        100.0 * share
    );
}
