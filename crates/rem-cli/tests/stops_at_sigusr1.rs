//! `rem train` stops at SIGUSR1, which schedulers send before a time limit, at once and with a message. The resumed run
//! writes the same bytes as an uninterrupted one.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use support::study::{kill, pid_of};
use support::*;

const SETTINGS: &str = "--set train.epochs=6 --set collect.epochs=5 --set evaluate.every=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0";

#[test]
fn a_signal_stops_a_run_and_resume_is_exact() {
    let temp = temp_dir();
    let whole = temp.path().join("whole");
    succeeds(&mut debug_run(&whole, SETTINGS));
    for (i, signal) in ["USR1", "TERM"].into_iter().enumerate() {
        let dir = temp.path().join(signal);
        let log = temp.path().join(format!("{signal}.log"));
        let mut child = debug_run(&dir, SETTINGS)
            .stdout(fs::File::create(temp.path().join("stdout")).unwrap())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        // Once within a phase, once anywhere.
        let phase = ["world_model", "collect"][i];
        let started = Instant::now();
        while !has_line(&dir, 3, phase) {
            assert!(started.elapsed() < Duration::from_secs(60), "timed out");
            std::thread::yield_now();
        }
        assert_eq!(pid_of(&dir), Some(child.id()));
        let sent = Instant::now();
        kill(signal, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(75));
        assert!(sent.elapsed() < Duration::from_secs(2), "not at once");
        assert_eq!(pid_of(&dir), None);
        let text = fs::read_to_string(&log).unwrap();
        let last = text.lines().last().unwrap();
        let expected = format!("stopped by SIG{signal} after epoch ");
        assert!(last.starts_with(&expected), "{text}");
        assert!(
            last.contains("; continue with `rem train --resume "),
            "{text}"
        );
        assert!(!checkpoint(&dir, 6).exists(), "the signal came too late");
        succeeds(&mut resume(&dir));
        assert_same(&reproducible_files(&dir), &reproducible_files(&whole));
    }
}
