//! Products of matrices whose inputs are made on the way: rows of A come from a [`Rows`], B is packed into
//! [`Panels`], finished rows go through a closure while they are still in the cache.
//!
//! Every sum is formed by one thread in one order: results do not depend on the number of threads.

use rayon::prelude::*;

use super::scratch::Scratch;
use super::tile::{self, Job, MAX_HEIGHT, PANEL, Tile};

/// A matrix that can give its rows one by one.
pub trait Rows: Sync {
    fn width(&self) -> usize;
    /// Row `i`, either as it lies in memory or written into `buffer` (of `width` elements).
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32];
}

/// A dense matrix, or the columns of one from its slice's start on.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    pub values: &'a [f32],
    pub width: usize,
    /// From one row to the next.
    pub stride: usize,
}

impl<'a> Dense<'a> {
    pub fn new(values: &'a [f32], width: usize) -> Self {
        Self {
            values,
            width,
            stride: width,
        }
    }
}

impl Rows for Dense<'_> {
    fn width(&self) -> usize {
        self.width
    }
    fn row<'a>(&'a self, i: usize, _buffer: &'a mut [f32]) -> &'a [f32] {
        &self.values[i * self.stride..][..self.width]
    }
}

/// B, cut into panels of columns; in a panel the columns of a step along k stand together.
pub struct Panels<In> {
    pub(crate) data: Scratch<In>,
    /// Steps along k, over all segments.
    steps: usize,
    step: usize,
    columns: usize,
}

impl<In: super::scratch::Plain + Default> Panels<In> {
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Panels of `segments` matrices of `depth` rows each, one after the other along k. `fill` writes the
    /// columns from `first` on of row `k` of a segment.
    pub fn pack<T: Tile<In = In>>(
        tile: T,
        segments: usize,
        depth: usize,
        columns: usize,
        fill: impl Fn(usize, usize, usize, &mut [f32]) + Sync,
    ) -> Self {
        let steps = depth.div_ceil(T::STEP);
        let mut panels = Self::empty::<T>(segments * steps, columns);
        let panel = |(p, to): (usize, &mut [In])| {
            let first = p * PANEL;
            let width = tile::width(columns - first);
            let count = width.min(columns - first);
            let mut rows = [[0f32; PANEL]; 2];
            for (i, to) in to.chunks_exact_mut(width * T::STEP).enumerate() {
                let (segment, k) = (i / steps, i % steps * T::STEP);
                let real = T::STEP.min(depth - k);
                for (s, row) in rows.iter_mut().enumerate().take(real) {
                    fill(segment, k + s, first, &mut row[..count]);
                }
                let rows = rows.each_ref().map(|row| &row[..width]);
                tile.interleave(&rows[..real], to);
            }
        };
        let size = PANEL * segments * steps * T::STEP;
        if panels.data.len() < PARALLEL_FROM {
            panels.data.chunks_mut(size).enumerate().for_each(panel);
        } else {
            panels.data.par_chunks_mut(size).enumerate().for_each(panel);
        }
        panels
    }

    pub(crate) fn empty<T: Tile<In = In>>(steps: usize, columns: usize) -> Self {
        let last = columns % PANEL;
        let padded = columns - last + if last == 0 { 0 } else { tile::width(last) };
        Self {
            data: Scratch::new(steps * padded * T::STEP),
            steps,
            step: T::STEP,
            columns,
        }
    }

    /// First column, number of columns and data of each panel.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, *const In)> {
        (0..self.columns).step_by(PANEL).map(|first| {
            let count = PANEL.min(self.columns - first);
            (first, count, self.data[first * self.steps * self.step..].as_ptr())
        })
    }
}

/// Elements from which work is worth a second thread.
const PARALLEL_FROM: usize = 16 * 1024;

/// Rows that a thread takes at a time.
const BLOCK: usize = 96;

