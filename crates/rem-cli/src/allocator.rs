//! The global allocator.

use mimalloc::MiMalloc;

/// Every tensor operation allocates its result. The system's allocator returns large blocks to the kernel at once, and
/// fetching them again takes a fifth of a training step.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, which the bindings do not define.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Lets the allocator keep freed memory instead of returning it to the kernel after a delay. Call this first in
/// `main`.
pub fn keep_freed_memory() {
    // SAFETY: sets a number that the allocator reads when it frees.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}
