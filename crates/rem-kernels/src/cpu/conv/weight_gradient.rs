//! The gradient of a convolution's weight: for each tap and input channel, the sum over all pixels of the
//! staged input times the output's gradient.
//!
//! k runs over pixels, so the input is transposed: a row of the image becomes a line of pixels per channel, and a tap
//! is a shift along the lines. Each row of the image is a segment of the sum.

use super::stage::{Prepared, Stage};
use super::sweep::{Strip, Sweep};
use super::{ConvKind, Shape, for_each, transposed};
use crate::cpu::matmul::{Dense, Panels, SharedMut, pack_steps};
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::{self, Job, MAX_HEIGHT, Tile};
use crate::cpu::transpose::transpose;

/// Bytes of transposed input and packed gradient that are multiplied at a time.
const STRIP: usize = 768 * 1024;
/// Minimum number of pixels in a sum; adding longer sums to earlier ones costs little.
const LONG_SUM: usize = 512;

/// Sets `d_weight` to the gradient of the weight.
/// # Shapes
/// - `x`: `[n, h, w, c_in]`; `d_out`: `[n, h_out, w_out, c_out]`; `d_weight`: `[c_out, c_in, kh, kw]`
pub fn weight_gradient_with<T: Tile>(
    tile: T,
    shape: Shape,
    kind: ConvKind,
    stage: Stage,
    x: &[f32],
    d_out: &[f32],
    d_weight: &mut [f32],
) {
    shape.check(kind, x.len(), d_weight.len(), d_out.len());
    let sweep = Sweep::forward(shape, kind);
    if d_weight.is_empty() || sweep.products() == 0 {
        return d_weight.fill(0.0);
    }
    let mut work = || {
        let stage = stage.prepare(shape.images, shape.c_in);
        let mut sums = sums_of_products(tile, &sweep, &stage, x, d_out);
        if sweep.spread() > 1 {
            sums = sum_phases(&sweep, &sums);
        }
        // [c_in * taps, c_out] -> [c_out, c_in * taps]
        let rows = d_weight.len() / shape.c_out;
        transposed(
            tile.isa(),
            &sums,
            rows,
            shape.c_out,
            d_weight,
            sweep.is_large(),
        );
    };
    if sweep.is_large() {
        // Inside the pool, threads start the next loop at once; from outside, each loop wakes them again.
        rayon::scope(|_| work());
    } else {
        work();
    }
}

/// The memory layout of a transposed row of the image, in elements: a line per channel, and in each line a plane per
/// stride phase, so that the pixels that a tap reads at successive positions are contiguous.
struct Lines {
    /// Zeros at the start of a plane. Pixels begin at a whole step.
    left: usize,
    plane: usize,
    line: usize,
    row: usize,
    /// Steps along k of a row of the grid.
    steps: usize,
}

impl Lines {
    fn of<T: Tile>(sweep: &Sweep) -> Self {
        let stride = sweep.axis.stride;
        let left = sweep.before().div_ceil(stride).next_multiple_of(T::STEP);
        let steps = sweep.grid_width().div_ceil(T::STEP);
        let plane = left + steps * T::STEP + (sweep.after() / stride).next_multiple_of(T::STEP);
        Self {
            left,
            plane,
            line: stride * plane,
            row: sweep.source.channels * stride * plane,
            steps,
        }
    }

    /// The offset of each row of a phase's product in a transposed image: the first position's pixel of a channel under
    /// a tap. Rows are in the order `[c_in, taps]`.
    fn starts(&self, sweep: &Sweep, (down, right): (usize, usize)) -> Vec<usize> {
        let stride = sweep.axis.stride as isize;
        let mut starts = Vec::new();
        for channel in 0..sweep.source.channels {
            for (y, _) in sweep.axis.phases[down] {
                for (x, _) in sweep.axis.phases[right] {
                    let row = (y + sweep.before() as isize) as usize;
                    let plane = x.rem_euclid(stride) as usize;
                    let pixel = (self.left as isize + x.div_euclid(stride)) as usize;
                    starts.push(row * self.row + channel * self.line + plane * self.plane + pixel);
                }
            }
        }
        starts
    }
}

