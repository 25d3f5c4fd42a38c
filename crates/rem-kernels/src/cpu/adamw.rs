//! AdamW in one pass over parameters, gradients and moments, and the sums of squares that clipping needs.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};

/// Minimum number of elements to split over threads.
const PARALLEL_FROM: usize = 32 * 1024;
/// Number of elements per task.
const BLOCK: usize = 16 * 1024;

/// The constants of one AdamW step of one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    /// Learning rate.
    pub learning_rate: f64,
    /// Decay of the first moment.
    pub beta_1: f64,
    /// Decay of the second moment.
    pub beta_2: f64,
    /// Added to the denominator.
    pub epsilon: f64,
    /// 1 - β₁ᵗ
    pub bias_correction_1: f64,
    /// The square root of 1 - β₂ᵗ
    pub bias_correction_2_sqrt: f64,
    /// Factor of the parameter after weight decay, 1 - learning rate · weight decay.
    pub decay_factor: f64,
    /// Factor of the gradient after clipping.
    pub gradient_scale: f64,
}

/// A parameter with its gradient and moments, in slices of equal length.
pub struct Parameter<'a> {
    /// Constants of the step.
    pub step: AdamWStep,
    /// The parameter, updated in place.
    pub values: &'a mut [f32],
    /// Its gradient, before clipping.
    pub gradient: &'a [f32],
    /// First moment, updated in place.
    pub first: &'a mut [f32],
    /// Second moment, updated in place.
    pub second: &'a mut [f32],
}

impl<'a> Parameter<'a> {
    fn blocks(self) -> impl Iterator<Item = Parameter<'a>> {
        let step = self.step;
        let count = self.values.len();
        assert!(
            self.gradient.len() == count && self.first.len() == count && self.second.len() == count
        );
        let moments = self
            .first
            .chunks_mut(BLOCK)
            .zip(self.second.chunks_mut(BLOCK));
        let values = self
            .values
            .chunks_mut(BLOCK)
            .zip(self.gradient.chunks(BLOCK));
        values
            .zip(moments)
            .map(move |((values, gradient), (first, second))| Parameter {
                step,
                values,
                gradient,
                first,
                second,
            })
    }
}

/// One step of many parameters, split over threads.
pub fn update_all(isa: Isa, parameters: Vec<Parameter>) {
    let count: usize = parameters.iter().map(|p| p.values.len()).sum();
    let blocks = parameters.into_iter().flat_map(Parameter::blocks);
    let work = |p: Parameter| update_block(isa, p.step, p.values, p.gradient, p.first, p.second);
    if count < PARALLEL_FROM {
        blocks.for_each(work);
    } else {
        blocks.collect::<Vec<_>>().into_par_iter().for_each(work);
    }
}

