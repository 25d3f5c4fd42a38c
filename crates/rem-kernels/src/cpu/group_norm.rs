//! Group norm of images `[n, h, w, c]`: each group of channels is normalized over all pixels of an image.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::math;
use super::norm::EPSILON;

/// Elements of pixels whose f32 sums go into one f64: they stay in the L1 cache for the second pass.
const BLOCK: usize = 4096;

/// Elements that loops over pixels take at a time: whole pixels, and enough for vectors where channels are few.
pub(super) fn span(channels: usize) -> usize {
    channels * (64 / channels.max(1)).max(1)
}

/// Channels' values, repeated over a [`span`].
pub(super) fn repeated(values: impl Iterator<Item = f32> + Clone, channels: usize) -> Vec<f32> {
    values.cycle().take(span(channels)).collect()
}

/// Mean and 1 / standard deviation of every image's groups, `[n, groups]`.
/// # Shapes
/// - `x`: `[n, pixels, channels]`
pub fn statistics(
    isa: Isa,
    x: &[f32],
    n: usize,
    pixels: usize,
    channels: usize,
    groups: usize,
) -> Vec<(f32, f32)> {
    assert_eq!(x.len(), n * pixels * channels);
    assert_eq!(
        channels % groups,
        0,
        "{channels} channels in {groups} groups"
    );
    let of_image = |x: &[f32]| {
        let moments = channel_moments(isa, x, channels);
        let group = |moments: &[Moments]| {
            let all = moments
                .iter()
                .fold(Moments::default(), |all, one| all.with(*one));
            let variance = all.squares / all.count;
            (
                all.mean as f32,
                (1.0 / (variance + f64::from(EPSILON)).sqrt()) as f32,
            )
        };
        moments
            .chunks_exact(channels / groups)
            .map(group)
            .collect::<Vec<_>>()
    };
    let image = (pixels * channels).max(1);
    if n <= 1 || x.len() < 4 * BLOCK {
        x.chunks_exact(image).flat_map(of_image).collect()
    } else {
        let images: Vec<_> = x.par_chunks_exact(image).map(of_image).collect();
        images.concat()
    }
}

/// Count, mean, and sum of squared deviations.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// The moments of both sets, without the cancellation of a difference of squares.
    fn with(self, other: Self) -> Self {
        let count = self.count + other.count;
        let between = other.mean - self.mean;
        Self {
            count,
            mean: self.mean + between * other.count / count,
            squares: self.squares
                + other.squares
                + between * between * self.count * other.count / count,
        }
    }
}

fn channel_moments(isa: Isa, x: &[f32], channels: usize) -> Vec<Moments> {
    let mut moments = vec![Moments::default(); channels];
    let wide = span(channels);
    let (mut mean, mut squares) = (vec![0f32; wide], vec![0f32; wide]);
    for block in x.chunks((BLOCK / wide).max(1) * wide) {
        block_moments(isa, block, channels, &mut mean, &mut squares);
        let count = (block.len() / channels) as f64;
        for (c, all) in moments.iter_mut().enumerate() {
            let squares: f64 = squares[c..]
                .iter()
                .step_by(channels)
                .copied()
                .map(f64::from)
                .sum();
            *all = all.with(Moments {
                count,
                mean: f64::from(mean[c]),
                squares,
            });
        }
    }
    moments
}

multiversion! {
    /// Each channel's mean, repeated over a span, and the squared deviations, summed for each element of a span.
    fn block_moments(x: &[f32], channels: usize, mean: &mut [f32], squares: &mut [f32]) {
        let wide = mean.len();
        mean.fill(0.0);
        squares.fill(0.0);
        for x in x.chunks(wide) {
            for (mean, x) in mean.iter_mut().zip(x) {
                *mean += x;
            }
        }
        let share = channels as f32 / x.len() as f32;
        let (first, rest) = mean.split_at_mut(channels);
        for other in rest.chunks_exact(channels) {
            for (mean, other) in first.iter_mut().zip(other) {
                *mean += other;
            }
        }
        for mean in first.iter_mut() {
            *mean *= share;
        }
        for other in rest.chunks_exact_mut(channels) {
            other.copy_from_slice(first);
        }
        for x in x.chunks(wide) {
            for ((squares, mean), x) in squares.iter_mut().zip(&*mean).zip(x) {
                *squares += (x - mean) * (x - mean);
            }
        }
    }
}

