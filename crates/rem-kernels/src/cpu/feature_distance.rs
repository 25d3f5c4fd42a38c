//! One stage of LPIPS: the distance between the features of two images.
//!
//! Features are `[n, pixels, channels]`, before their ReLU, which is applied here. Each pixel's channels are
//! divided by their norm; the distance is the sum of squared differences, weighted by the head and averaged over
//! pixels.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::math::relu;
use super::norm::sum_of;
use super::scratch::Scratch;

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 32 * 1024;
/// Approximate number of elements per task.
const BLOCK: usize = 16 * 1024;

/// Lower bound of the squared norm: keeps the square root's gradient finite where all channels are zero.
const FLOOR: f32 = 1e-20;
const EPSILON: f32 = 1e-10;

/// Adds the distance of each pair of images to `out`.
/// # Shapes
/// - `a`, `b`: `[n, pixels, channels]`; `head`: `[channels]`; `out`: `[n]`
pub fn forward(isa: Isa, a: &[f32], b: &[f32], head: &[f32], out: &mut [f32]) {
    let pixels = pixels(a, b, head, out.len());
    if pixels == 0 {
        return;
    }
    let channels = head.len();
    // One term per pixel, summed afterwards in an order that does not depend on threads.
    let mut terms = Scratch::new(out.len() * pixels);
    if a.len() < PARALLEL_FROM {
        forward_pixels(isa, a, b, head, &mut terms);
    } else {
        let rows = BLOCK.div_ceil(channels);
        let blocks = a
            .par_chunks(rows * channels)
            .zip(b.par_chunks(rows * channels));
        blocks
            .zip(terms.par_chunks_mut(rows))
            .for_each(|((a, b), terms)| {
                forward_pixels(isa, a, b, head, terms);
            });
    }
    for (out, terms) in out.iter_mut().zip(terms.chunks_exact(pixels)) {
        *out += mean(isa, terms);
    }
}

/// Adds the gradient of `b`, before its ReLU, to `d_b`.
/// # Shapes
/// - `a`, `b`, `d_b`: `[n, pixels, channels]`; `head`: `[channels]`; `d_out`: `[n]`
pub fn backward(isa: Isa, a: &[f32], b: &[f32], head: &[f32], d_out: &[f32], d_b: &mut [f32]) {
    let pixels = pixels(a, b, head, d_out.len());
    assert_eq!(d_b.len(), b.len());
    if a.len() < PARALLEL_FROM {
        return backward_pixels(isa, a, b, head, d_out, pixels, 0, d_b);
    }
    let rows = BLOCK.div_ceil(head.len());
    let size = rows * head.len();
    let blocks = a
        .par_chunks(size)
        .zip(b.par_chunks(size))
        .zip(d_b.par_chunks_mut(size));
    blocks.enumerate().for_each(|(i, ((a, b), d_b))| {
        backward_pixels(isa, a, b, head, d_out, pixels, i * rows, d_b);
    });
}

/// Pixels of an image.
fn pixels(a: &[f32], b: &[f32], head: &[f32], images: usize) -> usize {
    let pixels = a.len() / (images * head.len()).max(1);
    let count = images * pixels * head.len();
    assert!(
        a.len() == b.len() && a.len() == count && !head.is_empty(),
        "{images} images, {pixels} pixels"
    );
    pixels
}

multiversion! {
    fn forward_pixels(a: &[f32], b: &[f32], head: &[f32], terms: &mut [f32]) {
        let channels = head.len();
        for ((a, b), term) in a.chunks_exact(channels).zip(b.chunks_exact(channels)).zip(terms) {
            let (scale_a, scale_b) = (1.0 / (length(a) + EPSILON), 1.0 / (length(b) + EPSILON));
            *term = sum_of([a, b, head], |[a, b, head]| {
                let difference = relu(a) * scale_a - relu(b) * scale_b;
                head * difference * difference
            });
        }
    }
}

multiversion! {
    /// `first` is the index of the first pixel among those of all images.
    fn backward_pixels(
        a: &[f32],
        b: &[f32],
        head: &[f32],
        d_out: &[f32],
        pixels: usize,
        first: usize,
        d_b: &mut [f32],
    ) {
        let channels = head.len();
        let rows = a.chunks_exact(channels).zip(b.chunks_exact(channels));
        for (i, ((a, b), d_b)) in rows.zip(d_b.chunks_exact_mut(channels)).enumerate() {
            let d = 2.0 * d_out[(first + i) / pixels] / pixels as f32;
            let length_b = length(b);
            let (scale_a, scale_b) = (1.0 / (length(a) + EPSILON), 1.0 / (length_b + EPSILON));
            // The gradient of a normalized channel.
            let slope = |a: f32, b: f32, head: f32| d * head * (relu(b) * scale_b - relu(a) * scale_a);
            let along = sum_of([a, b, head], |[a, b, head]| slope(a, b, head) * (relu(b) * scale_b));
            // A norm at its lower bound is constant.
            let along = if length_b > FLOOR.sqrt() { along / length_b } else { 0.0 };
            for (((to, a), b), head) in d_b.iter_mut().zip(a).zip(b).zip(head) {
                let gradient = (slope(*a, *b, *head) - along * b) * scale_b;
                *to += if *b > 0.0 { gradient } else { 0.0 };
            }
        }
    }
}

/// The norm of a pixel's channels.
#[inline(always)]
fn length(channels: &[f32]) -> f32 {
    let sum = sum_of([channels], |[x]| relu(x) * relu(x));
    (if sum < FLOOR { FLOOR } else { sum }).sqrt()
}