/// `out = a · b`, then `finish(first_row, rows)` on each block of finished rows.
pub fn product<T: Tile>(
    tile: T,
    a: &impl Rows,
    b: &Panels<T::In>,
    out: &mut [f32],
    finish: impl Fn(usize, &mut [f32]) + Sync,
) {
    let (depth, columns) = (a.width(), b.columns);
    let rows = out.len() / columns;
    assert_eq!(out.len(), rows * columns);
    assert_eq!(b.steps, depth.div_ceil(T::STEP));
    if rows * columns * depth < 32 * PARALLEL_FROM {
        for (i, out) in out.chunks_mut(BLOCK * columns).enumerate() {
            let converted = convert(tile, a, i * BLOCK, out.len() / columns);
            multiply_add(tile, &converted, b, out, false);
            finish(i * BLOCK, out);
        }
        return;
    }
    let threads = rayon::current_num_threads();
    if rows < 24 * threads {
        // Too few rows for all threads: they share the columns.
        let converted = convert(tile, a, 0, rows);
        let out = &SharedMut(out.as_mut_ptr());
        let panels: Vec<_> = b.iter().map(|(first, count, b)| (first, count, Shared(b))).collect();
        let group = panels.len().div_ceil(threads);
        panels.par_chunks(group).for_each(|panels| {
            for (first, count, b) in panels {
                // SAFETY: panels write disjoint columns of `out`, which has `rows` rows.
                unsafe { multiply_panel(tile, &converted, b.0, out.0.add(*first), columns, rows, *count, false) };
            }
        });
        // SAFETY: all writers are done; this is the slice that came in.
        finish(0, unsafe { std::slice::from_raw_parts_mut(out.0, rows * columns) });
        return;
    }
    // Not by the number of threads: `finish` may add up over a block.
    let block = if rows < 8 * BLOCK { BLOCK / 4 } else { BLOCK };
    out.par_chunks_mut(block * columns).enumerate().for_each(|(i, out)| {
        let converted = convert(tile, a, i * block, out.len() / columns);
        multiply_add(tile, &converted, b, out, false);
        finish(i * block, out);
    });
}

#[derive(Clone, Copy)]
struct Shared<T>(*const T);
// SAFETY: used for reads of memory that outlives the threads and is not written meanwhile.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

pub(crate) struct SharedMut<T>(pub *mut T);
// SAFETY: used for writes to disjoint places only.
unsafe impl<T> Sync for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T> Send for SharedMut<T> {}

/// Rows in the tile's input type, padded to whole steps.
pub struct Converted<In> {
    data: Scratch<In>,
    depth: usize,
    steps: usize,
}

/// `rows` rows of `a` from `first` on.
pub fn convert<T: Tile>(tile: T, a: &impl Rows, first: usize, rows: usize) -> Converted<T::In> {
    let width = a.width();
    let steps = width.div_ceil(T::STEP);
    let depth = steps * T::STEP;
    let mut data = Scratch::new(rows * depth);
    let mut buffer = Scratch::new(width);
    for (i, to) in data.chunks_exact_mut(depth).enumerate() {
        tile.convert(a.row(first + i, &mut buffer), &mut to[..width]);
        to[width..].fill(T::In::default());
    }
    Converted { data, depth, steps }
}

/// `out = a · b` by one thread, or `out += a · b`.
pub fn multiply_add<T: Tile>(
    tile: T,
    a: &Converted<T::In>,
    b: &Panels<T::In>,
    out: &mut [f32],
    add: bool,
) {
    let columns = b.columns;
    let rows = out.len() / columns;
    assert!(a.data.len() >= rows * a.depth && a.steps == b.steps);
    for (first, count, b) in b.iter() {
        // SAFETY: `out` has `rows` rows of `columns`, and the panel lies within them.
        unsafe { multiply_panel(tile, a, b, out.as_mut_ptr().add(first), columns, rows, count, add) };
    }
}

/// # Safety
/// `b` is a panel of `count` columns and as deep as `a`; `out` has `rows` rows, `stride` apart, that may be
/// written for `count` elements each.
#[allow(clippy::too_many_arguments)]
unsafe fn multiply_panel<T: Tile>(
    tile: T,
    a: &Converted<T::In>,
    b: *const T::In,
    out: *mut f32,
    stride: usize,
    rows: usize,
    count: usize,
    add: bool,
) {
    let mut row = 0;
    while row < rows {
        let height = tile::height(rows - row);
        let real = height.min(rows - row);
        let at = |r: usize| row + r.min(real - 1);
        let job = Job {
            a: std::array::from_fn(|r| a.data[at(r) * a.depth..].as_ptr()),
            segments: &[0],
            steps: a.steps,
            b,
            // SAFETY: rows below `rows`.
            c: std::array::from_fn(|r| unsafe { out.add(at(r) * stride) }),
            rows: real,
            columns: count,
            add,
        };
        // SAFETY: `a` has whole rows of `steps` steps; the rest is the caller's promise.
        unsafe { tile.run(&job) };
        row += height;
    }
}