/// Backward pass of `silu(group_norm(x) * gamma + beta)`: turns the output's gradient in `d` into that of `x`, and
/// sets `d_gamma` and `d_beta`, summed over images in order.
/// # Shapes
/// - `x`, `d`: `[n, pixels, channels]`; `gamma`, `beta`, `d_gamma`, `d_beta`: `[channels]`
/// - `mean_and_scale`: `[n, groups]`, from [`statistics`]
#[allow(clippy::too_many_arguments)]
pub fn group_norm_silu_backward(
    isa: Isa,
    groups: usize,
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    mean_and_scale: &[(f32, f32)],
    d: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let channels = gamma.len();
    assert_eq!(x.len(), d.len());
    assert!(beta.len() == channels && d_gamma.len() == channels && d_beta.len() == channels);
    assert_eq!(
        channels % groups,
        0,
        "{channels} channels in {groups} groups"
    );
    let images = mean_and_scale.len() / groups;
    assert_eq!(mean_and_scale.len(), images * groups);
    let image = x.len() / images.max(1);
    assert_eq!(x.len(), images * image);
    assert_eq!(image % channels, 0);
    d_gamma.fill(0.0);
    d_beta.fill(0.0);
    if x.is_empty() {
        return;
    }
    type Parts<'a> = ((&'a [f32], &'a mut [f32]), &'a [(f32, f32)]);
    let back = |((x, d), statistics): Parts| image_backward(isa, x, d, gamma, beta, statistics);
    let sums: Vec<_> = if images == 1 || x.len() < 4 * BLOCK {
        let parts = x.chunks_exact(image).zip(d.chunks_exact_mut(image));
        parts
            .zip(mean_and_scale.chunks_exact(groups))
            .map(back)
            .collect()
    } else {
        let parts = x.par_chunks_exact(image).zip(d.par_chunks_exact_mut(image));
        parts
            .zip(mean_and_scale.par_chunks_exact(groups))
            .map(back)
            .collect()
    };
    for c in 0..channels {
        d_gamma[c] = sums.iter().map(|sums| sums.projection_sum[c]).sum::<f64>() as f32;
        d_beta[c] = sums.iter().map(|sums| sums.sum[c]).sum::<f64>() as f32;
    }
}

/// Sums over an image's pixels for each channel.
struct ChannelSums {
    /// Of the gradient of the norm's output.
    sum: Vec<f64>,
    /// Of that gradient times the normed pixel.
    projection_sum: Vec<f64>,
}

/// One image of [`group_norm_silu_backward`].
fn image_backward(
    isa: Isa,
    x: &[f32],
    d: &mut [f32],
    gamma: &[f32],
    beta: &[f32],
    statistics: &[(f32, f32)],
) -> ChannelSums {
    let channels = gamma.len();
    let in_group = channels / statistics.len();
    let scale: Vec<f32> = (0..channels).map(|c| statistics[c / in_group].1).collect();
    let mean = repeated((0..channels).map(|c| statistics[c / in_group].0), channels);
    let slope = repeated(scale.iter().zip(gamma).map(|(s, g)| s * g), channels);
    let beta = &repeated(beta.iter().copied(), channels);
    let wide = span(channels);
    let mut sums = ChannelSums {
        sum: vec![0f64; channels],
        projection_sum: vec![0f64; channels],
    };
    let (mut sum, mut projection_sum) = (vec![0f32; wide], vec![0f32; wide]);
    let block = (BLOCK / wide).max(1) * wide;
    for (x, d) in x.chunks(block).zip(d.chunks_mut(block)) {
        sum.fill(0.0);
        projection_sum.fill(0.0);
        silu_backward(
            isa,
            x,
            d,
            &mean,
            &slope,
            beta,
            &mut sum,
            &mut projection_sum,
        );
        for (i, (sum, projection_sum)) in sum.iter().zip(&projection_sum).enumerate() {
            let c = i % channels;
            sums.sum[c] += f64::from(*sum);
            sums.projection_sum[c] += f64::from(*projection_sum) * f64::from(scale[c]);
        }
    }
    // The norm removes a gradient's mean and its component projection_sum the normalized group.
    let count = (in_group * x.len() / channels) as f64;
    let (mut shift, mut projection) = (vec![0f32; channels], vec![0f32; channels]);
    for group in (0..channels).step_by(in_group) {
        let of_group = |sums: &[f64]| {
            let weighted = (group..group + in_group).map(|c| sums[c] * f64::from(gamma[c]));
            weighted.sum::<f64>() / count
        };
        let scale = f64::from(scale[group]);
        shift[group..group + in_group].fill((of_group(&sums.sum) * scale) as f32);
        projection[group..group + in_group]
            .fill((of_group(&sums.projection_sum) * scale * scale) as f32);
    }
    let shift = repeated(shift.into_iter(), channels);
    let projection = repeated(projection.into_iter(), channels);
    norm_backward(isa, x, d, &mean, &slope, &shift, &projection);
    sums
}

