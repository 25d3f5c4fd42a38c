//! The allocator for programs that train.

/// Every operation allocates its result. The system's allocator hands large blocks back to the kernel at once, and a
/// fifth of a training step goes into fetching them again.
pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay` of mimalloc.h, which its bindings leave out.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Lets [`Allocator`] keep what is freed instead of handing it back after a while. Call it first of all.
pub fn keep() {
    // SAFETY: sets a number that the allocator reads when it frees.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}
