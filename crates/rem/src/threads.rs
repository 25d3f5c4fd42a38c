//! CPU threads of the whole process.

use crate::error::{Error, Result};

/// Sets the number of worker threads, 0 for one per core, and returns it. Call it once, before any tensor
/// is made: results are bit-identical from run to run only for the same number.
pub fn set(threads: usize) -> Result<usize> {
    let count = match threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|e| Error::Device {
            message: format!("cannot start {count} threads: {e}"),
            hint: "try `--threads 1`".into(),
        })?;
    Ok(count)
}

/// Runs `work` on one of the worker threads. From outside them, every parallel step would wake two threads and
/// put one to sleep, which for small models takes longer than the step.
pub fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}
