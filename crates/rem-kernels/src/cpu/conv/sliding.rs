//! The forward pass and the input's gradient: a sweep as products of tiles.

use super::stage::{Prepared, Stage};
use super::sweep::{Strip, Sweep};
use super::{ConvKind, Shape, for_each, transposed};
use crate::cpu::matmul::Panels;
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::{self, Job, MAX_HEIGHT, PANEL, Tile};
use crate::cpu::transpose::transpose;

/// Bytes of padded image that a thread works on at a time: with a panel, well within the L2 cache.
const STRIP: usize = 192 * 1024;

/// `out = conv(stage(x)) + bias`
/// # Shapes
/// - `x`: `[n, h, w, c_in]`; `weight`: `[c_out, c_in, kh, kw]`; `out`: `[n, h_out, w_out, c_out]`
#[allow(clippy::too_many_arguments)]
pub fn forward_with<T: Tile>(
    tile: T,
    shape: Shape,
    kind: ConvKind,
    stage: Stage,
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    shape.check(kind, x.len(), weight.len(), out.len());
    assert!(bias.is_none_or(|bias| bias.len() == shape.c_out));
    let sweep = Sweep::forward(shape, kind);
    // [c_out, c_in * taps] -> [c_in * taps, c_out]
    let mut arranged = Scratch::new(weight.len());
    let depth = weight.len() / shape.c_out.max(1);
    transposed(
        tile.isa(),
        weight,
        shape.c_out,
        depth,
        &mut arranged,
        sweep.is_large(),
    );
    let stage = stage.prepare(shape.images, shape.c_in);
    slide(tile, &sweep, &stage, x, &arranged, bias, out);
}

/// The gradient of the convolution's input, after its stage.
/// # Shapes
/// - `weight`: `[c_out, c_in, kh, kw]`; `d_out`: `[n, h_out, w_out, c_out]`; `d_staged`: `[n, h, w, c_in]`
pub fn input_gradient_with<T: Tile>(
    tile: T,
    shape: Shape,
    kind: ConvKind,
    weight: &[f32],
    d_out: &[f32],
    d_staged: &mut [f32],
) {
    shape.check(kind, d_staged.len(), weight.len(), d_out.len());
    let sweep = Sweep::backward(shape, kind);
    let taps = kind.side() * kind.side();
    // [c_out, c_in, taps] -> [c_out, taps, c_in]
    let mut arranged = Scratch::new(weight.len());
    let kernels = (shape.c_in * taps).max(1);
    let chunks = arranged.chunks_mut(kernels).zip(weight.chunks(kernels));
    for_each(chunks.collect(), sweep.is_large(), |(to, from)| {
        transpose(tile.isa(), from, taps, shape.c_in, taps, to, shape.c_in);
    });
    let stage = Stage::Identity.prepare(shape.images, shape.c_out);
    slide(tile, &sweep, &stage, d_out, &arranged, None, d_staged);
}

/// The sweep over all images. `weights`: `[source channels, taps, target channels]`.
fn slide<T: Tile>(
    tile: T,
    sweep: &Sweep,
    stage: &Prepared,
    source: &[f32],
    weights: &[f32],
    bias: Option<&[f32]>,
    target: &mut [f32],
) {
    if sweep.source.channels == 0 || sweep.target.channels == 0 {
        return target
            .chunks_mut(sweep.target.channels.max(1))
            .for_each(|pixel| match bias {
                Some(bias) => pixel.copy_from_slice(bias),
                None => pixel.fill(0.0),
            });
    }
    let window = Window::of::<T>(sweep);
    let panels: Vec<_> = sweep
        .phases()
        .map(|phase| pack(tile, sweep, &window, phase, weights))
        .collect();
    let threads = rayon::current_num_threads();
    let parts = if sweep.is_large() { 2 * threads } else { 1 };
    let size = |rows: usize| sweep.reach(rows) * window.row * size_of::<T::In>();
    let mut rest = target;
    let mut strips = Vec::new();
    for strip in sweep.strips(size, STRIP, parts) {
        let len = strip.images * strip.rows * sweep.spread() * sweep.target.row();
        let (own, others) = rest.split_at_mut(len);
        rest = others;
        strips.push((strip, own));
    }
    for_each(strips, sweep.is_large(), |(strip, target)| {
        let image = padded(tile, sweep, &window, stage, source, strip);
        slide_strip(tile, sweep, &window, &image, strip, &panels, bias, target);
    });
}

/// The memory layout of the padded image, in elements.
struct Window {
    /// Size of a pixel: its channels, padded to whole steps.
    depth: usize,
    /// Size of a row of pixels.
    row: usize,
}

impl Window {
    fn of<T: Tile>(sweep: &Sweep) -> Self {
        let depth = sweep.source.channels.next_multiple_of(T::STEP);
        Self {
            depth,
            row: sweep.reach(sweep.grid_width().max(1)) * depth,
        }
    }
}

/// A phase's weights. Each row of the window is one segment, since its pixels are contiguous in memory.
fn pack<T: Tile>(
    tile: T,
    sweep: &Sweep,
    window: &Window,
    (down, right): (usize, usize),
    weights: &[f32],
) -> Panels<T::In> {
    let (rows, columns) = (sweep.axis.phases[down], sweep.axis.phases[right]);
    let (depth, channels) = (window.depth, sweep.source.channels);
    let outputs = sweep.target.channels;
    let taps = sweep.side * sweep.side;
    let fill = |segment: usize, k: usize, first: usize, to: &mut [f32]| {
        let (column, channel) = (k / depth, k % depth);
        to.fill(0.0);
        if channel >= channels {
            return;
        }
        for ky in rows[segment].1 {
            for kx in columns[column].1 {
                let tap = ky * sweep.side + kx;
                let from = &weights[(channel * taps + tap) * outputs + first..][..to.len()];
                for (to, from) in to.iter_mut().zip(from) {
                    *to += from;
                }
            }
        }
    };
    Panels::pack(tile, rows.len(), columns.len() * depth, outputs, fill)
}

