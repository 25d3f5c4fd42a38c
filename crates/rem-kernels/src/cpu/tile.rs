//! The register tile: the only place where matrices are multiplied.
//!
//! A tile is up to [`MAX_HEIGHT`] rows of A times a panel of up to [`PANEL`] columns of B. Each row of A is
//! contiguous along k: a tile takes a pointer per row, and a list of segments (offsets from those pointers) that
//! follow each other along k. A linear layer has one segment, a convolution one per tap, a convolution's weight
//! gradient one per image row.

mod avx2;
mod avx512;
mod portable;

use super::isa::{Isa, multiversion};
use super::scratch::Pod;

/// Columns of a panel of B. The last panel of a matrix may have [`NARROW`].
pub const PANEL: usize = 32;
/// Columns of a narrow panel.
pub const NARROW: usize = 16;
/// Rows of the tallest tile; others have 8 or 4.
pub const MAX_HEIGHT: usize = 12;

/// The precision of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32 factors and sums.
    F32,
    /// Factors rounded to bfloat16, sums in f32.
    Mixed,
}

/// An input type and the instructions for it.
pub trait Tile: Copy + Send + Sync + 'static {
    /// f32, or the bits of a bfloat16.
    type In: Pod + Default + 'static;
    /// Elements along k that one instruction takes from each row. A's rows and B's panels are padded
    /// with zeros to a multiple of it.
    const STEP: usize;
    /// Steps of one running sum. Longer sums are split and added up, which rounds less.
    const CHAIN: usize;

    /// The instruction set.
    fn isa(self) -> Isa;

    /// Converts a row of A.
    fn convert(self, from: &[f32], to: &mut [Self::In]);

    /// Interleaves `STEP` rows of B as in a panel: element (j, s) at `j * STEP + s`.
    fn interleave(self, rows: &[&[f32]], to: &mut [Self::In]);

    /// Sets the rows at `job.c` to the tile's sums, or adds them.
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
    /// Rows of C to write.
    pub rows: usize,
    /// Columns of C to write.
    pub columns: usize,
    /// Whether to add to C instead of overwriting it.
    pub add: bool,
}

/// Pointers to the rows of a tile, `stride` elements apart. The last of `real` rows is repeated.
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
            // SAFETY: guaranteed by the caller.
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

/// Calls `$body` with `$tile` bound to the tile for an instruction set and a precision.
macro_rules! with_tile {
    ($isa:expr, $precision:expr, $tile:ident => $body:expr) => {{
        use $crate::cpu::isa::Isa;
        use $crate::cpu::tile::{Bf16Avx512, F32, Precision, RoundedF32};
        match ($isa, $precision) {
            (Isa::Avx512Bf16, Precision::Mixed) => {
                let $tile = Bf16Avx512;
                $body
            }
            (isa, Precision::Mixed) => {
                let $tile = RoundedF32(isa);
                $body
            }
            (isa, Precision::F32) => {
                let $tile = F32(isa);
                $body
            }
        }
    }};
}
pub(crate) use with_tile;

/// f32 throughout.
#[derive(Clone, Copy, Debug)]
pub struct F32(pub Isa);

/// Factors rounded to bfloat16 but stored as f32, for processors without bfloat16 instructions.
#[derive(Clone, Copy, Debug)]
pub struct RoundedF32(pub Isa);

/// Pairs of bfloat16.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Avx512;

impl Tile for F32 {
    type In = f32;
    const STEP: usize = 1;
    const CHAIN: usize = 32;

    fn isa(self) -> Isa {
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
        // SAFETY: guaranteed by the caller; an `Isa` exists only where the processor supports it.
        unsafe {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 | Isa::Avx512Bf16 => avx512::run_f32(job),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2::run(job),
                _ => portable::run(job),
            }
        }
    }
}

impl Tile for RoundedF32 {
    type In = f32;
    const STEP: usize = 1;
    const CHAIN: usize = usize::MAX;

    fn isa(self) -> Isa {
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
        // SAFETY: guaranteed by the caller.
        unsafe { F32(self.0).run(job) }
    }
}

impl Tile for Bf16Avx512 {
    type In = u16;
    const STEP: usize = 2;
    const CHAIN: usize = usize::MAX;

    fn isa(self) -> Isa {
        Isa::Avx512Bf16
    }
    fn convert(self, from: &[f32], to: &mut [u16]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this type is used only where the processor supports it.
        unsafe {
            avx512::convert(from, to);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("only selected on x86-64: {} {}", from.len(), to.len());
    }
    fn interleave(self, rows: &[&[f32]], to: &mut [u16]) {
        match rows {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this type is used only where the processor supports it.
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
        // SAFETY: guaranteed by the caller; this type is used only where the processor supports it.
        unsafe {
            avx512::run_bf16(job);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("only selected on x86-64: {}", job.rows);
    }
}

/// The nearest bfloat16, ties to even. NaN stays NaN.
#[inline(always)]
pub fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let is_nan = (bits & 0x7fff_ffff) > 0x7f80_0000;
    ((if is_nan { bits | 0x0040_0000 } else { rounded }) >> 16) as u16
}

/// The value of a bfloat16.
#[inline(always)]
pub fn from_bf16_bits(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

multiversion! {
    fn round(from: &[f32], to: &mut [f32]) {
        for (t, f) in to.iter_mut().zip(from) {
            *t = from_bf16_bits(bf16_bits(*f));
        }
    }
}
