//! The pointwise part of an LSTM cell.
//!
//! A row of gates holds `hidden` elements each of input, forget, cell and output gate, before their activations.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::math::{sigmoid, tanh};

/// Minimum number of gates to split over threads.
const PARALLEL_FROM: usize = 32 * 1024;
/// Approximate number of gates per task.
const BLOCK: usize = 8 * 1024;

/// `c' = σ(f) c + σ(i) tanh(g)` and `h = σ(o) tanh(c')`.
/// # Shapes
/// - `gates`: `[rows, 4 * hidden]`; `c`, `h`, `c_next`: `[rows, hidden]`
pub fn cell(isa: Isa, gates: &[f32], c: &[f32], hidden: usize, h: &mut [f32], c_next: &mut [f32]) {
    assert!(gates.len() == 4 * c.len() && c.len().is_multiple_of(hidden));
    assert!(h.len() == c.len() && c_next.len() == c.len());
    if gates.len() < PARALLEL_FROM {
        return cell_rows(isa, gates, c, hidden, h, c_next);
    }
    let size = BLOCK.div_ceil(4 * hidden) * hidden;
    let blocks = gates.par_chunks(4 * size).zip(c.par_chunks(size));
    let results = h.par_chunks_mut(size).zip(c_next.par_chunks_mut(size));
    blocks.zip(results).for_each(|((gates, c), (h, c_next))| {
        cell_rows(isa, gates, c, hidden, h, c_next);
    });
}

/// Backward pass of [`cell`]: gradients of the gates and of `c`. Intermediate values are recomputed, which is cheaper
/// than saving them.
/// # Shapes
/// - `gates`, `d_gates`: `[rows, 4 * hidden]`; `c`, `d_h`, `d_c_next`, `d_c`: `[rows, hidden]`
#[allow(clippy::too_many_arguments)]
pub fn cell_backward(
    isa: Isa,
    gates: &[f32],
    c: &[f32],
    d_h: &[f32],
    d_c_next: &[f32],
    hidden: usize,
    d_gates: &mut [f32],
    d_c: &mut [f32],
) {
    assert!(gates.len() == 4 * c.len() && c.len().is_multiple_of(hidden));
    assert!(d_h.len() == c.len() && d_c_next.len() == c.len());
    assert!(d_gates.len() == gates.len() && d_c.len() == c.len());
    if gates.len() < PARALLEL_FROM {
        return cell_back_rows(isa, gates, c, d_h, d_c_next, hidden, d_gates, d_c);
    }
    let size = BLOCK.div_ceil(4 * hidden) * hidden;
    let blocks = gates.par_chunks(4 * size).zip(c.par_chunks(size));
    let known = d_h.par_chunks(size).zip(d_c_next.par_chunks(size));
    let results = d_gates
        .par_chunks_mut(4 * size)
        .zip(d_c.par_chunks_mut(size));
    blocks
        .zip(known)
        .zip(results)
        .for_each(|(((gates, c), (d_h, d_c_next)), (d_gates, d_c))| {
            cell_back_rows(isa, gates, c, d_h, d_c_next, hidden, d_gates, d_c);
        });
}

multiversion! {
    fn cell_rows(gates: &[f32], c: &[f32], hidden: usize, h: &mut [f32], c_next: &mut [f32]) {
        let results = h.chunks_exact_mut(hidden).zip(c_next.chunks_exact_mut(hidden));
        let rows = gates.chunks_exact(4 * hidden).zip(c.chunks_exact(hidden));
        for ((gates, c), (h, c_next)) in rows.zip(results) {
            let [i, f, g, o] = std::array::from_fn(|gate| &gates[gate * hidden..][..hidden]);
            for n in 0..hidden {
                let next = sigmoid(f[n]) * c[n] + sigmoid(i[n]) * tanh(g[n]);
                c_next[n] = next;
                h[n] = sigmoid(o[n]) * tanh(next);
            }
        }
    }
}