/// `[phases, c_in, taps of a phase, c_out]`
fn sums_of_products<T: Tile>(
    tile: T,
    sweep: &Sweep,
    stage: &Prepared,
    x: &[f32],
    d_out: &[f32],
) -> Scratch<f32> {
    let lines = Lines::of::<T>(sweep);
    let columns = sweep.target.channels;
    let starts: Vec<_> = sweep
        .phases()
        .map(|phase| lines.starts(sweep, phase))
        .collect();
    let rows = starts[0].len();
    let mut sums = Scratch::new(starts.len() * rows * columns);
    let size = |rows: usize| {
        let packed = rows * lines.steps * T::STEP * columns * starts.len();
        (sweep.reach(rows) * lines.row + packed) * size_of::<T::In>()
    };
    let height = sweep.grid_height();
    let short = LONG_SUM / (height * sweep.grid_width());
    // Independent of the number of threads, which would change the order of the sums.
    let strips = sweep.strips(size, STRIP.max(short * size(height)), 1);
    for (i, strip) in strips.into_iter().enumerate() {
        let steps = strip.images * strip.rows * lines.steps;
        let empty = |_| Panels::empty::<T>(steps, columns);
        let mut panels: Vec<_> = starts.iter().map(empty).collect();
        let mut transposed =
            Scratch::new(strip.images * sweep.reach(strip.rows) * lines.row / T::STEP);
        let mut transpose_to =
            || transpose_strip(tile, sweep, &lines, stage, x, strip, &mut transposed);
        let mut pack = || pack_strip(tile, sweep, &lines, d_out, strip, &mut panels);
        if sweep.is_large() {
            rayon::join(transpose_to, pack);
        } else {
            transpose_to();
            pack();
        }
        multiply(
            tile,
            sweep,
            &lines,
            &starts,
            &transposed,
            &panels,
            strip,
            i > 0,
            &mut sums,
        );
    }
    sums
}

/// The staged input under a strip's windows as [`Lines`], in words of one step.
fn transpose_strip<T: Tile>(
    tile: T,
    sweep: &Sweep,
    lines: &Lines,
    stage: &Prepared,
    x: &[f32],
    strip: Strip,
    transposed: &mut [f32],
) {
    let size = sweep.source;
    let rows = sweep.reach(strip.rows);
    let transpose_to = |(i, to): (usize, &mut [f32])| {
        let number = strip.image + i / rows;
        let Some(row) = sweep.source_row(strip.row, i % rows) else {
            return to.fill(0.0);
        };
        let pixels = &x[(number * size.height + row) * size.row()..][..size.row()];
        let mut buffer = Scratch::new(size.row());
        let staged = stage.apply(tile.isa(), number, pixels, &mut buffer);
        transpose_row(tile, sweep, lines, staged, to);
    };
    let chunks = transposed.chunks_mut(lines.row / T::STEP).enumerate();
    for_each(chunks.collect(), sweep.is_large(), transpose_to);
}

/// `[w, c]` to lines.
fn transpose_row<T: Tile>(tile: T, sweep: &Sweep, lines: &Lines, pixels: &[f32], to: &mut [f32]) {
    const { assert!(size_of::<T::In>() * T::STEP == size_of::<f32>() && T::STEP <= 2) };
    let (channels, stride) = (sweep.source.channels, sweep.axis.stride);
    let mut zeros = Scratch::new(channels);
    zeros.fill(0f32);
    // The pixel at an element of a plane, or padding.
    let pixel = |plane: usize, i: usize| {
        let column = i.checked_sub(lines.left).map(|i| i * stride + plane);
        match column.filter(|column| *column < sweep.source.width) {
            Some(column) => &pixels[column * channels..][..channels],
            None => &zeros[..],
        }
    };
    let count = lines.line / T::STEP;
    let mut words = Scratch::<f32>::new(count * channels);
    let planes = words.chunks_exact_mut(lines.plane / T::STEP * channels);
    for (plane, words) in planes.enumerate() {
        for (i, word) in words.chunks_exact_mut(channels).enumerate() {
            // SAFETY: a word is as large as the elements of a step, and any bits are one.
            let to = unsafe {
                std::slice::from_raw_parts_mut(word.as_mut_ptr().cast(), channels * T::STEP)
            };
            let first = i * T::STEP;
            let step = [pixel(plane, first), pixel(plane, first + T::STEP - 1)];
            tile.interleave(&step[..T::STEP], to);
        }
    }
    transpose(tile.isa(), &words, channels, count, channels, to, count);
}

