//! Products summed over the rows of both factors.

use rayon::prelude::*;

use super::{PARALLEL_FROM, Panels, Rows, Shared, SharedMut};
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::{self, Job, MAX_HEIGHT, PANEL, Tile};

/// Rows of A and B that go into a transposed product at a time.
const SLAB: usize = 512;

/// `out = aᵀ · b`, summed over the rows of both: a weight gradient.
pub fn matmul_transposed<T: Tile>(
    tile: T,
    a: &impl Rows,
    b: &impl Rows,
    rows: usize,
    out: &mut [f32],
) {
    let (height, columns) = (a.width(), b.width());
    assert_eq!(out.len(), height * columns);
    if rows == 0 {
        return out.fill(0.0);
    }
    let slab = SLAB.min(rows.next_multiple_of(2 * LINE));
    let words = slab / T::STEP;
    // aᵀ: for each of its rows the words along k; a word is a step's worth of elements.
    let mut transposed = Scratch::<u32>::new(height * words);
    let mut panels = Panels::empty::<T>(words, columns);
    for start in (0..rows).step_by(slab) {
        let count = slab.min(rows - start);
        let used = count.div_ceil(T::STEP);
        panels.steps = used;
        let to = &SharedMut(transposed.as_mut_ptr());
        let packed = &SharedMut(panels.data.as_mut_ptr());
        let lines = used.div_ceil(LINE);
        let work = |line: usize| {
            let first = start + line * LINE * T::STEP;
            let count = (LINE * T::STEP).min(start + count - first);
            let step = line * LINE;
            // SAFETY: each line writes its own words of every row, and its own steps of every panel.
            unsafe {
                transpose_words(tile, a, first, count, to.0.add(step), words);
                pack_steps(tile, b, first, count, packed.0, step, used);
            }
        };
        let small = height * columns * count < 32 * PARALLEL_FROM;
        if small {
            (0..lines).for_each(work);
        } else {
            (0..lines).into_par_iter().for_each(work);
        }
        let transposed = &Shared(transposed.as_ptr());
        let panels = &panels;
        let rows_of_tiles = |(i, out): (usize, &mut [f32])| {
            let rows = out.len() / columns;
            for (column, width, b) in panels.iter() {
                let mut row = 0;
                while row < rows {
                    let tall = tile::height(rows - row);
                    let real = tall.min(rows - row);
                    let to = out[row * columns + column..].as_mut_ptr();
                    // SAFETY: `transposed` has rows of `words` words, the first `used` of them initialized, as
                    // they are in each panel; the tile lies within `out`.
                    unsafe {
                        let first = transposed.0.add((i * GROUP + row) * words);
                        let job = Job {
                            a: tile::rows_from(first, words, real).map(<*const u32>::cast),
                            segments: &[0],
                            steps: used,
                            b,
                            c: tile::rows_from(to, columns, real).map(<*const f32>::cast_mut),
                            rows: real,
                            columns: width,
                            add: start > 0,
                        };
                        tile.run(&job);
                    }
                    row += tall;
                }
            }
        };
        if small {
            out.chunks_mut(GROUP * columns)
                .enumerate()
                .for_each(rows_of_tiles);
        } else {
            out.par_chunks_mut(GROUP * columns)
                .enumerate()
                .for_each(rows_of_tiles);
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
unsafe fn transpose_words<T: Tile>(
    tile: T,
    a: &impl Rows,
    first: usize,
    count: usize,
    to: *mut u32,
    stride: usize,
) {
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
        let to =
            unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), width * T::STEP) };
        if real == 1 {
            tile.interleave(&[even], to);
        } else {
            tile.interleave(&[even, a.row(first + start + 1, odd)], to);
        }
    }
    for column in 0..width {
        // SAFETY: guaranteed by the caller.
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
        let odd = if real == 2 {
            b.row(first + start + 1, odd)
        } else {
            &[]
        };
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
