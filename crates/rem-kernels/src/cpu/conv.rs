//! Convolutions of channels-last images, `[n, h, w, c]`, with weights `[c_out, c_in, kh, kw]`.
//!
//! There is no im2col: a tile takes a pointer per pixel into a padded copy of a few rows of the image, and each row
//! of a window is a segment of the sum. Norm and activation are applied while that copy is made.

#[cfg(test)]
mod reference;
mod sliding;
mod stage;
mod sweep;
#[cfg(test)]
mod tests;
mod weight_gradient;

pub use sliding::{forward_with, input_gradient_with};
pub use stage::{Stage, activation_backward};
pub use weight_gradient::weight_gradient_with;

use rayon::prelude::*;

use super::isa::Isa;
use super::tile::{Precision, with_tile};
use super::transpose::transpose;

/// The kinds of convolution that the tokenizer and LPIPS use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvKind {
    /// 3x3, padded with a zero on each side.
    Same,
    /// 3x3 at every second pixel of an image with even sides, padded with a zero on the right and below.
    Down,
    /// 3x3, padded with a zero on each side, over the image with every pixel doubled along both axes.
    Up,
    /// 1x1.
    Pointwise,
}

impl ConvKind {
    /// Height and width of a kernel.
    pub fn side(self) -> usize {
        match self {
            Self::Same | Self::Down | Self::Up => 3,
            Self::Pointwise => 1,
        }
    }
}

/// The sizes of a convolution; height and width are those of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of images.
    pub images: usize,
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Input channels.
    pub c_in: usize,
    /// Output channels.
    pub c_out: usize,
}

impl Shape {
    /// Height and width of the output.
    pub fn output(&self, kind: ConvKind) -> (usize, usize) {
        match kind {
            ConvKind::Same | ConvKind::Pointwise => (self.height, self.width),
            ConvKind::Down => (self.height / 2, self.width / 2),
            ConvKind::Up => (self.height * 2, self.width * 2),
        }
    }

    /// Elements of the input.
    pub fn inputs(&self) -> usize {
        self.images * self.height * self.width * self.c_in
    }

    /// Elements of the output.
    pub fn outputs(&self, kind: ConvKind) -> usize {
        let (height, width) = self.output(kind);
        self.images * height * width * self.c_out
    }

    /// Elements of the weight.
    pub fn weights(&self, kind: ConvKind) -> usize {
        self.c_out * self.c_in * kind.side() * kind.side()
    }

    fn check(&self, kind: ConvKind, inputs: usize, weights: usize, outputs: usize) {
        assert!(
            kind != ConvKind::Down
                || (self.height.is_multiple_of(2) && self.width.is_multiple_of(2)),
            "downsampling needs even sides: {self:?}"
        );
        assert_eq!(inputs, self.inputs(), "input of {self:?}");
        assert_eq!(weights, self.weights(kind), "weight of {self:?}");
        assert_eq!(outputs, self.outputs(kind), "output of {self:?}");
    }
}

/// `out = conv(stage(x)) + bias`; see [`forward_with`].
#[allow(clippy::too_many_arguments)]
pub fn forward(
    isa: Isa,
    precision: Precision,
    shape: Shape,
    kind: ConvKind,
    stage: Stage,
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    with_tile!(isa, precision, tile => forward_with(tile, shape, kind, stage, x, weight, bias, out));
}

/// The gradient of the staged input; see [`input_gradient_with`].
pub fn input_gradient(
    isa: Isa,
    precision: Precision,
    shape: Shape,
    kind: ConvKind,
    weight: &[f32],
    d_out: &[f32],
    d_staged: &mut [f32],
) {
    with_tile!(isa, precision, tile => input_gradient_with(tile, shape, kind, weight, d_out, d_staged));
}

/// The gradient of the weight; see [`weight_gradient_with`]. The bias's is `norm::column_sums` of `d_out`.
#[allow(clippy::too_many_arguments)]
pub fn weight_gradient(
    isa: Isa,
    precision: Precision,
    shape: Shape,
    kind: ConvKind,
    stage: Stage,
    x: &[f32],
    d_out: &[f32],
    d_weight: &mut [f32],
) {
    with_tile!(isa, precision, tile => weight_gradient_with(tile, shape, kind, stage, x, d_out, d_weight));
}

/// Calls `work` with all parts, on all threads if `parallel`.
fn for_each<P: Send>(parts: Vec<P>, parallel: bool, work: impl Fn(P) + Sync + Send) {
    if parallel {
        parts.into_par_iter().for_each(work);
    } else {
        parts.into_iter().for_each(work);
    }
}

/// `from`, of `rows` rows and `columns` columns, transposed.
fn transposed(isa: Isa, from: &[f32], rows: usize, columns: usize, to: &mut [f32], parallel: bool) {
    /// Columns that become rows at a time.
    const BAND: usize = 64;
    let bands = to.chunks_mut((BAND * rows).max(1)).enumerate();
    for_each(bands.collect(), parallel, |(i, to)| {
        transpose(
            isa,
            &from[i * BAND..],
            columns,
            rows,
            to.len() / rows,
            to,
            rows,
        );
    });
}