/// The output's gradient in panels, a set for each phase.
fn pack_strip<T: Tile>(
    tile: T,
    sweep: &Sweep,
    lines: &Lines,
    d_out: &[f32],
    strip: Strip,
    panels: &mut [Panels<T::In>],
) {
    let (size, spread) = (sweep.target, sweep.spread());
    let rows = strip.images * strip.rows;
    let to: Vec<_> = panels
        .iter_mut()
        .map(|panels| SharedMut(panels.data.as_mut_ptr()))
        .collect();
    let pack = |row: usize| {
        let first_row = (strip.image * sweep.grid_height() + strip.row + row) * spread;
        for ((down, right), to) in sweep.phases().zip(&to) {
            let pixels = Dense {
                values: &d_out[(first_row + down) * size.row() + right * size.channels..],
                width: size.channels,
                stride: spread * size.channels,
            };
            let step = row * lines.steps;
            // SAFETY: every row of the grid has its own steps of the panels.
            unsafe {
                pack_steps(
                    tile,
                    &pixels,
                    0,
                    sweep.grid_width(),
                    to.0,
                    step,
                    rows * lines.steps,
                )
            };
        }
    };
    for_each((0..rows).collect(), sweep.is_large(), pack);
}

/// Adds (or sets) the products of a strip.
#[allow(clippy::too_many_arguments)]
fn multiply<T: Tile>(
    tile: T,
    sweep: &Sweep,
    lines: &Lines,
    starts: &[Vec<usize>],
    transposed: &[f32],
    panels: &[Panels<T::In>],
    strip: Strip,
    add: bool,
    sums: &mut [f32],
) {
    let columns = sweep.target.channels;
    let height = sweep.reach(strip.rows);
    let segments: Vec<usize> = (0..strip.images * strip.rows)
        .map(|row| row / strip.rows * height + row % strip.rows * sweep.axis.stride)
        .map(|row| row * lines.row)
        .collect();
    let last = starts.iter().flatten().max().unwrap_or(&0) + segments[segments.len() - 1];
    assert!(last + lines.steps * T::STEP <= transposed.len() * T::STEP);
    let rows = starts[0].len();
    let share = (rows * starts.len()).div_ceil(4 * rayon::current_num_threads());
    let share = share.next_multiple_of(MAX_HEIGHT).min(4 * MAX_HEIGHT);
    let mut tasks = Vec::new();
    for (phase, sums) in sums.chunks_mut(rows * columns).enumerate() {
        for (i, sums) in sums.chunks_mut(share * columns).enumerate() {
            let starts = &starts[phase][i * share..];
            tasks.push((&starts[..share.min(starts.len())], &panels[phase], sums));
        }
    }
    for_each(tasks, sweep.is_large(), |(starts, panels, sums)| {
        assert_eq!(sums.len(), starts.len() * columns);
        let to = sums.as_mut_ptr();
        let from = transposed.as_ptr().cast::<T::In>();
        for (first, count, b) in panels.iter() {
            let mut row = 0;
            while row < starts.len() {
                let tall = tile::height(starts.len() - row);
                let real = tall.min(starts.len() - row);
                let at = |r: usize| row + r.min(real - 1);
                let job = Job {
                    // SAFETY: a place in the first rows of `transposed`.
                    a: std::array::from_fn(|r| unsafe { from.add(starts[at(r)]) }),
                    segments: &segments,
                    steps: lines.steps,
                    b,
                    // SAFETY: one of the rows of `sums`.
                    c: std::array::from_fn(|r| unsafe { to.add(at(r) * columns + first) }),
                    rows: real,
                    columns: count,
                    add,
                };
                // SAFETY: the last segment of the last row, and so every one, lies within `transposed`; the
                // panels were made for these segments and steps, and are filled.
                unsafe { tile.run(&job) };
                row += tall;
            }
        }
    });
}

/// Sums the gradients of the phases' taps into those of the kernel's taps: `[c_in, kernel taps, c_out]`.
fn sum_phases(sweep: &Sweep, sums: &[f32]) -> Scratch<f32> {
    let (channels, columns, side) = (sweep.source.channels, sweep.target.channels, sweep.side);
    let taps = sweep.axis.phases[0].len();
    let mut kernel = Scratch::<f32>::new(channels * side * side * columns);
    let sum = |(channel, kernel): (usize, &mut [f32])| {
        kernel.fill(0.0);
        for (phase, (down, right)) in sweep.phases().enumerate() {
            let (rows, across) = (sweep.axis.phases[down], sweep.axis.phases[right]);
            for tap in 0..taps * taps {
                let from = ((phase * channels + channel) * taps * taps + tap) * columns;
                for ky in rows[tap / taps].1 {
                    for kx in across[tap % taps].1 {
                        let to = &mut kernel[(ky * side + kx) * columns..][..columns];
                        for (to, from) in to.iter_mut().zip(&sums[from..]) {
                            *to += from;
                        }
                    }
                }
            }
        }
    };
    let chunks = kernel.chunks_mut(side * side * columns).enumerate();
    for_each(chunks.collect(), sweep.is_large(), sum);
    kernel
}
