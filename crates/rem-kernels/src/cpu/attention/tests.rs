//! Attention against f64.

use super::*;
use crate::cpu::dropout::Dropout;
use crate::cpu::rotation::Rotation;
use crate::cpu::testing::numbers;
use crate::cpu::tile::{Precision, with_tile};

/// A plan with the tables of its rotation.
struct Case {
    plan: Plan<'static>,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Case {
    fn new(plan: Plan<'static>) -> Self {
        let dim = plan.head_dim;
        let angle = |i: usize| (i / dim) as f32 / (1 + i % dim / 2) as f32;
        let table = |f: fn(f32) -> f32| -> Vec<f32> {
            let count = plan.rows_per_element() * dim;
            (0..count).map(|i| f(angle(i))).collect()
        };
        Self {
            plan,
            cos: table(f32::cos),
            sin: table(f32::sin),
        }
    }

    fn rotary(&self) -> Plan<'_> {
        let rotation = Rotation {
            cos: &self.cos,
            sin: &self.sin,
        };
        Plan {
            rotation: Some(rotation),
            ..self.plan
        }
    }

    /// With positions in the rows, and with rotary ones.
    fn plans(&self) -> [Plan<'_>; 2] {
        [self.plan, self.rotary()]
    }
}

fn causal([batch, heads, head_dim, tokens]: [usize; 4]) -> Plan<'static> {
    Plan {
        batch,
        heads,
        head_dim,
        tokens,
        chunk: BLOCK,
        first_predicted: 0,
        predicted: 0,
        block_tokens: 0,
        rotation: None,
        dropout: Dropout::NONE,
    }
}

const SIZES: [[usize; 4]; 4] = [[1, 1, 4, 1], [2, 3, 6, 17], [1, 2, 16, 97], [2, 2, 8, 200]];

fn cases() -> Vec<Case> {
    let pop = |sizes, [chunk, first_predicted, predicted, block_tokens]: [usize; 4]| Plan {
        chunk,
        first_predicted,
        predicted,
        block_tokens,
        ..causal(sizes)
    };
    let pop = [
        pop([2, 2, 6, 15], [5, 1, 2, 4]),
        pop([1, 3, 8, 34], [17, 0, 2, 16]),
        pop([2, 1, 16, 195], [65, 1, 2, 64]),
    ];
    let plans = SIZES.map(causal).into_iter().chain(pop);
    plans.map(Case::new).collect()
}

/// One batch element and head in f64.
struct Exact<'a> {
    plan: &'a Plan<'a>,
    batch: usize,
    head: usize,
}

impl Exact<'_> {
    /// The row at a place of the batch element.
    fn row(&self, place: usize) -> usize {
        let (plan, predicted) = (self.plan, self.plan.predicted * self.plan.block_tokens);
        match place.checked_sub(plan.tokens) {
            None => self.batch * plan.tokens + place,
            Some(place) => plan.batch * plan.tokens + self.batch * predicted + place,
        }
    }

    /// The places that the query at `place` sees.
    fn seen(&self, place: usize) -> Vec<usize> {
        let plan = self.plan;
        let Some(predicted) = place.checked_sub(plan.tokens) else {
            return (0..=place).collect();
        };
        let before = (plan.first_predicted + predicted / plan.block_tokens) * plan.chunk;
        let own = place - predicted % plan.block_tokens..=place;
        (0..before).chain(own).collect()
    }

    /// The columns of a vector among those of all rows.
    fn columns(&self, place: usize, which: usize, count: usize) -> std::ops::Range<usize> {
        let dim = self.plan.head_dim;
        let first = (self.row(place) * count + which) * self.plan.width() + self.head * dim;
        first..first + dim
    }

    /// Rotates a query or key, or back with `sign` -1.
    fn turn(&self, place: usize, x: &[f64], sign: f64) -> Vec<f64> {
        let Some(rotation) = self.plan.rotation else {
            return x.to_vec();
        };
        let at = place * self.plan.head_dim;
        let channel = |c: usize| {
            let [cos, sin] = [rotation.cos, rotation.sin].map(|t| f64::from(t[at + c]));
            let other = if c.is_multiple_of(2) {
                -x[c + 1]
            } else {
                x[c - 1]
            };
            x[c] * cos + sign * other * sin
        };
        (0..x.len()).map(channel).collect()
    }

    fn vector(&self, rows: &[f32], place: usize, which: usize) -> Vec<f64> {
        let x = &rows[self.columns(place, which, 3)];
        let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        match which {
            VALUE => x,
            _ => self.turn(place, &x, 1.0),
        }
    }
}

