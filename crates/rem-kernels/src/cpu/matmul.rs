//! Matrix products with fused prologue and epilogue: rows of A are computed by a [`Rows`], B is packed into
//! [`Panels`], and finished rows go through a closure while they are in the cache.
//!
//! Every sum is formed by one thread in one order: results do not depend on the number of threads.

mod transposed;

pub use transposed::matmul_transposed;
pub(crate) use transposed::pack_steps;

use rayon::prelude::*;

use super::scratch::Scratch;
use super::tile::{self, Job, NARROW, PANEL, Tile};

/// A matrix whose rows can be computed one by one.
pub trait Rows: Sync {
    /// Columns.
    fn width(&self) -> usize;
    /// Row `i`: borrowed, or computed into `buffer` of `width` elements.
    fn row<'a>(&'a self, i: usize, buffer: &'a mut [f32]) -> &'a [f32];
}

/// A dense matrix, or some columns of one.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    /// Row after row.
    pub values: &'a [f32],
    /// Columns.
    pub width: usize,
    /// Elements from one row to the next.
    pub stride: usize,
}

impl<'a> Dense<'a> {
    /// A matrix whose rows follow each other without gaps.
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

/// B, packed into panels of columns. Within a panel, the columns of a step along k are contiguous.
pub struct Panels<In> {
    pub(crate) data: Scratch<In>,
    /// Steps along k, over all segments.
    steps: usize,
    step: usize,
    columns: usize,
}

impl<In: super::scratch::Pod + Default> Panels<In> {
    /// Columns of B.
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

    /// Panels of a matrix whose rows are in memory: `row` returns row `k` from the column `first` on, to the end of its
    /// panel at least. Equals [`Self::pack`], without a copy of each row.
    pub(crate) fn pack_rows<'a, T: Tile<In = In>>(
        tile: T,
        depth: usize,
        columns: usize,
        row: impl Fn(usize, usize) -> &'a [f32] + Sync,
    ) -> Self {
        if !columns.is_multiple_of(NARROW) {
            return Self::pack(tile, 1, depth, columns, |_, k, first, to: &mut [f32]| {
                to.copy_from_slice(&row(k, first)[..to.len()]);
            });
        }
        let steps = depth.div_ceil(T::STEP);
        let mut panels = Self::empty::<T>(steps, columns);
        let panel = |(p, to): (usize, &mut [In])| {
            let first = p * PANEL;
            let width = tile::width(columns - first);
            for (i, to) in to.chunks_exact_mut(width * T::STEP).enumerate() {
                let k = i * T::STEP;
                let even = &row(k, first)[..width];
                if T::STEP == 1 || k + 1 == depth {
                    tile.interleave(&[even], to);
                } else {
                    tile.interleave(&[even, &row(k + 1, first)[..width]], to);
                }
            }
        };
        let size = PANEL * steps * T::STEP;
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
            (
                first,
                count,
                self.data[first * self.steps * self.step..].as_ptr(),
            )
        })
    }
}

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 16 * 1024;

/// Rows of a task: many, to share panels, but not so many that threads wait for the last task. Independent of the
/// number of threads, since `finish` may sum over a block.
fn block(rows: usize) -> usize {
    match rows {
        0..384 => 24,
        384..4096 => 48,
        _ => 96,
    }
}

/// `out = a · b`, then `finish(first_row, rows)` on each block of finished rows.
pub fn matmul<T: Tile>(
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
        let block = block(rows);
        for (i, out) in out.chunks_mut(block * columns).enumerate() {
            let converted = convert(tile, a, i * block, out.len() / columns);
            multiply_add(tile, &converted, b, out, false);
            finish(i * block, out);
        }
        return;
    }
    let threads = rayon::current_num_threads();
    if rows < 24 * threads {
        // Too few rows for all threads: split the columns.
        let converted = convert(tile, a, 0, rows);
        let out = &SharedMut(out.as_mut_ptr());
        let panels: Vec<_> = b
            .iter()
            .map(|(first, count, b)| (first, count, Shared(b)))
            .collect();
        let group = panels.len().div_ceil(threads);
        panels.par_chunks(group).for_each(|panels| {
            for (first, count, b) in panels {
                // SAFETY: panels write disjoint columns of `out`, which has `rows` rows.
                unsafe {
                    multiply_panel(
                        tile,
                        &converted,
                        b.0,
                        out.0.add(*first),
                        columns,
                        rows,
                        *count,
                        false,
                    )
                };
            }
        });
        // SAFETY: all writers are done; this is the slice from the caller.
        let out = unsafe { std::slice::from_raw_parts_mut(out.0, rows * columns) };
        let block = block(rows);
        for (i, out) in out.chunks_mut(block * columns).enumerate() {
            finish(i * block, out);
        }
        return;
    }
    let block = block(rows);
    out.par_chunks_mut(block * columns)
        .enumerate()
        .for_each(|(i, out)| {
            let converted = convert(tile, a, i * block, out.len() / columns);
            multiply_add(tile, &converted, b, out, false);
            finish(i * block, out);
        });
}

#[derive(Clone, Copy)]
struct Shared<T>(*const T);
// SAFETY: used for reads of memory that outlives the threads and is not written in the meantime.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

pub(crate) struct SharedMut<T>(pub *mut T);
// SAFETY: used for writes to disjoint elements only.
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
        unsafe {
            multiply_panel(
                tile,
                a,
                b,
                out.as_mut_ptr().add(first),
                columns,
                rows,
                count,
                add,
            )
        };
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
    assert!(a.data.len() >= rows * a.depth);
    let width = tile::width(count) * T::STEP;
    let mut row = 0;
    while row < rows {
        let height = tile::height(rows - row);
        let real = height.min(rows - row);
        for start in (0..a.steps).step_by(T::CHAIN) {
            // SAFETY: `a` has whole rows of `steps` steps, `real` of them from `row` on; the caller
            // guarantees the rest.
            unsafe {
                let first = a.data.as_ptr().add(row * a.depth + start * T::STEP);
                let job = Job {
                    a: tile::rows_from(first, a.depth, real),
                    segments: &[0],
                    steps: T::CHAIN.min(a.steps - start),
                    b: b.add(start * width),
                    c: tile::rows_from(out.add(row * stride), stride, real)
                        .map(<*const f32>::cast_mut),
                    rows: real,
                    columns: count,
                    add: add || start > 0,
                };
                tile.run(&job);
            }
        }
        row += height;
    }
}

#[cfg(test)]
mod tests;
