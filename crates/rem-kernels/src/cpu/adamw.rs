//! AdamW in one pass over parameters, gradients and moments, and the sums that clipping needs before.

use rayon::prelude::*;

use super::level::{Level, vectorised};

/// Elements from which work is worth a second thread, and how many a thread takes at a time.
const PARALLEL_FROM: usize = 32 * 1024;
const BLOCK: usize = 16 * 1024;

/// The constants of one step, for one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub learning_rate: f64,
    pub beta_1: f64,
    pub beta_2: f64,
    pub epsilon: f64,
    /// 1 - β₁ᵗ
    pub first_scale: f64,
    /// The square root of 1 - β₂ᵗ
    pub second_scale: f64,
    /// What the weight decay leaves of a parameter.
    pub kept: f64,
    /// What clipping leaves of a gradient.
    pub gradient_scale: f64,
}

/// A parameter with all that a step reads and writes, in slices of one length.
pub struct Parameter<'a> {
    pub step: Step,
    pub values: &'a mut [f32],
    pub gradient: &'a [f32],
    pub first: &'a mut [f32],
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

/// One step of many parameters, as one job for all threads.
pub fn update_all(level: Level, parameters: Vec<Parameter>) {
    let count: usize = parameters.iter().map(|p| p.values.len()).sum();
    let blocks = parameters.into_iter().flat_map(Parameter::blocks);
    let work = |p: Parameter| update_block(level, p.step, p.values, p.gradient, p.first, p.second);
    if count < PARALLEL_FROM {
        blocks.for_each(work);
    } else {
        blocks.collect::<Vec<_>>().into_par_iter().for_each(work);
    }
}

vectorised! {
    fn update_block(step: Step, values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
        let scale = step.gradient_scale as f32;
        let (beta_1, fresh_1) = (step.beta_1 as f32, (1.0 - step.beta_1) as f32);
        let (beta_2, fresh_2) = (step.beta_2 as f32, (1.0 - step.beta_2) as f32);
        let rate = (step.learning_rate / step.first_scale) as f32;
        let (second_scale, epsilon) = (step.second_scale as f32, step.epsilon as f32);
        let kept = step.kept as f32;
        for (((x, g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
            let g = g * scale;
            *m = *m * beta_1 + g * fresh_1;
            *v = *v * beta_2 + g * g * fresh_2;
            *x = *x * kept - *m / (v.sqrt() / second_scale + epsilon) * rate;
        }
    }
}

/// The sum of the squares of each gradient, as one job for all threads; not finite if one of its numbers is not.
pub fn sums_of_squares(level: Level, gradients: &[&[f32]]) -> Vec<f64> {
    let blocks = gradients.iter().enumerate();
    let blocks =
        blocks.flat_map(|(i, gradient)| gradient.chunks(BLOCK).map(move |block| (i, block)));
    let blocks: Vec<(usize, &[f32])> = blocks.collect();
    let sum = |(i, block): &(usize, &[f32])| (*i, sum_of_block(level, block));
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

vectorised! {
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
        level: Level,
        step: Step,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        update_all(
            level,
            vec![Parameter {
                step,
                values,
                gradient,
                first,
                second,
            }],
        );
    }

    fn sum_of_squares(level: Level, gradient: &[f32]) -> f64 {
        sums_of_squares(level, &[gradient])[0]
    }

    fn step(t: i32) -> Step {
        Step {
            learning_rate: 0.01,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            first_scale: 1.0 - 0.9f64.powi(t),
            second_scale: (1.0 - 0.999f64.powi(t)).sqrt(),
            kept: 0.9995,
            gradient_scale: 0.3,
        }
    }

    /// Parameters and moments after some steps, in the order values, first, second.
    fn trained(level: Level, count: usize, steps: i32) -> [Vec<f32>; 3] {
        let [mut values, mut first, mut second] =
            [numbers(count, 1), vec![0.0; count], vec![0.0; count]];
        for t in 1..=steps {
            let gradient = numbers(count, 10 + t as u64);
            update(
                level,
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
    fn steps_follow_the_equations() {
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
                    let (m, v) = (*m / s.first_scale, *v / (s.second_scale * s.second_scale));
                    *x = *x * s.kept - s.learning_rate * m / (v.sqrt() + s.epsilon);
                }
            }
            for level in Level::available() {
                let found = trained(level, count, 5);
                for (i, exact) in exact.iter().enumerate() {
                    for (found, exact) in found.iter().map(|f| f64::from(f[i])).zip(exact) {
                        assert!(
                            (found - exact).abs() < 1e-6,
                            "{level:?} {i}: {found} for {exact}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn many_parameters_at_once_are_as_one_by_one() {
        let sizes = [3, 40_000, 0, 17, 16 * 1024];
        let level = Level::of_this_machine();
        // What each parameter keeps tells them apart.
        let step = |i: usize| Step {
            kept: 1.0 - 0.1 * i as f64,
            ..step(1)
        };
        let gradients: Vec<Vec<f32>> = sizes.iter().map(|n| numbers(*n, 2)).collect();
        let fresh = || sizes.map(|n| [numbers(n, 1), numbers(n, 3), vec![0.5; n]]);
        let (mut one_by_one, mut at_once) = (fresh(), fresh());
        for (i, ([values, first, second], gradient)) in
            one_by_one.iter_mut().zip(&gradients).enumerate()
        {
            update(level, step(i), values, gradient, first, second);
        }
        let parameters = at_once.iter_mut().zip(&gradients).enumerate();
        let parameters = parameters.map(|(i, ([values, first, second], gradient))| Parameter {
            step: step(i),
            values,
            gradient,
            first,
            second,
        });
        update_all(level, parameters.collect());
        assert!(one_by_one == at_once);
    }

    #[test]
    fn sums_are_exact_and_show_what_is_not_finite() {
        let sizes = [0, 1, 15, 40_003, 100];
        let gradients: Vec<Vec<f32>> = sizes.iter().map(|n| numbers(*n, 5)).collect();
        for level in Level::available() {
            let slices: Vec<&[f32]> = gradients.iter().map(|g| &g[..]).collect();
            for (found, gradient) in sums_of_squares(level, &slices).iter().zip(&gradients) {
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
                    assert!(!sum_of_squares(level, &gradient).is_finite());
                }
            }
            // Beyond f32, but not a mistake: clipping will scale it down.
            assert!(sum_of_squares(level, &[1e30, 1e30]).is_finite());
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let level = Level::of_this_machine();
        let gradient = numbers(100_000, 1);
        let run = || (sum_of_squares(level, &gradient), trained(level, 100_000, 2));
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert!(pool(1).install(run) == pool(3).install(run));
    }
}