/// The source rows under a strip's windows, staged and rounded, with zeros around them.
fn padded<T: Tile>(
    tile: T,
    sweep: &Sweep,
    window: &Window,
    stage: &Prepared,
    source: &[f32],
    strip: Strip,
) -> Scratch<T::In> {
    let (size, depth, zero) = (sweep.source, window.depth, T::In::default());
    let rows = sweep.reach(strip.rows);
    let mut image = Scratch::new(strip.images * rows * window.row);
    let mut buffer = Scratch::new(size.row());
    let mut spread = Scratch::new(size.width * depth);
    spread.fill(0f32);
    for (i, to) in image.chunks_exact_mut(window.row).enumerate() {
        let number = strip.image + i / rows;
        let Some(row) = sweep.source_row(strip.row, i % rows) else {
            to.fill(zero);
            continue;
        };
        let pixels = &source[(number * size.height + row) * size.row()..][..size.row()];
        let mut staged = stage.apply(tile.isa(), number, pixels, &mut buffer);
        if depth != size.channels {
            let pixels = staged.chunks_exact(size.channels);
            for (to, from) in spread.chunks_exact_mut(depth).zip(pixels) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            staged = &spread;
        }
        let (left, rest) = to.split_at_mut(sweep.before() * depth);
        let (middle, right) = rest.split_at_mut(size.width * depth);
        left.fill(zero);
        tile.convert(staged, middle);
        right.fill(zero);
    }
    image
}

/// All products of a strip. `target` is its part of the target image.
#[allow(clippy::too_many_arguments)]
fn slide_strip<T: Tile>(
    tile: T,
    sweep: &Sweep,
    window: &Window,
    image: &[T::In],
    strip: Strip,
    panels: &[Panels<T::In>],
    bias: Option<&[f32]>,
    target: &mut [f32],
) {
    let (size, spread) = (sweep.target, sweep.spread());
    let (stride, before) = (sweep.axis.stride, sweep.before());
    assert_eq!(
        target.len(),
        strip.images * strip.rows * spread * size.row()
    );
    let height = sweep.reach(strip.rows);
    // For each position, the start of its window in the padded image and its first pixel in the target.
    let mut positions = Vec::with_capacity(strip.images * strip.rows * sweep.grid_width());
    for row in 0..strip.images * strip.rows {
        let padded_row = row / strip.rows * height + row % strip.rows * stride;
        for column in 0..sweep.grid_width() {
            let from = padded_row * window.row + column * stride * window.depth;
            let to = row * spread * size.row() + column * spread * size.channels;
            positions.push((from, to));
        }
    }
    let to = target.as_mut_ptr();
    for (panels, (down, right)) in panels.iter().zip(sweep.phases()) {
        let (rows, columns) = (sweep.axis.phases[down], sweep.axis.phases[right]);
        // The offset of a tap from the start of a position's window.
        let from_window = |offset: isize| (offset + before as isize) as usize;
        let left = from_window(columns[0].0) * window.depth;
        let segments: Vec<usize> = rows
            .iter()
            .map(|tap| from_window(tap.0) * window.row + left)
            .collect();
        let steps = columns.len() * window.depth / T::STEP;
        let pixel = down * size.row() + right * size.channels;
        let last = positions[positions.len() - 1].0 + segments[segments.len() - 1];
        assert!(last + steps * T::STEP <= image.len());
        for (first, count, b) in panels.iter() {
            let mut next = 0;
            while next < positions.len() {
                let tall = tile::height(positions.len() - next);
                let real = tall.min(positions.len() - next);
                let rows: [(usize, usize); MAX_HEIGHT] = match positions[next..].first_chunk() {
                    Some(rows) if real == MAX_HEIGHT => *rows,
                    _ => std::array::from_fn(|r| positions[next + r.min(real - 1)]),
                };
                let job = Job {
                    // SAFETY: positions lie within the padded image.
                    a: rows.map(|(from, _)| unsafe { image.as_ptr().add(from) }),
                    segments: &segments,
                    steps,
                    b,
                    // SAFETY: a pixel of the strip, which is all of `target`.
                    c: rows.map(|(_, pixels)| unsafe { to.add(pixels + pixel + first) }),
                    rows: real,
                    columns: count,
                    add: bias.is_some(),
                };
                if let Some(bias) = bias {
                    for c in &job.c[..real] {
                        // SAFETY: each row of the tile is `count` elements of `target`.
                        unsafe { copy_bias(&bias[first..first + count], *c) };
                    }
                }
                // SAFETY: the last window, and so every one, lies within the padded image; the panel was
                // packed for these segments and steps.
                unsafe { tile.run(&job) };
                next += tall;
            }
        }
    }
}

/// Copies a bias to C, to which the tile adds its sums. Most copies are whole panels, of known size.
/// # Safety
/// `to` may be written for as many elements.
unsafe fn copy_bias(bias: &[f32], to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match <&[f32; PANEL]>::try_from(bias) {
            Ok(whole) => to.cast::<[f32; PANEL]>().write(*whole),
            Err(_) => bias.as_ptr().copy_to_nonoverlapping(to, bias.len()),
        }
    }
}
