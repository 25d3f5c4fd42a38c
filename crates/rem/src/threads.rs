//! The worker threads of the process.

use crate::error::{Error, Result};

/// Sets the number of worker threads, 0 for one per core, and returns it.
///
/// Call it once, before the first tensor is created. Runs are bit-identical only with the same number of threads.
///
/// # Errors
/// If the threads cannot be started, or were started before.
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

/// Like [`set`], unless the threads were started before: then returns their number.
///
/// # Errors
/// If the threads cannot be started.
pub fn set_once(threads: usize) -> Result<usize> {
    static SET: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    if let Some(count) = SET.get() {
        return Ok(*count);
    }
    // Rayon may have been started by the caller, or by another thread in the meantime.
    let count = set(threads).unwrap_or_else(|_| rayon::current_num_threads());
    Ok(*SET.get_or_init(|| count))
}

/// Runs `work` on a worker thread. On any other thread every parallel operation switches threads, which takes longer
/// than the operation itself in small models.
pub fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}

/// Runs both at the same time if there are two worker threads. The one that finishes first leaves its threads to the
/// parallel loops of the other.
pub(crate) fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    // A thread that waits for a part of a loop may run parts of the other's loops, but never all of `other`: rayon hands
    // out the oldest work first, so `other` has started before a part of a loop of `one` is handed out.
    rayon::join(one, other)
}
