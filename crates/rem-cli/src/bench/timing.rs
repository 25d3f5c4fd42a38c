//! Timing of steps on any device.

use std::time::Instant;

use burn::tensor::Device;

/// Runs that take at least this many seconds are not repeated.
const LONG: f64 = 10.0;

/// Seconds of the fastest of `repeats` runs after a warm-up. A warm-up of [`LONG`] seconds counts as the only run.
pub fn fastest(repeats: usize, mut run: impl FnMut() -> f64) -> f64 {
    let first = run();
    if first >= LONG {
        return first;
    }
    (0..repeats.max(1))
        .map(|_| run())
        .fold(f64::INFINITY, f64::min)
}

/// Seconds until `work` is done, on the device too.
///
/// # Panics
///
/// If the device fails.
pub fn seconds(device: &Device, work: impl FnOnce()) -> f64 {
    wait(device);
    let start = Instant::now();
    work();
    wait(device);
    start.elapsed().as_secs_f64()
}

/// Waits for the work of an asynchronous device.
fn wait(device: &Device) {
    device.sync().expect("the device finishes its work");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_run_after_the_warm_up_counts_and_long_runs_are_not_repeated() {
        let times = |all: &[f64], repeats| {
            let mut left = all.iter();
            let found = fastest(repeats, || *left.next().unwrap());
            (found, left.len())
        };
        assert_eq!(times(&[0.1, 3.0, 2.0, 4.0], 3), (2.0, 0));
        assert_eq!(times(&[0.1, 3.0], 0), (3.0, 0));
        assert_eq!(times(&[LONG, 3.0], 3), (LONG, 1));
    }
}
