//! Working memory that threads reuse: fresh pages cost more than many of the kernels that use them.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// A cache line, for its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// Free blocks by size [`class`]. A block may be freed on another thread, so each list is bounded by [`MAX_FREE`].
    static FREE: RefCell<Vec<Vec<Vec<Line>>>> = const { RefCell::new(Vec::new()) };
}

/// Free blocks of a size class per thread.
const MAX_FREE: usize = 16;

/// The index and size of the smallest size class that holds `lines`. There are four classes per doubling.
fn class(lines: usize) -> (usize, usize) {
    let lines = lines.max(8);
    // The largest power of two that is a quarter of `lines` at most.
    let unit = lines.ilog2() - 2;
    let quarters = lines.div_ceil(1 << unit);
    (4 * unit as usize + quarters, quarters << unit)
}

/// Plain old data: every bit pattern is a value.
///
/// # Safety
/// All bit patterns are valid, there is no padding, and the alignment is at most 64.
pub unsafe trait Pod: Copy + Send + Sync {}
// SAFETY: true of these.
unsafe impl Pod for f32 {}
// SAFETY: as above.
unsafe impl Pod for u16 {}
// SAFETY: as above.
unsafe impl Pod for u32 {}

/// A slice of `T` with arbitrary contents. Its memory is reused after it is dropped.
pub struct Scratch<T> {
    lines: Vec<Line>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Pod> Scratch<T> {
    /// A slice of `len` elements with arbitrary values.
    pub fn new(len: usize) -> Self {
        let (class, size) = class((len * size_of::<T>()).div_ceil(64));
        let free = FREE.with_borrow_mut(|free| free.get_mut(class)?.pop());
        let lines = free.unwrap_or_else(|| vec![Line([0; 64]); size]);
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
        let (class, _) = class(lines.len());
        // A thread that is ending has no free list.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() <= class {
                free.resize_with(class + 1, Vec::new);
            }
            if free[class].len() < MAX_FREE {
                free[class].push(lines);
            }
        });
    }
}

impl<T: Pod> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: large enough by construction, initialized, and `T` is `Pod`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// A vector with arbitrary contents; the caller must write every element. Zeroing hundreds of megabytes that are
/// overwritten anyway costs as much as a kernel.
#[allow(clippy::uninit_vec)]
pub fn uninit_vec<T: Pod>(len: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(len);
    // SAFETY: within the capacity; any bits are a `T`, and callers write each element before they read it.
    unsafe { values.set_len(len) };
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_at_most_a_quarter() {
        let mut last = 0;
        for lines in 0..100_000 {
            let (number, size) = class(lines);
            assert!(
                size >= lines && size <= lines.max(8) * 5 / 4,
                "{lines}: {size}"
            );
            assert_eq!(
                class(size),
                (number, size),
                "a freed block has its original size class"
            );
            assert!(number >= last, "{lines}");
            last = number;
        }
    }

    #[test]
    fn blocks_are_reused_and_the_free_list_is_bounded() {
        let first = Scratch::<f32>::new(1000).as_ptr();
        assert_eq!(Scratch::<f32>::new(990).as_ptr(), first);
        drop(
            (0..100)
                .map(|_| Scratch::<u16>::new(2000))
                .collect::<Vec<_>>(),
        );
        FREE.with_borrow(|free| assert!(free.iter().all(|blocks| blocks.len() <= MAX_FREE)));
    }
}