multiversion! {
    fn cell_back_rows(
        gates: &[f32],
        c: &[f32],
        d_h: &[f32],
        d_c_next: &[f32],
        hidden: usize,
        d_gates: &mut [f32],
        d_c: &mut [f32],
    ) {
        let rows = d_gates.chunks_exact_mut(4 * hidden).zip(d_c.chunks_exact_mut(hidden));
        for (row, (d_gates, d_c)) in rows.enumerate() {
            let gates = &gates[row * 4 * hidden..][..4 * hidden];
            let [i, f, g, o] = std::array::from_fn(|gate| &gates[gate * hidden..][..hidden]);
            let [c, d_h, d_c_next] = [c, d_h, d_c_next].map(|all| &all[row * hidden..][..hidden]);
            let (d_i, rest) = d_gates.split_at_mut(hidden);
            let (d_f, rest) = rest.split_at_mut(hidden);
            let (d_g, d_o) = rest.split_at_mut(hidden);
            for n in 0..hidden {
                let [i, f, o] = [i[n], f[n], o[n]].map(sigmoid);
                let g = tanh(g[n]);
                let out = tanh(f * c[n] + i * g);
                let d_next = d_c_next[n] + d_h[n] * o * (1.0 - out * out);
                d_i[n] = d_next * g * i * (1.0 - i);
                d_f[n] = d_next * c[n] * f * (1.0 - f);
                d_g[n] = d_next * i * (1.0 - g * g);
                d_o[n] = d_h[n] * out * o * (1.0 - o);
                d_c[n] = d_next * f;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;

    struct Case {
        hidden: usize,
        gates: Vec<f32>,
        c: Vec<f32>,
        d_h: Vec<f32>,
        d_c_next: Vec<f32>,
    }

    impl Case {
        fn new(rows: usize, hidden: usize) -> Self {
            let count = rows * hidden;
            Self {
                hidden,
                gates: numbers(4 * count, 1).iter().map(|x| x * 5.0).collect(),
                c: numbers(count, 2).iter().map(|x| x * 3.0).collect(),
                d_h: numbers(count, 3),
                d_c_next: numbers(count, 4),
            }
        }

        fn forward(&self, isa: Isa) -> [Vec<f32>; 2] {
            let [mut h, mut c_next] = [(); 2].map(|()| vec![f32::NAN; self.c.len()]);
            cell(isa, &self.gates, &self.c, self.hidden, &mut h, &mut c_next);
            [h, c_next]
        }

        fn backward(&self, isa: Isa) -> [Vec<f32>; 2] {
            let (mut d_gates, mut d_c) = (
                vec![f32::NAN; self.gates.len()],
                vec![f32::NAN; self.c.len()],
            );
            let Self {
                hidden,
                gates,
                c,
                d_h,
                d_c_next,
            } = self;
            cell_backward(
                isa,
                gates,
                c,
                d_h,
                d_c_next,
                *hidden,
                &mut d_gates,
                &mut d_c,
            );
            [d_gates, d_c]
        }
    }

    /// `h` and `c'` of one unit, in f64, from i, f, g, o and c.
    fn unit([i, f, g, o, c]: [f64; 5]) -> [f64; 2] {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let next = sigmoid(f) * c + sigmoid(i) * g.tanh();
        [sigmoid(o) * next.tanh(), next]
    }

    #[test]
    fn cell_matches_f64_and_finite_differences() {
        for (rows, hidden) in [(1, 1), (3, 16), (5, 37), (70, 131)] {
            let case = Case::new(rows, hidden);
            for isa in Isa::available() {
                let ([h, c_next], [d_gates, d_c]) = (case.forward(isa), case.backward(isa));
                for at in 0..rows * hidden {
                    let gate = |gate: usize| at / hidden * 4 * hidden + gate * hidden + at % hidden;
                    let values = [gate(0), gate(1), gate(2), gate(3)].map(|at| case.gates[at]);
                    let inputs =
                        [values[0], values[1], values[2], values[3], case.c[at]].map(f64::from);
                    let [exact_h, exact_next] = unit(inputs);
                    assert!((f64::from(h[at]) - exact_h).abs() < 2e-6, "{isa:?} {at}");
                    assert!(
                        (f64::from(c_next[at]) - exact_next).abs() < 3e-6,
                        "{isa:?} {at}"
                    );

                    let gradients = [
                        d_gates[gate(0)],
                        d_gates[gate(1)],
                        d_gates[gate(2)],
                        d_gates[gate(3)],
                        d_c[at],
                    ];
                    for (input, found) in gradients.into_iter().enumerate() {
                        let loss = |by: f64| {
                            let mut moved = inputs;
                            moved[input] += by;
                            let [h, next] = unit(moved);
                            h * f64::from(case.d_h[at]) + next * f64::from(case.d_c_next[at])
                        };
                        let expected = (loss(1e-5) - loss(-1e-5)) / 2e-5;
                        assert!(
                            (f64::from(found) - expected).abs() < 4e-6,
                            "{isa:?} {at} {input}: {found}, {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let case = Case::new(130, 75);
        let isa = Isa::selected();
        let run = || (case.forward(isa), case.backward(isa));
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        assert_eq!(pool(1).install(run), pool(3).install(run));
    }
}
