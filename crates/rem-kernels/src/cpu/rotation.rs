//! Rotary position encoding: pairs of adjacent channels are rotated by their row's angles (Appendix A.3).

use super::isa::{Isa, multiversion};

/// Cosine and sine of each row's rotation, `[rows, head_dim]`.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a> {
    /// Cosines; neighbors are equal.
    pub cos: &'a [f32],
    /// Sines, like `cos`.
    pub sin: &'a [f32],
}

impl Rotation<'_> {
    /// Row `row` of a head, `[head_dim]`, rotated and multiplied by `scale`.
    pub(super) fn apply(&self, isa: Isa, row: usize, x: &[f32], scale: f32, out: &mut [f32]) {
        let (cos, sin) = self.row(row, x.len());
        rotate(isa, x, cos, sin, scale, out);
    }

    /// Rows from `first` on, each rotated and multiplied by `scale`: `out` is `[rows, dim]`, and rows of `x` are `stride`
    /// apart.
    #[expect(clippy::too_many_arguments, reason = "sizes of two layouts")]
    pub(super) fn apply_rows(
        &self,
        isa: Isa,
        first: usize,
        x: &[f32],
        stride: usize,
        dim: usize,
        scale: f32,
        out: &mut [f32],
    ) {
        let (cos, sin) = (&self.cos[first * dim..], &self.sin[first * dim..]);
        rotate_rows(isa, x, stride, dim, cos, sin, scale, out);
    }

    /// The transpose of [`apply`](Self::apply): from a gradient of its output to that of its input.
    pub(super) fn backward(&self, isa: Isa, row: usize, d: &[f32], scale: f32, out: &mut [f32]) {
        let (cos, sin) = self.row(row, d.len());
        rotate_backward(isa, d, cos, sin, scale, out);
    }

    fn row(&self, row: usize, dim: usize) -> (&[f32], &[f32]) {
        (&self.cos[row * dim..][..dim], &self.sin[row * dim..][..dim])
    }
}

multiversion! {
    /// Rotates adjacent channels (a, b) to (a cos - b sin, b cos + a sin) and multiplies by `scale`.
    fn rotate(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
        for (((o, x), c), s) in out.chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(cos.chunks_exact(2)).zip(sin.chunks_exact(2)) {
            o[0] = (x[0] * c[0] - x[1] * s[0]) * scale;
            o[1] = (x[1] * c[1] + x[0] * s[1]) * scale;
        }
    }
}

multiversion! {
    /// As [`rotate`] for rows of `dim` channels. Rows of `x` are `stride` apart.
    fn rotate_rows(x: &[f32], stride: usize, dim: usize, cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(dim).enumerate() {
            let (x, cos, sin) = (&x[i * stride..][..dim], &cos[i * dim..][..dim], &sin[i * dim..][..dim]);
            let pairs = out.chunks_exact_mut(2).zip(x.chunks_exact(2));
            for ((o, x), (c, s)) in pairs.zip(cos.chunks_exact(2).zip(sin.chunks_exact(2))) {
                o[0] = (x[0] * c[0] - x[1] * s[0]) * scale;
                o[1] = (x[1] * c[1] + x[0] * s[1]) * scale;
            }
        }
    }
}

multiversion! {
    /// The transpose of [`rotate`].
    fn rotate_backward(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
        for (((o, x), c), s) in out.chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(cos.chunks_exact(2)).zip(sin.chunks_exact(2)) {
            o[0] = (x[0] * c[0] + x[1] * s[1]) * scale;
            o[1] = (x[1] * c[1] - x[0] * s[0]) * scale;
        }
    }
}
