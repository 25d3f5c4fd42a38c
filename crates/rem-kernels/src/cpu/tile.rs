//! The register tile: the one place where matrices are multiplied.
//!
//! A tile is up to [`MAX_HEIGHT`] rows of A times a panel of up to [`PANEL`] columns of B. Rows of A lie
//! where they lie, each contiguous along k: a tile takes a pointer per row, and a list of segments
//! (offsets from those pointers) that follow each other along k. One segment is a linear layer; a segment
//! per tap is a convolution over an image; a segment per image row is a convolution's weight gradient.

mod avx2;
mod avx512;
mod portable;

use super::level::{Level, vectorised};
use super::scratch::Plain;

/// Columns of a panel of B. The last panel of a matrix may have [`NARROW`].
pub const PANEL: usize = 32;
pub const NARROW: usize = 16;
/// Rows of the highest tile; others have 8 or 4.
pub const MAX_HEIGHT: usize = 12;

/// What a product of matrices is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    F32,
    /// Factors rounded to bfloat16, sums in f32.
    Mixed,
}

/// A kind of input and the instructions for it.
pub trait Tile: Copy + Send + Sync + 'static {
    /// f32, or the bits of a bfloat16.
    type In: Plain + Default + 'static;
    /// Elements along k that one instruction takes from each row. A's rows and B's panels are padded
    /// with zeros to a multiple of it.
    const STEP: usize;
    /// Steps that are summed in one go; longer sums are added up from such parts, which rounds less.
    const CHAIN: usize;

    fn level(self) -> Level;

    fn convert(self, from: &[f32], to: &mut [Self::In]);

    /// `STEP` rows of B as they stand in a panel: element (j, s) at `j * STEP + s`.
    fn interleave(self, rows: &[&[f32]], to: &mut [Self::In]);

    /// The rows at `job.c` become (or are increased by) the tile's sums.
    /// # Safety
    /// `job` describes readable and writable memory; see [`Job`].
    unsafe fn run(self, job: &Job<Self::In>);
}

/// One tile's work.
pub struct Job<'a, In> {
    /// Valid for reads of `steps * STEP` elements from each of `segments` on, for all `MAX_HEIGHT` entries.
    pub a: [*const In; MAX_HEIGHT],
    /// Offsets in elements, in the order of B's rows.
    pub segments: &'a [usize],
    /// Steps along k of each segment.
    pub steps: usize,
    /// `segments * steps * width * STEP` elements, where width is [`PANEL`], or [`NARROW`] if `columns`
    /// is not more.
    pub b: *const In,
    /// The first `rows` are valid for writes of `columns` elements, and for reads if `add`.
    pub c: [*mut f32; MAX_HEIGHT],
    pub rows: usize,
    pub columns: usize,
    pub add: bool,
}

/// The rows of a tile, `stride` elements apart; after the last of `real` it is repeated.
/// # Safety
/// The first `real` lie within one allocation.
#[inline(always)]
pub unsafe fn rows_from<In>(
    first: *const In,
    stride: usize,
    real: usize,
) -> [*const In; MAX_HEIGHT] {
    let mut row = first;
    std::array::from_fn(|r| {
        let this = row;
        if r + 1 < real {
            // SAFETY: the caller's promise.
            row = unsafe { row.add(stride) };
        }
        this
    })
}

/// The height of the next tile when `rows` are left.
pub fn height(rows: usize) -> usize {
    match rows {
        0..=4 => 4,
        5..=8 | 13..=16 => 8,
        _ => 12,
    }
}

/// The width of the panel that begins where `columns` are left.
pub fn width(columns: usize) -> usize {
    if columns <= NARROW { NARROW } else { PANEL }
}

/// Calls `$body` with `$tile` bound to the tile for a level and a precision.
macro_rules! with_tile {
    ($level:expr, $precision:expr, $tile:ident => $body:expr) => {{
        use $crate::cpu::level::Level;
        use $crate::cpu::tile::{Bf16Avx512, F32, Precision, RoundedF32};
        match ($level, $precision) {
            (Level::Avx512Bf16, Precision::Mixed) => {
                let $tile = Bf16Avx512;
                $body
            }
            (level, Precision::Mixed) => {
                let $tile = RoundedF32(level);
                $body
            }
            (level, Precision::F32) => {
                let $tile = F32(level);
                $body
            }
        }
    }};
}
pub(crate) use with_tile;

/// f32 throughout.
#[derive(Clone, Copy, Debug)]
pub struct F32(pub Level);

/// Inputs rounded to bfloat16 but kept as f32, for processors without products of bfloat16.
#[derive(Clone, Copy, Debug)]
pub struct RoundedF32(pub Level);

/// Pairs of bfloat16.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Avx512;

impl Tile for F32 {
    type In = f32;
    const STEP: usize = 1;
    const CHAIN: usize = 32;

    fn level(self) -> Level {
        self.0
    }
    fn convert(self, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
    fn interleave(self, rows: &[&[f32]], to: &mut [f32]) {
        to.copy_from_slice(rows[0]);
    }
    #[inline]
    unsafe fn run(self, job: &Job<f32>) {
        // SAFETY: the caller's promise; a level is made only where its instructions are.
        unsafe {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 | Level::Avx512Bf16 => avx512::run_f32(job),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::run(job),
                _ => portable::run(job),
            }
        }
    }
}

impl Tile for RoundedF32 {
    type In = f32;
    const STEP: usize = 1;
    const CHAIN: usize = usize::MAX;

    fn level(self) -> Level {
        self.0
    }
    fn convert(self, from: &[f32], to: &mut [f32]) {
        round(self.0, from, to);
    }
    fn interleave(self, rows: &[&[f32]], to: &mut [f32]) {
        round(self.0, rows[0], to);
    }
    #[inline]
    unsafe fn run(self, job: &Job<f32>) {
        // SAFETY: the caller's promise.
        unsafe { F32(self.0).run(job) }
    }
}

impl Tile for Bf16Avx512 {
    type In = u16;
    const STEP: usize = 2;
    const CHAIN: usize = usize::MAX;

    fn level(self) -> Level {
        Level::Avx512Bf16
    }
    fn convert(self, from: &[f32], to: &mut [u16]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this type is used only where the instructions are.
        unsafe {
            avx512::convert(from, to);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("chosen on x86-64 alone: {} {}", from.len(), to.len());
    }
    fn interleave(self, rows: &[&[f32]], to: &mut [u16]) {
        match rows {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this type is used only where the instructions are.
            [even, odd] => unsafe { avx512::interleave(even, odd, to) },
            [last] => {
                for (pair, x) in to.chunks_exact_mut(2).zip(*last) {
                    pair[0] = bf16_bits(*x);
                    pair[1] = 0;
                }
            }
            _ => unreachable!("a step is two rows or the last one"),
        }
    }
    #[inline]
    unsafe fn run(self, job: &Job<u16>) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's promise; this type is used only where the instructions are.
        unsafe {
            avx512::run_bf16(job);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("chosen on x86-64 alone: {}", job.rows);
    }
}

/// The nearest bfloat16, ties to even; a NaN stays one.
#[inline(always)]
pub fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let is_nan = (bits & 0x7fff_ffff) > 0x7f80_0000;
    ((if is_nan { bits | 0x0040_0000 } else { rounded }) >> 16) as u16
}

#[inline(always)]
pub fn from_bf16_bits(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

vectorised! {
    fn round(from: &[f32], to: &mut [f32]) {
        for (t, f) in to.iter_mut().zip(from) {
            *t = from_bf16_bits(bf16_bits(*f));
        }
    }
}
