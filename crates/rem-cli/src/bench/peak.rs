//! The processor's peak: matrix tiles on data that stays in the L1 cache.

use std::time::Instant;

use rem_kernels::cpu::scratch::Scratch;
use rem_kernels::cpu::tile::{Bf16Avx512, F32, Job, MAX_HEIGHT, PANEL, RoundedF32, Tile};
use rem_kernels::{Isa, Precision};

/// Measured GFLOP/s of all threads together. A multiplication and an addition are two operations.
pub fn gflops(precision: Precision) -> f64 {
    match (Isa::selected(), precision) {
        (Isa::Avx512Bf16, Precision::Mixed) => measure(Bf16Avx512),
        (isa, Precision::Mixed) => measure(RoundedF32(isa)),
        (isa, Precision::F32) => measure(F32(isa)),
    }
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
