//! Attention against f64.

use super::*;
use crate::cpu::testing::numbers;
use crate::cpu::tile::{Precision, with_tile};

/// In f64.
fn expected(plan: &Plan, rows: &[f32]) -> Vec<f32> {
    let (dim, width) = (plan.head_dim, plan.width());
    let at = |b: usize, t: usize, part: usize, c: usize| {
        f64::from(rows[(3 * (b * plan.tokens + t) + part) * width + c])
    };
    let mut out = vec![0f32; plan.rows() * width];
    for b in 0..plan.batch {
        for (t, head) in (0..plan.tokens).flat_map(|t| (0..plan.heads).map(move |h| (t, h))) {
            let channels = head * dim..(head + 1) * dim;
            let score = |s: usize| {
                let products = channels.clone().map(|c| at(b, t, 0, c) * at(b, s, 1, c));
                (products.sum::<f64>() / (dim as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = (0..=t).map(score).collect();
            let sum: f64 = scores.iter().sum();
            for c in channels.clone() {
                let seen = scores.iter().enumerate();
                let value: f64 = seen.map(|(s, p)| p * at(b, s, 2, c)).sum();
                out[(b * plan.tokens + t) * width + c] = (value / sum) as f32;
            }
        }
    }
    out
}

const SIZES: [[usize; 4]; 4] = [[1, 1, 4, 1], [2, 3, 6, 17], [1, 2, 16, 97], [2, 2, 8, 200]];

fn plan([batch, heads, head_dim, tokens]: [usize; 4]) -> Plan {
    Plan {
        batch,
        heads,
        head_dim,
        tokens,
        dropout: Dropout::NONE,
    }
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance, "{what}: {f} for {e} at {i}");
    }
}

#[test]
fn forward_matches_causal_attention_in_f64() {
    for sizes in SIZES {
        let plan = plan(sizes);
        let rows = numbers(3 * plan.rows() * plan.width(), 1);
        let rows: Vec<f32> = rows.iter().map(|x| 3.0 * x).collect();
        let expected = expected(&plan, &rows);
        for isa in Isa::available() {
            for (precision, tolerance) in [(Precision::F32, 1e-5), (Precision::Mixed, 0.1)] {
                let mut out = vec![0f32; expected.len()];
                with_tile!(isa, precision, tile => forward(tile, &plan, &rows, &mut out));
                assert_close(&out, &expected, tolerance, &format!("{sizes:?} {isa:?}"));
            }
        }
    }
}

#[test]
fn cached_attention_matches_attention_over_the_whole_sequence() {
    for sizes in SIZES {
        let plan = plan(sizes);
        let width = plan.width();
        let rows = numbers(3 * plan.rows() * width, 2);
        let expected = expected(&plan, &rows);
        for isa in Isa::available() {
            let mut now = CachePlan {
                batch: plan.batch,
                heads: plan.heads,
                head_dim: plan.head_dim,
                tokens: 0,
                past: 0,
                capacity: (plan.tokens + 3).next_multiple_of(LANES),
            };
            let mut cache = vec![f32::NAN; now.cache_len()];
            let mut sizes = [1, 2, 13, 1].into_iter().cycle();
            while now.past < plan.tokens {
                now.tokens = sizes.next().unwrap().min(plan.tokens - now.past);
                let pick = |from: &[f32], width: usize| -> Vec<f32> {
                    let row = |b: usize| (b * plan.tokens + now.past) * width;
                    let of = |b| from[row(b)..][..now.tokens * width].to_vec();
                    (0..plan.batch).flat_map(of).collect()
                };
                let mut out = vec![0f32; plan.batch * now.tokens * width];
                forward_cached(isa, &now, &pick(&rows, 3 * width), &mut cache, &mut out);
                assert_close(&out, &pick(&expected, width), 1e-5, &format!("{now:?}"));
                now.past += now.tokens;
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_thread_count() {
    let plan = Plan {
        dropout: Dropout { p: 0.2, seed: 3 },
        ..plan([3, 2, 16, 130])
    };
    let rows = numbers(3 * plan.rows() * plan.width(), 4);
    let d_out = numbers(plan.rows() * plan.width(), 5);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let mut out = vec![0f32; d_out.len()];
            let mut d_rows = vec![0f32; rows.len()];
            with_tile!(Isa::selected(), Precision::F32, tile => {
                forward(tile, &plan, &rows, &mut out);
                backward(tile, &plan, &rows, &d_out, &mut d_rows);
            });
            (out, d_rows)
        })
    };
    assert_eq!(run(1), run(3));
}
