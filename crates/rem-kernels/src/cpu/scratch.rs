//! Working memory that threads keep: fresh pages cost more than many of the kernels that use them.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// A cache line, for its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static KEPT: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers for which every pattern of bits is a value.
///
/// # Safety
/// All bit patterns are valid, there is no padding, and the alignment is at most 64.
pub unsafe trait Plain: Copy + Send + Sync {}
// SAFETY: true of these.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}

/// A slice of `T` with whatever was in it before; goes back to its thread when dropped.
pub struct Scratch<T> {
    lines: Vec<Line>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Plain> Scratch<T> {
    pub fn new(len: usize) -> Self {
        let count = (len * size_of::<T>()).div_ceil(64);
        let mut lines = KEPT
            .with_borrow_mut(|kept| {
                // The smallest that is large enough, or else the largest.
                let fits = |i: &usize| kept[*i].len() >= count;
                let best = (0..kept.len()).filter(fits).min_by_key(|i| kept[*i].len());
                let best = best.or_else(|| (0..kept.len()).max_by_key(|i| kept[*i].len()));
                best.map(|i| kept.swap_remove(i))
            })
            .unwrap_or_default();
        if lines.len() < count {
            lines.clear();
            lines.resize(count, Line([0; 64]));
        }
        Self {
            lines,
            len,
            of: std::marker::PhantomData,
        }
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        // A thread that ends has no place to keep it any more.
        let _ = KEPT.try_with(|kept| kept.borrow_mut().push(lines));
    }
}

impl<T: Plain> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: large enough by construction, initialised, and `T` is plain.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// A vector whose elements are still to be written, every one of them: zeroing hundreds of megabytes
/// that are written right after would cost as much as a kernel.
#[allow(clippy::uninit_vec)]
pub fn unfilled<T: Plain>(len: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(len);
    // SAFETY: within the capacity; any bits are a `T`, and callers write each element before they read it.
    unsafe { values.set_len(len) };
    values
}
