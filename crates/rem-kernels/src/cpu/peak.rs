//! What the processor can do at best: tiles on data that never leaves the first cache.

use std::time::Instant;

use super::level::Level;
use super::scratch::Scratch;
use super::tile::{Job, MAX_HEIGHT, PANEL, Precision, Tile, with_tile};

/// Billions of operations a second (a product and a sum are two) of all threads together.
pub fn gflops(level: Level, precision: Precision) -> f64 {
    with_tile!(level, precision, tile => measure(tile))
}

fn measure<T: Tile>(tile: T) -> f64 {
    const STEPS: usize = 128;
    const ROUNDS: usize = 40_000;
    let run = |rounds: usize| {
        let a = Scratch::<T::In>::new(MAX_HEIGHT * STEPS * T::STEP);
        let b = Scratch::<T::In>::new(PANEL * STEPS * T::STEP);
        let mut c = Scratch::<f32>::new(MAX_HEIGHT * PANEL);
        let c = c.as_mut_ptr();
        let job = Job {
            a: std::array::from_fn(|r| a[r * STEPS * T::STEP..].as_ptr()),
            segments: &[0],
            steps: STEPS,
            b: b.as_ptr(),
            // SAFETY: rows of `c`.
            c: std::array::from_fn(|r| unsafe { c.add(r * PANEL) }),
            rows: MAX_HEIGHT,
            columns: PANEL,
            add: false,
        };
        for _ in 0..rounds {
            // SAFETY: the buffers are as large as the job says.
            unsafe { tile.run(std::hint::black_box(&job)) };
        }
    };
    let all = |rounds: usize| {
        let start = Instant::now();
        rayon::broadcast(|_| run(rounds));
        start.elapsed().as_secs_f64()
    };
    all(ROUNDS / 10);
    let best = (0..3).map(|_| all(ROUNDS)).fold(f64::INFINITY, f64::min);
    let operations = 2 * MAX_HEIGHT * PANEL * STEPS * T::STEP * ROUNDS;
    operations as f64 * rayon::current_num_threads() as f64 / best / 1e9
}