/// The outputs, and the gradients of the rows.
fn expected(plan: &Plan, rows: &[f32], d_out: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let (mut out, mut d_rows) = (vec![0f64; d_out.len()], vec![0f64; rows.len()]);
    let scale = 1.0 / (plan.head_dim as f64).sqrt();
    for task in 0..plan.batch * plan.heads {
        let (batch, head) = (task / plan.heads, task % plan.heads);
        let exact = Exact { plan, batch, head };
        for place in 0..plan.rows_per_element() {
            let seen = exact.seen(place);
            let q = exact.vector(rows, place, QUERY);
            let of = |which| -> Vec<Vec<f64>> {
                seen.iter().map(|s| exact.vector(rows, *s, which)).collect()
            };
            let (keys, values) = (of(KEY), of(VALUE));
            let scores = keys.iter().map(|k| (product(&q, k) * scale).exp());
            let scores: Vec<f64> = scores.collect();
            let sum: f64 = scores.iter().sum();
            let weights: Vec<f64> = scores.iter().map(|s| s / sum).collect();
            let d = d_out[exact.columns(place, 0, 1)].iter();
            let d: Vec<f64> = d.map(|d| f64::from(*d)).collect();
            let d_weights: Vec<f64> = values.iter().map(|v| product(&d, v)).collect();
            let inner = product(&weights, &d_weights);
            let mut add = |to: usize, which: usize, x: &[f64], by: f64| {
                let x = match which {
                    VALUE => x.to_vec(),
                    _ => exact.turn(to, x, -1.0),
                };
                for (to, x) in d_rows[exact.columns(to, which, 3)].iter_mut().zip(&x) {
                    *to += by * x;
                }
            };
            for (i, s) in seen.iter().enumerate() {
                for (o, v) in out[exact.columns(place, 0, 1)].iter_mut().zip(&values[i]) {
                    *o += weights[i] * v;
                }
                let d_score = weights[i] * (d_weights[i] - inner) * scale;
                add(place, QUERY, &keys[i], d_score);
                add(*s, KEY, &q, d_score);
                add(*s, VALUE, &d, weights[i]);
            }
        }
    }
    (out, d_rows)
}

fn assert_close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    let size = expected.iter().fold(1f64, |size, e| size.max(e.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let apart = (f64::from(*f) - e).abs();
        assert!(apart <= tolerance * size, "{what}: {f} for {e} at {i}");
    }
}

#[test]
fn outputs_and_gradients_match_f64() {
    for case in cases() {
        for plan in case.plans() {
            let rows = numbers(3 * plan.rows() * plan.width(), 1);
            let rows: Vec<f32> = rows.iter().map(|x| 3.0 * x).collect();
            let d_out = numbers(plan.rows() * plan.width(), 2);
            let (expected, d_expected) = expected(&plan, &rows, &d_out);
            for isa in Isa::available() {
                for (precision, tolerance) in [(Precision::F32, 1e-5), (Precision::Mixed, 0.1)] {
                    let mut out = vec![f32::NAN; d_out.len()];
                    let mut d_rows = vec![f32::NAN; rows.len()];
                    with_tile!(isa, precision, tile => {
                        forward(tile, &plan, &rows, &mut out);
                        backward(tile, &plan, &rows, &d_out, &mut d_rows);
                    });
                    let what = format!("{:?} {isa:?} {precision:?}", case.plan);
                    assert_close(&out, &expected, tolerance, &what);
                    assert_close(&d_rows, &d_expected, tolerance, &what);
                }
            }
        }
    }
}