multiversion! {
    fn update_block(step: AdamWStep, values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
        let scale = step.gradient_scale as f32;
        let (beta_1, one_minus_beta_1) = (step.beta_1 as f32, (1.0 - step.beta_1) as f32);
        let (beta_2, one_minus_beta_2) = (step.beta_2 as f32, (1.0 - step.beta_2) as f32);
        let rate = (step.learning_rate / step.bias_correction_1) as f32;
        let (bias_correction_2_sqrt, epsilon) = (step.bias_correction_2_sqrt as f32, step.epsilon as f32);
        let decay_factor = step.decay_factor as f32;
        for (((x, g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
            let g = g * scale;
            *m = *m * beta_1 + g * one_minus_beta_1;
            *v = *v * beta_2 + g * g * one_minus_beta_2;
            *x = *x * decay_factor - *m / (v.sqrt() / bias_correction_2_sqrt + epsilon) * rate;
        }
    }
}

/// The sum of squares of each gradient; not finite if one of its elements is not.
pub fn sums_of_squares(isa: Isa, gradients: &[&[f32]]) -> Vec<f64> {
    let blocks = gradients.iter().enumerate();
    let blocks =
        blocks.flat_map(|(i, gradient)| gradient.chunks(BLOCK).map(move |block| (i, block)));
    let blocks: Vec<(usize, &[f32])> = blocks.collect();
    let sum = |(i, block): &(usize, &[f32])| (*i, sum_of_block(isa, block));
    let count: usize = gradients.iter().map(|gradient| gradient.len()).sum();
    let parts: Vec<(usize, f64)> = if count < PARALLEL_FROM {
        blocks.iter().map(sum).collect()
    } else {
        blocks.par_iter().map(sum).collect()
    };
    let mut sums = vec![0f64; gradients.len()];
    for (i, part) in parts {
        sums[i] += part;
    }
    sums
}

multiversion! {
    fn sum_of_block(values: &[f32]) -> f64 {
        let mut lanes = [0f64; 16];
        let chunks = values.chunks_exact(16);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += f64::from(*x) * f64::from(*x);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane += f64::from(*x) * f64::from(*x);
        }
        lanes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    /// One step of one parameter.
    fn update(
        isa: Isa,
        step: AdamWStep,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        update_all(
            isa,
            vec![Parameter {
                step,
                values,
                gradient,
                first,
                second,
            }],
        );
    }

    fn sum_of_squares(isa: Isa, gradient: &[f32]) -> f64 {
        sums_of_squares(isa, &[gradient])[0]
    }

    fn step(t: i32) -> AdamWStep {
        AdamWStep {
            learning_rate: 0.01,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            bias_correction_1: 1.0 - 0.9f64.powi(t),
            bias_correction_2_sqrt: (1.0 - 0.999f64.powi(t)).sqrt(),
            decay_factor: 0.9995,
            gradient_scale: 0.3,
        }
    }

    /// Parameters and moments after some steps, in the order values, first, second.
    fn trained(isa: Isa, count: usize, steps: i32) -> [Vec<f32>; 3] {
        let [mut values, mut first, mut second] =
            [numbers(count, 1), vec![0.0; count], vec![0.0; count]];
        for t in 1..=steps {
            let gradient = numbers(count, 10 + t as u64);
            update(
                isa,
                step(t),
                &mut values,
                &gradient,
                &mut first,
                &mut second,
            );
        }
        [values, first, second]
    }

    #[test]
    fn steps_match_f64() {
        for count in [1, 15, 33, 1000] {
            let mut exact: Vec<[f64; 3]> = numbers(count, 1)
                .iter()
                .map(|x| [f64::from(*x), 0.0, 0.0])
                .collect();
            for t in 1..=5 {
                let s = step(t);
                for ([x, m, v], g) in exact.iter_mut().zip(numbers(count, 10 + t as u64)) {
                    let g = f64::from(g) * s.gradient_scale;
                    *m = s.beta_1 * *m + (1.0 - s.beta_1) * g;
                    *v = s.beta_2 * *v + (1.0 - s.beta_2) * g * g;
                    let (m, v) = (
                        *m / s.bias_correction_1,
                        *v / (s.bias_correction_2_sqrt * s.bias_correction_2_sqrt),
                    );
                    *x = *x * s.decay_factor - s.learning_rate * m / (v.sqrt() + s.epsilon);
                }
            }
            for isa in Isa::available() {
                let found = trained(isa, count, 5);
                for (i, exact) in exact.iter().enumerate() {
                    for (found, exact) in found.iter().map(|f| f64::from(f[i])).zip(exact) {
                        assert!(
                            (found - exact).abs() < 1e-6,
                            "{isa:?} {i}: {found} for {exact}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn batched_steps_equal_single_steps() {
        let sizes = [3, 40_000, 0, 17, 16 * 1024];
        let isa = Isa::selected();
        // A different step for each parameter.
        let step = |i: usize| AdamWStep {
            decay_factor: 1.0 - 0.1 * i as f64,
            ..step(1)
        };
        let gradients: Vec<Vec<f32>> = sizes.iter().map(|n| numbers(*n, 2)).collect();
        let fresh = || sizes.map(|n| [numbers(n, 1), numbers(n, 3), vec![0.5; n]]);
        let (mut single, mut batched) = (fresh(), fresh());
        for (i, ([values, first, second], gradient)) in
            single.iter_mut().zip(&gradients).enumerate()
        {
            update(isa, step(i), values, gradient, first, second);
        }
        let parameters = batched.iter_mut().zip(&gradients).enumerate();
        let parameters = parameters.map(|(i, ([values, first, second], gradient))| Parameter {
            step: step(i),
            values,
            gradient,
            first,
            second,
        });
        update_all(isa, parameters.collect());
        assert!(single == batched);
    }

    #[test]
    fn sums_of_squares_match_f64_and_propagate_non_finite_values() {
        let sizes = [0, 1, 15, 40_003, 100];
        let gradients: Vec<Vec<f32>> = sizes.iter().map(|n| numbers(*n, 5)).collect();
        for isa in Isa::available() {
            let slices: Vec<&[f32]> = gradients.iter().map(|g| &g[..]).collect();
            for (found, gradient) in sums_of_squares(isa, &slices).iter().zip(&gradients) {
                let exact: f64 = gradient.iter().map(|x| f64::from(*x).powi(2)).sum();
                assert!(
                    (found - exact).abs() <= 1e-12 * exact,
                    "{found} for {exact}"
                );
            }
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                for at in [0, 20_000, 40_002] {
                    let mut gradient = gradients[3].clone();
                    gradient[at] = bad;
                    assert!(!sum_of_squares(isa, &gradient).is_finite());
                }
            }
            // Beyond f32, but finite: clipping scales it down.
            assert!(sum_of_squares(isa, &[1e30, 1e30]).is_finite());
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let isa = Isa::selected();
        let gradient = numbers(100_000, 1);
        let run = || (sum_of_squares(isa, &gradient), trained(isa, 100_000, 2));
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert!(pool(1).install(run) == pool(3).install(run));
    }
}
