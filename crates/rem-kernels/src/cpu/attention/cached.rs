//! Attention of new tokens over a cache of keys and values.

use super::plan::{Part, Plan};
use super::{Head, KEY, KeysValues, QUERY, VALUE, each_task};
use crate::cpu::cross_entropy::{largest, weight};
use crate::cpu::isa::multiversion;
use crate::cpu::matmul::{Panels, SharedMut};
use crate::cpu::norm;
use crate::cpu::retention::panels_of;
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::Tile;

/// Cached keys are interleaved in groups of this size, channel by channel: a query is scored against a group at once.
/// As many new tokens or more are processed as chunks, in the precision of the tile; fewer one by one, in f32.
pub const LANES: usize = 16;

/// The sizes of an attention of new tokens over a cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan<'a> {
    /// The new tokens, without prediction blocks.
    pub new: Plan<'a>,
    /// Tokens in the cache.
    pub past: usize,
    /// Capacity of the cache in tokens; a multiple of [`LANES`].
    pub capacity: usize,
}

impl CachePlan<'_> {
    /// Elements of the keys of one batch element and head, and of its values.
    fn part_len(&self) -> usize {
        self.capacity * self.new.head_dim
    }
    /// Elements of the cache.
    pub fn cache_len(&self) -> usize {
        self.new.batch * self.new.heads * 2 * self.part_len()
    }

    /// The tokens in the cache as factors; none before the first.
    fn past_panels<T: Tile>(
        &self,
        tile: T,
        (keys, values): (&[f32], &[f32]),
    ) -> Option<KeysValues<T::In>> {
        let dim = self.new.head_dim;
        (self.past > 0).then(|| {
            let group = |token: usize| token / LANES * LANES * dim;
            let fill = |_, channel: usize, first: usize, to: &mut [f32]| {
                for (i, to) in to.chunks_mut(LANES).enumerate() {
                    let lanes = &keys[group(first + i * LANES) + channel * LANES..];
                    to.copy_from_slice(&lanes[..to.len()]);
                }
            };
            (
                Panels::pack(tile, 1, dim, self.past, fill),
                panels_of(tile, values, self.past, dim),
            )
        })
    }

    /// Adds the new tokens of one batch element and head to its keys and values, and writes their outputs.
    ///
    /// # Safety
    /// As [`Head::forward`].
    unsafe fn update<T: Tile>(
        &self,
        tile: T,
        head: &Head,
        keys: &mut [f32],
        values: &mut [f32],
        out: &SharedMut<f32>,
    ) {
        let dim = self.new.head_dim;
        if self.new.tokens >= LANES {
            let past = self.past_panels(tile, (&*keys, &*values));
            let store = |part: Part, k: &[f32], v: &[f32]| {
                let pairs = k.chunks_exact(dim).zip(v.chunks_exact(dim));
                for (place, (k, v)) in (self.past + part.place..).zip(pairs) {
                    put(keys, values, place, k, v);
                }
            };
            // SAFETY: guaranteed by the caller.
            return unsafe { head.forward(tile, past, store, out) };
        }
        let mut scores = Scratch::<f32>::new(self.capacity);
        for part in self.new.parts(head.batch()) {
            let [q, k, v] = [QUERY, KEY, VALUE].map(|which| head.load(which, part));
            for t in 0..part.len {
                let place = self.past + part.place + t;
                let own = t * dim..(t + 1) * dim;
                put(keys, values, place, &k[own.clone()], &v[own.clone()]);
                // SAFETY: guaranteed by the caller.
                let out = unsafe {
                    let to = out.0.add(head.offset(part.row + t, 0, 1));
                    std::slice::from_raw_parts_mut(to, dim)
                };
                let seen = (place + 1).next_multiple_of(LANES);
                let scores = &mut scores[..seen];
                let (q, keys) = (&q[own], &keys[..seen * dim]);
                one_query(head.isa, q, keys, values, scores, place + 1, out);
            }
        }
    }
}

/// For each batch element and head keys, `[capacity / LANES, head_dim, LANES]`, and values, `[capacity, head_dim]`.
pub enum Cache<'a> {
    /// New tokens become part of it.
    Update(&'a mut [f32]),
    /// New tokens leave no trace.
    Read(&'a [f32]),
}

/// Attends to the tokens in the cache and, causally, to the new ones.
/// # Shapes
/// - `rows`: `[batch * tokens, 3 * width]`; `out`: `[batch * tokens, width]`
pub fn forward_cached<T: Tile>(
    tile: T,
    plan: &CachePlan,
    rows: &[f32],
    cache: Cache,
    out: &mut [f32],
) {
    let new = &plan.new;
    assert_eq!(rows.len(), 3 * new.rows() * new.width());
    assert_eq!(out.len(), new.rows() * new.width());
    assert_eq!(new.predicted, 0);
    assert!(plan.capacity.is_multiple_of(LANES));
    let (len, added) = match &cache {
        Cache::Update(cache) => (cache.len(), new.tokens),
        Cache::Read(cache) => (cache.len(), 0),
    };
    assert_eq!(len, plan.cache_len());
    assert!(plan.past + added <= plan.capacity, "the cache is full");
    let out = &SharedMut(out.as_mut_ptr());
    let head = |task| Head {
        plan: new,
        isa: tile.isa(),
        task,
        rows,
    };
    let tasks = new.batch * new.heads;
    let work = tasks * new.tokens * (plan.past + new.tokens) * new.head_dim;
    match cache {
        Cache::Read(cache) => each_task(tasks, work, |task| {
            let own = &cache[task * 2 * plan.part_len()..];
            let past = plan.past_panels(tile, own.split_at(plan.part_len()));
            // SAFETY: each task writes its own head's columns of its own rows.
            unsafe { head(task).forward(tile, past, |_, _, _| {}, out) };
        }),
        Cache::Update(cache) => {
            let cache = &SharedMut(cache.as_mut_ptr());
            each_task(tasks, work, |task| {
                // SAFETY: each task has its own keys and values.
                let [keys, values] = unsafe {
                    let own = cache.0.add(task * 2 * plan.part_len());
                    [own, own.add(plan.part_len())]
                        .map(|part| std::slice::from_raw_parts_mut(part, plan.part_len()))
                };
                // SAFETY: each task writes its own head's columns of its own rows.
                unsafe { plan.update(tile, &head(task), keys, values, out) };
            });
        }
    }
}

/// Sets the key and the value of a token.
fn put(keys: &mut [f32], values: &mut [f32], place: usize, k: &[f32], v: &[f32]) {
    let dim = k.len();
    let (group, lane) = (place / LANES * LANES * dim, place % LANES);
    for (to, key) in keys[group..].chunks_exact_mut(LANES).zip(k) {
        to[lane] = *key;
    }
    values[place * dim..][..dim].copy_from_slice(v);
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
