//! Max pooling over 2x2 windows of ReLU(x). An odd last row or column belongs to no window.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 64 * 1024;

/// `[n, h, w, c]`
#[derive(Clone, Copy, Debug)]
pub struct Images {
    /// Number of images.
    pub count: usize,
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Channels of a pixel.
    pub channels: usize,
}

impl Images {
    fn row(&self) -> usize {
        self.width * self.channels
    }

    fn pooled_row(&self) -> usize {
        self.width / 2 * self.channels
    }

    fn inputs(&self) -> usize {
        self.count * self.height * self.row()
    }

    fn outputs(&self) -> usize {
        self.count * (self.height / 2) * self.pooled_row()
    }
}

/// `out[i, j] = max(relu(x[2i..2i + 2, 2j..2j + 2]))`
/// # Shapes
/// - `x`: `[n, h, w, c]`; `out`: `[n, h / 2, w / 2, c]`
pub fn max_pool_relu(isa: Isa, images: Images, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), images.inputs());
    assert_eq!(out.len(), images.outputs());
    if out.is_empty() {
        return;
    }
    let pool = |(i, out): (usize, &mut [f32])| {
        let windows = images.height / 2;
        let first = i / windows * images.height + i % windows * 2;
        let rows = &x[first * images.row()..][..2 * images.row()];
        pool_row(isa, rows, images.channels, out);
    };
    if x.len() < PARALLEL_FROM {
        out.chunks_exact_mut(images.pooled_row())
            .enumerate()
            .for_each(pool);
    } else {
        out.par_chunks_exact_mut(images.pooled_row())
            .enumerate()
            .for_each(pool);
    }
}

multiversion! {
    /// Pools two rows of pixels to one.
    fn pool_row(rows: &[f32], channels: usize, out: &mut [f32]) {
        // Propagates NaN.
        let larger = |a: f32, b: f32| if b > a || b.is_nan() { b } else { a };
        let (above, below) = rows.split_at(rows.len() / 2);
        let windows = above.chunks_exact(2 * channels).zip(below.chunks_exact(2 * channels));
        for ((above, below), out) in windows.zip(out.chunks_exact_mut(channels)) {
            let ((a, b), (c, d)) = (above.split_at(channels), below.split_at(channels));
            for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *out = larger(larger(larger(larger(0.0, *a), *b), *c), *d);
            }
        }
    }
}

/// Backward pass of [`max_pool_relu`]: the gradient goes to the first maximum of a window, if that is positive.
/// # Shapes
/// - `x`, `d_x`: `[n, h, w, c]`; `d_out`: `[n, h / 2, w / 2, c]`
pub fn max_pool_relu_backward(isa: Isa, images: Images, x: &[f32], d_out: &[f32], d_x: &mut [f32]) {
    assert!(x.len() == images.inputs() && d_x.len() == images.inputs());
    assert_eq!(d_out.len(), images.outputs());
    if d_x.is_empty() {
        return;
    }
    let (row, windows) = (images.row(), images.height / 2);
    let mut pairs = Vec::with_capacity(images.count * windows);
    for (image, d_x) in d_x.chunks_exact_mut(images.height * row).enumerate() {
        let (windowed, last) = d_x.split_at_mut(windows * 2 * row);
        last.fill(0.0);
        for (i, d_x) in windowed.chunks_exact_mut(2 * row).enumerate() {
            let first = (image * images.height + 2 * i) * row;
            let from = (image * windows + i) * images.pooled_row();
            pairs.push((
                &x[first..first + 2 * row],
                &d_out[from..from + images.pooled_row()],
                d_x,
            ));
        }
    }
    if x.len() < PARALLEL_FROM {
        pairs
            .into_iter()
            .for_each(|(x, d_out, d_x)| unpool_row(isa, x, d_out, images.channels, d_x));
    } else {
        pairs
            .into_par_iter()
            .for_each(|(x, d_out, d_x)| unpool_row(isa, x, d_out, images.channels, d_x));
    }
}

