//! Working memory that threads keep: fresh pages cost more than many of the kernels that use them.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// A cache line, for its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// By [`class`]. What one thread takes another may give back, so each keeps no more than [`MOST`].
    static KEPT: RefCell<Vec<Vec<Vec<Line>>>> = const { RefCell::new(Vec::new()) };
}

/// Blocks of a size that a thread keeps.
const MOST: usize = 16;

/// The number of the smallest size that holds so many lines, and that size. There are four sizes to a doubling.
fn class(lines: usize) -> (usize, usize) {
    let lines = lines.max(8);
    // The largest power of two that is a quarter of `lines` at most.
    let unit = lines.ilog2() - 2;
    let quarters = lines.div_ceil(1 << unit);
    (4 * unit as usize + quarters, quarters << unit)
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
        let (class, size) = class((len * size_of::<T>()).div_ceil(64));
        let kept = KEPT.with_borrow_mut(|kept| kept.get_mut(class)?.pop());
        let lines = kept.unwrap_or_else(|| vec![Line([0; 64]); size]);
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
        // A thread that ends has no place to keep it any more.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() <= class {
                kept.resize_with(class + 1, Vec::new);
            }
            if kept[class].len() < MOST {
                kept[class].push(lines);
            }
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_what_they_are_for_and_little_more() {
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
                "a block goes back where it came from"
            );
            assert!(number >= last, "{lines}");
            last = number;
        }
    }

    #[test]
    fn blocks_are_used_again_and_few_are_kept() {
        let first = Scratch::<f32>::new(1000).as_ptr();
        assert_eq!(Scratch::<f32>::new(990).as_ptr(), first);
        drop(
            (0..100)
                .map(|_| Scratch::<u16>::new(2000))
                .collect::<Vec<_>>(),
        );
        KEPT.with_borrow(|kept| assert!(kept.iter().all(|blocks| blocks.len() <= MOST)));
    }
}