/// A sequence of two chunks of two tokens, and a block of two prediction tokens after the first chunk.
///
/// ```python
/// import numpy as np
/// q, k, v = np.sin(np.arange(6 * 3 * 4)).reshape(6, 3, 4).swapaxes(0, 1)
/// angles = np.outer([0, 1, 2, 3, 2, 3], [1, 0.01])
/// def turn(x):
///     (a, b), cos, sin = (x[:, ::2], x[:, 1::2]), np.cos(angles), np.sin(angles)
///     return np.stack([cos * a - sin * b, sin * a + cos * b], 2).reshape(6, 4)
/// sees = np.tri(6)
/// sees[4:, 2:4] = 0
/// w = np.exp(turn(q) @ turn(k).T / 2) * sees
/// print((w / w.sum(1, keepdims=True) @ v)[2:])
/// ```
#[test]
fn attention_with_a_prediction_block_matches_numpy() {
    let rows: Vec<f32> = (0..6 * 3 * 4).map(|i| (i as f32).sin()).collect();
    let angles = [0, 1, 2, 3, 2, 3].map(|p| [1.0, 1.0, 0.01, 0.01].map(|a| p as f32 * a));
    let [cos, sin] = [f32::cos, f32::sin].map(|f| angles.as_flattened().iter().map(move |a| f(*a)));
    let (cos, sin): (Vec<f32>, Vec<f32>) = (cos.collect(), sin.collect());
    let rotation = Rotation {
        cos: &cos,
        sin: &sin,
    };
    let plan = Plan {
        chunk: 2,
        first_predicted: 1,
        predicted: 1,
        block_tokens: 2,
        rotation: Some(rotation),
        ..causal([1, 1, 4, 4])
    };
    let mut out = vec![f32::NAN; 6 * 4];
    with_tile!(Isa::selected(), Precision::F32, tile => forward(tile, &plan, &rows, &mut out));
    let expected = [
        [0.889964, 0.670699, -0.165203, -0.849218],
        [0.698971, 0.801453, 0.167083, -0.620902],
        [0.746019, 0.661706, -0.030977, -0.695179],
        [0.119787, 0.469087, 0.387112, -0.050773],
    ];
    assert_close(&out[8..], expected.as_flattened(), 2e-6, "NumPy");
}

/// Calls of a few tokens, and of more, which are processed as chunks. Reading does not change the cache.
#[test]
fn cached_attention_matches_attention_over_the_whole_sequence() {
    for case in SIZES.map(causal).map(Case::new) {
        for plan in case.plans() {
            let width = plan.width();
            let rows = numbers(3 * plan.rows() * width, 2);
            let (expected, _) = expected(&plan, &rows, &vec![0.0; plan.rows() * width]);
            for isa in Isa::available() {
                let mut now = CachePlan {
                    new: Plan { tokens: 0, ..plan },
                    past: 0,
                    capacity: (plan.tokens + 3).next_multiple_of(LANES),
                };
                let mut cache = vec![f32::NAN; now.cache_len()];
                let mut sizes = [1, 2, 13, 1, 40, 16, 103].into_iter().cycle();
                while now.past < plan.tokens {
                    now.new.tokens = sizes.next().unwrap().min(plan.tokens - now.past);
                    now.new.rotation = plan.rotation.map(|rotation| Rotation {
                        cos: &rotation.cos[now.past * plan.head_dim..],
                        sin: &rotation.sin[now.past * plan.head_dim..],
                    });
                    let row = |b: usize| b * plan.tokens + now.past;
                    let new: Vec<f32> = (0..plan.batch)
                        .flat_map(|b| &rows[3 * row(b) * width..][..3 * now.new.tokens * width])
                        .copied()
                        .collect();
                    let expected: Vec<f64> = (0..plan.batch)
                        .flat_map(|b| &expected[row(b) * width..][..now.new.tokens * width])
                        .copied()
                        .collect();
                    let before = cache.clone();
                    let run = |now: &CachePlan, cache: Cache| {
                        let mut out = vec![f32::NAN; expected.len()];
                        with_tile!(isa, Precision::F32, tile => {
                            forward_cached(tile, now, &new, cache, &mut out);
                        });
                        assert_close(&out, &expected, 1e-5, &format!("{now:?} {isa:?}"));
                    };
                    run(&now, Cache::Read(&cache));
                    run(&now, Cache::Update(&mut cache));
                    let kept = |(new, old): (&f32, &f32)| old.is_nan() || new == old;
                    assert!(cache.iter().zip(&before).all(kept));
                    now.past += now.new.tokens;
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_thread_count() {
    let sizes = [
        causal([3, 2, 16, 130]),
        Plan {
            chunk: 26,
            first_predicted: 1,
            predicted: 4,
            block_tokens: 25,
            ..causal([3, 2, 16, 130])
        },
    ];
    for case in sizes.map(Case::new) {
        let plan = Plan {
            dropout: Dropout { p: 0.2, seed: 3 },
            ..case.rotary()
        };
        let rows = numbers(3 * plan.rows() * plan.width(), 4);
        let d_out = numbers(plan.rows() * plan.width(), 5);
        for precision in [Precision::F32, Precision::Mixed] {
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                pool.build().unwrap().install(|| {
                    let mut out = vec![0f32; d_out.len()];
                    let mut d_rows = vec![0f32; rows.len()];
                    with_tile!(Isa::selected(), precision, tile => {
                        forward(tile, &plan, &rows, &mut out);
                        backward(tile, &plan, &rows, &d_out, &mut d_rows);
                    });
                    (out, d_rows)
                })
            };
            assert_eq!(run(1), run(3));
        }
    }
}