multiversion! {
    /// Turns the gradient of SiLU's output into that of the norm's output, and adds its sums.
    fn silu_backward(
        x: &[f32],
        d: &mut [f32],
        mean: &[f32],
        slope: &[f32],
        beta: &[f32],
        sum: &mut [f32],
        projection_sum: &mut [f32],
    ) {
        let wide = beta.len();
        for (x, d) in x.chunks(wide).zip(d.chunks_mut(wide)) {
            let count = x.len();
            let (d, mean, slope, beta) = (&mut d[..count], &mean[..count], &slope[..count], &beta[..count]);
            let (sum, projection_sum) = (&mut sum[..count], &mut projection_sum[..count]);
            for c in 0..count {
                let centered = x[c] - mean[c];
                d[c] *= math::silu_slope(centered * slope[c] + beta[c]);
                sum[c] += d[c];
                projection_sum[c] += d[c] * centered;
            }
        }
    }
}

multiversion! {
    /// Turns the gradient of the norm's output into that of its input.
    fn norm_backward(x: &[f32], d: &mut [f32], mean: &[f32], slope: &[f32], shift: &[f32], projection: &[f32]) {
        let wide = mean.len();
        for (x, d) in x.chunks(wide).zip(d.chunks_mut(wide)) {
            let count = x.len();
            let (d, mean, slope) = (&mut d[..count], &mean[..count], &slope[..count]);
            let (shift, projection) = (&shift[..count], &projection[..count]);
            for c in 0..count {
                d[c] = d[c] * slope[c] - shift[c] - (x[c] - mean[c]) * projection[c];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    /// Images, pixels, channels, groups.
    const SIZES: [(usize, usize, usize, usize); 5] = [
        (1, 1, 2, 1),
        (2, 35, 6, 2),
        (3, 16, 32, 8),
        (2, 900, 20, 4),
        (5, 64, 48, 1),
    ];

    /// Mean and 1 / standard deviation in f64.
    fn exact(x: &[f32], pixels: usize, channels: usize, groups: usize) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        for image in x.chunks_exact(pixels * channels) {
            for group in 0..groups {
                let belongs = |i: &usize| i % channels * groups / channels == group;
                let of_group = || {
                    (0..image.len())
                        .filter(belongs)
                        .map(|i| f64::from(image[i]))
                };
                let count = of_group().count() as f64;
                let mean = of_group().sum::<f64>() / count;
                let variance = of_group().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                found.push((mean, 1.0 / (variance + 1e-6).sqrt()));
            }
        }
        found
    }

    #[test]
    fn statistics_match_f64_far_from_zero() {
        for (n, pixels, channels, groups) in SIZES {
            for offset in [0.0, 100.0] {
                let x: Vec<f32> = numbers(n * pixels * channels, 1)
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x + offset + (i % channels) as f32 / channels as f32)
                    .collect();
                let expected = exact(&x, pixels, channels, groups);
                for isa in Isa::available() {
                    let found = statistics(isa, &x, n, pixels, channels, groups);
                    assert_eq!(found.len(), expected.len());
                    for ((mean, scale), (m, s)) in found.iter().zip(&expected) {
                        assert!(
                            (f64::from(*mean) - m).abs() < 1e-6 * (1.0 + m.abs()),
                            "{mean} for {m}"
                        );
                        assert!(
                            (f64::from(*scale) / s - 1.0).abs() < 1e-4,
                            "{scale} for {s}"
                        );
                    }
                }
            }
        }
    }

    /// `sum(silu(group_norm(x) * gamma + beta) * weights)`
    fn loss(
        x: &[f32],
        gamma: &[f32],
        beta: &[f32],
        groups: usize,
        pixels: usize,
        weights: &[f32],
    ) -> f64 {
        let channels = gamma.len();
        let statistics = exact(x, pixels, channels, groups);
        let term = |i: usize| {
            let channel = i % channels;
            let (mean, scale) =
                statistics[i / (pixels * channels) * groups + channel * groups / channels];
            let normed = (f64::from(x[i]) - mean) * scale;
            let y = normed * f64::from(gamma[channel]) + f64::from(beta[channel]);
            y / (1.0 + (-y).exp()) * f64::from(weights[i])
        };
        (0..x.len()).map(term).sum()
    }

    /// Gradients of x, gamma and beta from those of the output.
    fn backward(
        isa: Isa,
        groups: usize,
        x: &[f32],
        (gamma, beta): (&[f32], &[f32]),
        statistics: &[(f32, f32)],
        mut d: Vec<f32>,
    ) -> [Vec<f32>; 3] {
        let mut sums = [vec![f32::NAN; gamma.len()], vec![f32::NAN; gamma.len()]];
        let [d_gamma, d_beta] = &mut sums;
        group_norm_silu_backward(
            isa, groups, x, gamma, beta, statistics, &mut d, d_gamma, d_beta,
        );
        let [d_gamma, d_beta] = sums;
        [d, d_gamma, d_beta]
    }

    #[test]
    fn backward_matches_finite_differences() {
        for (n, pixels, channels, groups) in SIZES {
            let x = numbers(n * pixels * channels, 1);
            let (gamma, beta) = (numbers(channels, 2), numbers(channels, 3));
            let weights = numbers(x.len(), 4);
            let run = |x: &[f32], gamma: &[f32], beta: &[f32]| {
                loss(x, gamma, beta, groups, pixels, &weights)
            };
            // The slope of `run` projection_sum one of the numbers.
            let slope = |values: &[f32], i: usize, run: &dyn Fn(&[f32]) -> f64| {
                let mut moved = values.to_vec();
                moved[i] = values[i] + 0.004;
                let (above, high) = (run(&moved), moved[i]);
                moved[i] = values[i] - 0.004;
                (above - run(&moved)) / f64::from(high - moved[i])
            };
            for isa in Isa::available() {
                let statistics = statistics(isa, &x, n, pixels, channels, groups);
                let d = weights.clone();
                let [d, d_gamma, d_beta] =
                    backward(isa, groups, &x, (&gamma, &beta), &statistics, d);
                let near = |found: f32, expected: f64, what: &str| {
                    let error = (f64::from(found) - expected).abs();
                    assert!(
                        error < 2e-3 * (1.0 + expected.abs()),
                        "{what}: {found} for {expected} ({isa:?})"
                    );
                };
                // Each slope takes a pass over all images, so check only some.
                for i in (0..x.len()).step_by(x.len().div_ceil(24)) {
                    near(d[i], slope(&x, i, &|x| run(x, &gamma, &beta)), "x");
                }
                for c in 0..channels.min(8) {
                    near(
                        d_gamma[c],
                        slope(&gamma, c, &|gamma| run(&x, gamma, &beta)),
                        "gamma",
                    );
                    near(
                        d_beta[c],
                        slope(&beta, c, &|beta| run(&x, &gamma, beta)),
                        "beta",
                    );
                }
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let (n, pixels, channels, groups) = (7, 300, 32, 4);
        let x = numbers(n * pixels * channels, 1);
        let (gamma, beta) = (numbers(channels, 2), numbers(channels, 3));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let isa = Isa::selected();
                let statistics = statistics(isa, &x, n, pixels, channels, groups);
                let d = numbers(x.len(), 4);
                let gradients = backward(isa, groups, &x, (&gamma, &beta), &statistics, d);
                (statistics, gradients)
            })
        };
        assert!(run(1) == run(3));
    }
}