multiversion! {
    fn mean(values: &[f32]) -> f32 {
        sum_of([values], |[x]| x) / values.len() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    struct Case {
        images: usize,
        a: Vec<f32>,
        b: Vec<f32>,
        head: Vec<f32>,
    }

    impl Case {
        fn new(images: usize, pixels: usize, channels: usize, size: f32) -> Self {
            let count = images * pixels * channels;
            let features = |seed| {
                numbers(count, seed)
                    .iter()
                    .map(|x| x * size)
                    .collect::<Vec<f32>>()
            };
            let (mut a, mut b) = (features(1), features(2));
            // Pixels whose ReLU is all zero: the first of b, the last of a, one of both.
            b[..channels].fill(-size);
            a[count - channels..].fill(-size);
            if pixels > 2 {
                a[channels..2 * channels].fill(0.0);
                b[channels..2 * channels].fill(0.0);
            }
            let head = numbers(channels, 3).iter().map(|x| x.abs()).collect();
            Self { images, a, b, head }
        }

        fn forward(&self, isa: Isa) -> Vec<f32> {
            let mut out = vec![0.0; self.images];
            forward(isa, &self.a, &self.b, &self.head, &mut out);
            out
        }

        fn backward(&self, isa: Isa) -> Vec<f32> {
            let mut d_b = vec![0.0; self.b.len()];
            backward(
                isa,
                &self.a,
                &self.b,
                &self.head,
                &numbers(self.images, 4),
                &mut d_b,
            );
            d_b
        }
    }

    /// The distance at one pixel, in f64.
    fn distance(a: &[f64], b: &[f64], head: &[f32]) -> f64 {
        let unit = |x: &[f64]| -> Vec<f64> {
            let sum: f64 = x.iter().map(|x| x.max(0.0).powi(2)).sum();
            let norm = sum.max(1e-20).sqrt() + 1e-10;
            x.iter().map(|x| x.max(0.0) / norm).collect()
        };
        let pairs = unit(a).into_iter().zip(unit(b));
        pairs
            .zip(head)
            .map(|((a, b), head)| f64::from(*head) * (a - b).powi(2))
            .sum()
    }

    const SIZES: [(usize, usize, usize); 4] = [(1, 1, 1), (2, 5, 3), (3, 7, 37), (2, 130, 131)];

    #[test]
    fn forward_matches_f64() {
        for (images, pixels, channels) in SIZES {
            let case = Case::new(images, pixels, channels, 3.0);
            let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
            let (a, b) = (wide(&case.a), wide(&case.b));
            let rows = a.chunks_exact(channels).zip(b.chunks_exact(channels));
            let terms: Vec<f64> = rows.map(|(a, b)| distance(a, b, &case.head)).collect();
            for isa in Isa::available() {
                let mut out = vec![1.0; images];
                forward(isa, &case.a, &case.b, &case.head, &mut out);
                for (found, terms) in out.iter().zip(terms.chunks_exact(pixels)) {
                    let exact = 1.0 + terms.iter().sum::<f64>() / pixels as f64;
                    assert!(
                        (f64::from(*found) - exact).abs() < 2e-6,
                        "{isa:?}: {found} for {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn backward_matches_finite_differences() {
        // The second size is below the lower bound of the norm.
        for size in [1.0f32, 1e-12] {
            for (images, pixels, channels) in SIZES {
                let case = Case::new(images, pixels, channels, size);
                let d_out = numbers(images, 4);
                let step = 1e-6 * f64::from(size);
                let expected: Vec<f64> = (0..case.b.len())
                    .map(|i| {
                        let (row, channel) = (i / channels, i % channels);
                        let part = |x: &[f32]| {
                            x[row * channels..][..channels]
                                .iter()
                                .map(|x| f64::from(*x))
                                .collect()
                        };
                        let (a, mut b): (Vec<f64>, Vec<f64>) = (part(&case.a), part(&case.b));
                        // The slope at 0 is 0 by convention.
                        if b[channel] == 0.0 {
                            return 0.0;
                        }
                        let mut at = |by: f64| {
                            b[channel] = f64::from(case.b[i]) + by;
                            distance(&a, &b, &case.head)
                        };
                        let slope = (at(step) - at(-step)) / (2.0 * step);
                        slope * f64::from(d_out[row / pixels]) / pixels as f64
                    })
                    .collect();
                let scale = expected.iter().fold(0.1, |m: f64, x| m.max(x.abs()));
                for isa in Isa::available() {
                    for (i, (found, expected)) in
                        case.backward(isa).iter().zip(&expected).enumerate()
                    {
                        let error = (f64::from(*found) - expected).abs() / scale;
                        assert!(error < 1e-5, "{isa:?} {size} {i}: {found} for {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn backward_accumulates_into_the_gradient() {
        let case = Case::new(2, 9, 21, 1.0);
        let isa = Isa::selected();
        let mut d_b = vec![10.0; case.b.len()];
        backward(isa, &case.a, &case.b, &case.head, &numbers(2, 4), &mut d_b);
        assert!(
            d_b.iter()
                .zip(case.backward(isa))
                .all(|(sum, d)| *sum == 10.0 + d)
        );
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let case = Case::new(3, 500, 67, 1.0);
        let isa = Isa::selected();
        let run = || (case.forward(isa), case.backward(isa));
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert!(pool(1).install(run) == pool(3).install(run));
    }
}