/// Rows of A and B that go into a transposed product at a time.
const SLAB: usize = 512;

/// `out = aᵀ · b`, summed over the rows of both: a weight gradient.
pub fn transposed_product<T: Tile>(tile: T, a: &impl Rows, b: &impl Rows, rows: usize, out: &mut [f32]) {
    let (height, columns) = (a.width(), b.width());
    assert_eq!(out.len(), height * columns);
    if rows == 0 {
        return out.fill(0.0);
    }
    let slab = SLAB.min(rows.next_multiple_of(2 * LINE));
    let words = slab / T::STEP;
    // aᵀ: for each of its rows the words along k; a word is a step's worth of elements.
    let mut turned = Scratch::<u32>::new(height * words);
    let mut panels = Panels::empty::<T>(words, columns);
    for first in (0..rows).step_by(slab) {
        let count = slab.min(rows - first);
        let used = count.div_ceil(T::STEP);
        panels.steps = used;
        let to = &SharedMut(turned.as_mut_ptr());
        let packed = &SharedMut(panels.data.as_mut_ptr());
        let lines = used.div_ceil(LINE);
        let work = |line: usize| {
            let start = first + line * LINE * T::STEP;
            let count = (LINE * T::STEP).min(first + count - start);
            let step = line * LINE;
            // SAFETY: each line writes its own words of every row, and its own steps of every panel.
            unsafe {
                turn(tile, a, start, count, to.0.add(step), words);
                pack_steps(tile, b, start, count, packed.0, step, used);
            }
        };
        let small = height * columns * count < 32 * PARALLEL_FROM;
        if small {
            (0..lines).for_each(work);
        } else {
            (0..lines).into_par_iter().for_each(work);
        }
        let turned = &Shared(turned.as_ptr());
        let panels = &panels;
        let rows_of_tiles = |(i, out): (usize, &mut [f32])| {
            let rows = out.len() / columns;
            for (column, width, b) in panels.iter() {
                let mut row = 0;
                while row < rows {
                    let tall = tile::height(rows - row);
                    let real = tall.min(rows - row);
                    let at = |r: usize| row + r.min(real - 1);
                    let job = Job {
                        // SAFETY: rows of `turned`, each of `words` words.
                        a: std::array::from_fn(|r| unsafe {
                            turned.0.add((i * GROUP + at(r)) * words).cast()
                        }),
                        segments: &[0],
                        steps: used,
                        b,
                        c: std::array::from_fn(|r| out[at(r) * columns + column..].as_mut_ptr()),
                        rows: real,
                        columns: width,
                        add: first > 0,
                    };
                    // SAFETY: `used` words are initialised in each row and panel.
                    unsafe { tile.run(&job) };
                    row += tall;
                }
            }
        };
        if small {
            out.chunks_mut(GROUP * columns).enumerate().for_each(rows_of_tiles);
        } else {
            out.par_chunks_mut(GROUP * columns).enumerate().for_each(rows_of_tiles);
        }
    }
}

/// Rows of a transposed product that a thread takes at a time.
const GROUP: usize = 2 * MAX_HEIGHT;

/// Words of a cache line.
const LINE: usize = 16;

/// Writes `count` rows of `a` as a line of words in each row of the transposed matrix.
/// # Safety
/// `to` has `a.width()` rows, `stride` words apart, with [`LINE`] writable words each.
unsafe fn turn<T: Tile>(tile: T, a: &impl Rows, first: usize, count: usize, to: *mut u32, stride: usize) {
    let width = a.width();
    let mut words = Scratch::<u32>::new(LINE * width);
    let mut buffers = [Scratch::new(width), Scratch::new(width)];
    for (i, words) in words.chunks_exact_mut(width).enumerate() {
        let start = i * T::STEP;
        let real = count.saturating_sub(start).min(T::STEP);
        if real == 0 {
            words.fill(0);
            continue;
        }
        let [even, odd] = &mut buffers;
        let even = a.row(first + start, even);
        // SAFETY: a word is as large as a step's elements.
        let to = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), width * T::STEP) };
        if real == 1 {
            tile.interleave(&[even], to);
        } else {
            tile.interleave(&[even, a.row(first + start + 1, odd)], to);
        }
    }
    for column in 0..width {
        // SAFETY: the caller's promise.
        let to = unsafe { &mut *to.add(column * stride).cast::<[u32; LINE]>() };
        for (i, to) in to.iter_mut().enumerate() {
            *to = words[i * width + column];
        }
    }
}