multiversion! {
    /// The gradient of two rows of pixels from that of one.
    fn unpool_row(rows: &[f32], d_out: &[f32], channels: usize, d_rows: &mut [f32]) {
        let half = rows.len() / 2;
        let (above, below) = rows.split_at(half);
        let (d_above, d_below) = d_rows.split_at_mut(half);
        let in_windows = d_out.len() * 2;
        d_above[in_windows..].fill(0.0);
        d_below[in_windows..].fill(0.0);
        let pixels = above.chunks_exact(2 * channels).zip(below.chunks_exact(2 * channels));
        let gradients = d_above.chunks_exact_mut(2 * channels).zip(d_below.chunks_exact_mut(2 * channels));
        let windows = pixels.zip(gradients).zip(d_out.chunks_exact(channels));
        for (((above, below), (d_above, d_below)), d_out) in windows {
            let ((a, b), (c, d)) = (above.split_at(channels), below.split_at(channels));
            let ((da, db), (dc, dd)) = (d_above.split_at_mut(channels), d_below.split_at_mut(channels));
            for i in 0..channels {
                let (a, b, c, d, g) = (a[i], b[i], c[i], d[i], d_out[i]);
                da[i] = if a > 0.0 && a >= b && a >= c && a >= d { g } else { 0.0 };
                db[i] = if b > 0.0 && b > a && b >= c && b >= d { g } else { 0.0 };
                dc[i] = if c > 0.0 && c > a && c > b && c >= d { g } else { 0.0 };
                dd[i] = if d > 0.0 && d > a && d > b && d > c { g } else { 0.0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    const SIZES: [(usize, usize, usize, usize); 5] = [
        (1, 2, 2, 1),
        (2, 6, 4, 3),
        (2, 5, 7, 20),
        (4, 32, 32, 33),
        (1, 1, 4, 2),
    ];

    #[test]
    fn gradient_goes_to_the_first_maximum_of_a_window() {
        for (count, height, width, channels) in SIZES {
            let images = Images {
                count,
                height,
                width,
                channels,
            };
            // Few values, so that there are ties; many windows without a positive one.
            let coarse = |x: &f32| (x * 3.0 - 1.0).round() / 2.0;
            let x: Vec<f32> = numbers(images.inputs(), 1).iter().map(coarse).collect();
            let d_out = numbers(images.outputs(), 2);
            let mut expected = vec![0f32; images.outputs()];
            let mut expected_backward = vec![0f32; images.inputs()];
            for (o, expected) in expected.iter_mut().enumerate() {
                let (pixel, channel) = (o / channels, o % channels);
                let (row, column) = (pixel / (width / 2), pixel % (width / 2));
                let (image, row) = (row / (height / 2), row % (height / 2));
                let mut best = None;
                for i in 0..4 {
                    let (y, x_) = (2 * row + i / 2, 2 * column + i % 2);
                    let at = ((image * height + y) * width + x_) * channels + channel;
                    if x[at] > *expected {
                        *expected = x[at];
                        best = Some(at);
                    }
                }
                if let Some(at) = best {
                    expected_backward[at] = d_out[o];
                }
            }
            for isa in Isa::available() {
                let mut out = vec![f32::NAN; images.outputs()];
                max_pool_relu(isa, images, &x, &mut out);
                assert_eq!(out, expected, "{images:?} {isa:?}");
                let mut d_x = vec![f32::NAN; images.inputs()];
                max_pool_relu_backward(isa, images, &x, &d_out, &mut d_x);
                assert_eq!(d_x, expected_backward, "{images:?} {isa:?}");
            }
        }
    }

    #[test]
    fn nan_propagates() {
        let images = Images {
            count: 1,
            height: 2,
            width: 2,
            channels: 1,
        };
        for place in 0..4 {
            let mut x = [1.0, 2.0, 3.0, 4.0];
            x[place] = f32::NAN;
            let mut out = [0.0];
            max_pool_relu(Isa::selected(), images, &x, &mut out);
            assert!(out[0].is_nan());
        }
    }
}
