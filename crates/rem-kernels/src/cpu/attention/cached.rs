//! Attention of new tokens over a cache of keys and values.

use super::{KEY, QUERY, VALUE, each_task, scale};
use crate::cpu::cross_entropy::{largest, weight};
use crate::cpu::isa::{Isa, multiversion};
use crate::cpu::matmul::SharedMut;
use crate::cpu::norm;
use crate::cpu::scratch::Scratch;

/// Cached keys are interleaved in groups of this size, channel by channel: a query is scored against a group at once.
pub const LANES: usize = 16;

/// The sizes of an attention of new tokens over a cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan {
    /// Batch size.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// New tokens of a sequence.
    pub tokens: usize,
    /// Tokens in the cache.
    pub past: usize,
    /// Capacity of the cache in tokens; a multiple of [`LANES`].
    pub capacity: usize,
}

impl CachePlan {
    /// Elements of the keys and values of one batch element and head.
    fn head_len(&self) -> usize {
        2 * self.capacity * self.head_dim
    }
    /// Elements of the cache.
    pub fn cache_len(&self) -> usize {
        self.batch * self.heads * self.head_len()
    }
}

/// Adds the keys and values of new tokens to the cache and attends to all tokens up to each query's own, in f32.
/// # Shapes
/// - `rows`: `[batch * tokens, 3 * width]`; `cache`: for each batch element and head keys,
///   `[capacity / LANES, head_dim, LANES]`, and values, `[capacity, head_dim]`
/// - `out`: `[batch * tokens, width]`
pub fn forward_cached(
    isa: Isa,
    plan: &CachePlan,
    rows: &[f32],
    cache: &mut [f32],
    out: &mut [f32],
) {
    let (dim, width) = (plan.head_dim, plan.heads * plan.head_dim);
    let count = plan.batch * plan.tokens;
    assert_eq!(rows.len(), 3 * count * width);
    assert_eq!(out.len(), count * width);
    assert_eq!(cache.len(), plan.cache_len());
    assert!(
        plan.past + plan.tokens <= plan.capacity,
        "the cache is full"
    );
    assert!(plan.capacity.is_multiple_of(LANES));
    let out = &SharedMut(out.as_mut_ptr());
    let cache = &SharedMut(cache.as_mut_ptr());
    let work = plan.batch * plan.heads * plan.tokens * (plan.past + plan.tokens) * dim;
    each_task(plan.batch * plan.heads, work, |task| {
        let (batch, head) = (task / plan.heads, task % plan.heads);
        // SAFETY: each task has its own keys and values.
        let own = unsafe {
            std::slice::from_raw_parts_mut(cache.0.add(task * plan.head_len()), plan.head_len())
        };
        let (keys, values) = own.split_at_mut(plan.capacity * dim);
        let mut scores = Scratch::<f32>::new(plan.capacity);
        let mut q = Scratch::<f32>::new(dim);
        for t in 0..plan.tokens {
            let row = &rows[3 * (batch * plan.tokens + t) * width..][..3 * width];
            let part = |part: usize| &row[part * width + head * dim..][..dim];
            let place = plan.past + t;
            let (block, lane) = (place / LANES * LANES * dim, place % LANES);
            for (to, key) in keys[block..].chunks_exact_mut(LANES).zip(part(KEY)) {
                to[lane] = *key;
            }
            let at = place * dim;
            values[at..at + dim].copy_from_slice(part(VALUE));
            q.copy_from_slice(part(QUERY));
            scale(isa, &mut q, 1.0 / (dim as f32).sqrt());
            // SAFETY: each task writes its own head's columns of its own rows.
            let out = unsafe {
                let to = out.0.add((batch * plan.tokens + t) * width + head * dim);
                std::slice::from_raw_parts_mut(to, dim)
            };
            let seen = (place + 1).next_multiple_of(LANES);
            let scores = &mut scores[..seen];
            one_query(isa, &q, &keys[..seen * dim], values, scores, place + 1, out);
        }
    });
}

multiversion! {
    /// Attends to the first `seen` keys; `keys` and `scores` are padded to whole groups.
    fn one_query(
        q: &[f32],
        keys: &[f32],
        values: &[f32],
        scores: &mut [f32],
        seen: usize,
        out: &mut [f32],
    ) {
        let dim = q.len();
        let blocks = keys.chunks_exact(LANES * dim);
        for (scores, keys) in scores.as_chunks_mut::<LANES>().0.iter_mut().zip(blocks) {
            let mut sums = [0f32; LANES];
            for (q, keys) in q.iter().zip(keys.as_chunks::<LANES>().0) {
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum += q * key;
                }
            }
            *scores = sums;
        }
        let scores = &mut scores[..seen];
        let max = largest(scores);
        for score in scores.iter_mut() {
            *score = weight(*score - max);
        }
        let share = 1.0 / norm::sum_of([scores], |[x]| x);
        out.fill(0.0);
        for (score, value) in scores.iter().zip(values.chunks_exact(dim)) {
            for (o, v) in out.iter_mut().zip(value) {
                *o += score * v;
            }
        }
        for o in out {
            *o *= share;
        }
    }
}