/// Writes `count` rows of `b` as steps of all panels, from `step` on.
/// # Safety
/// `to` holds panels of `steps` steps.
pub(crate) unsafe fn pack_steps<T: Tile>(
    tile: T,
    b: &impl Rows,
    first: usize,
    count: usize,
    to: *mut T::In,
    step: usize,
    steps: usize,
) {
    let columns = b.width();
    let mut buffers = [Scratch::new(columns), Scratch::new(columns)];
    let last = columns / PANEL * PANEL;
    let mut tail = [[0f32; PANEL]; 2];
    for i in 0..count.div_ceil(T::STEP) {
        let start = i * T::STEP;
        let real = (count - start).min(T::STEP);
        let [even, odd] = &mut buffers;
        let even = b.row(first + start, even);
        let odd = if real == 2 { b.row(first + start + 1, odd) } else { &[] };
        for column in (0..last).step_by(PANEL) {
            // SAFETY: step `step + i` of the panel that begins at `column`.
            let to = unsafe {
                let at = (column * steps + (step + i) * PANEL) * T::STEP;
                std::slice::from_raw_parts_mut(to.add(at), PANEL * T::STEP)
            };
            let even = &even[column..column + PANEL];
            if real == 1 {
                tile.interleave(&[even], to);
            } else {
                tile.interleave(&[even, &odd[column..column + PANEL]], to);
            }
        }
        if last < columns {
            let width = tile::width(columns - last);
            tail[0][..columns - last].copy_from_slice(&even[last..]);
            if real == 2 {
                tail[1][..columns - last].copy_from_slice(&odd[last..]);
            }
            // SAFETY: step `step + i` of the last panel.
            let to = unsafe {
                let at = (last * steps + (step + i) * width) * T::STEP;
                std::slice::from_raw_parts_mut(to.add(at), width * T::STEP)
            };
            let rows = tail.each_ref().map(|row| &row[..width]);
            tile.interleave(&rows[..real], to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::level::Level;
    use crate::cpu::testing::{self, numbers};
    use crate::cpu::tile::{Precision, with_tile};

    const SIZES: [(usize, usize, usize); 8] = [
        (1, 1, 1),
        (3, 2, 5),
        (13, 33, 17),
        (16, 64, 64),
        (65, 65, 64),
        (97, 31, 48),
        (300, 70, 100),
        (1100, 129, 40),
    ];

    #[test]
    fn products_equal_the_sum_of_their_terms() {
        for (m, k, n) in SIZES {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let expected = testing::product(&a, &b, m, k, n);
            for level in Level::available() {
                for precision in [Precision::F32, Precision::Mixed] {
                    let mut out = vec![f32::NAN; m * n];
                    with_tile!(level, precision, tile => {
                        let fill = |_: usize, row: usize, first: usize, to: &mut [f32]| {
                            to.copy_from_slice(&b[row * n + first..][..to.len()]);
                        };
                        let panels = Panels::pack(tile, 1, k, n, fill);
                        product(tile, &Dense::new(&a, k), &panels, &mut out, |_, _| {});
                    });
                    testing::close(&out, &expected, k, precision, &format!("{level:?} {m} {k} {n}"));
                }
            }
        }
    }

    #[test]
    fn transposed_products_equal_the_sum_of_their_terms() {
        for (k, m, n) in SIZES {
            let (a, b) = (numbers(k * m, 1), numbers(k * n, 2));
            let turned: Vec<f32> = (0..m * k).map(|i| a[i % k * m + i / k]).collect();
            let expected = testing::product(&turned, &b, m, k, n);
            for level in Level::available() {
                for precision in [Precision::F32, Precision::Mixed] {
                    let mut out = vec![f32::NAN; m * n];
                    with_tile!(level, precision, tile => {
                        transposed_product(tile, &Dense::new(&a, m), &Dense::new(&b, n), k, &mut out);
                    });
                    testing::close(&out, &expected, k, precision, &format!("{level:?} {m} {k} {n}"));
                }
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (m, k, n) = (700, 130, 96);
        let (a, b) = (numbers(m * k, 1), numbers(m * n, 2));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = vec![0f32; k * n];
            let level = Level::of_this_machine();
            pool.install(|| {
                with_tile!(level, Precision::Mixed, tile => {
                    transposed_product(tile, &Dense::new(&a, k), &Dense::new(&b, n), m, &mut out);
                });
            });
            out
        };
        assert_eq!(run(1), run(3));
    }
}
