//! Causal attention over rows of projections, forward and backward, one batch element and head at a time; and over a
//! cache of keys and values.
//!
//! Sequences are split into chunks. A chunk sees those before it and, causally, itself. POP's prediction blocks do so too,
//! and nothing sees them.
//!
//! Notation: q (rotated and divided by √head_dim), k (rotated) and v are queries, keys and values; A is the softmax of a
//! query's scores over the keys that it sees. A is not saved; the backward pass recomputes it.

mod backward;
mod cached;
mod plan;

pub use backward::backward;
pub use cached::{Cache, CachePlan, LANES, forward_cached};
pub use plan::{BLOCK, Plan};

use rayon::prelude::*;

use super::cross_entropy::{largest, weight};
use super::isa::{Isa, multiversion};
use super::matmul::{Panels, SharedMut, multiply_add};
use super::norm;
use super::retention::{panels_of, panels_of_transposed, rows_of};
use super::scratch::Scratch;
use super::tile::Tile;
use plan::Part;

/// One batch element and head.
struct Head<'a> {
    plan: &'a Plan<'a>,
    isa: Isa,
    task: usize,
    rows: &'a [f32],
}

/// The parts of a row: queries, keys and values.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

/// Keys, `[head_dim, tokens]`, and values, `[tokens, head_dim]`.
type KeysValues<In> = (Panels<In>, Panels<In>);

impl Head<'_> {
    fn batch(&self) -> usize {
        self.task / self.plan.heads
    }

    /// The offset of this head's channels, in one of `count` vectors of a row.
    fn offset(&self, row: usize, which: usize, count: usize) -> usize {
        let plan = self.plan;
        (row * count + which) * plan.width() + self.task % plan.heads * plan.head_dim
    }

    /// Queries, keys or values of a part, queries and keys rotated, `[len, head_dim]`.
    fn load(&self, which: usize, part: Part) -> Scratch<f32> {
        let dim = self.plan.head_dim;
        let mut to = Scratch::new(part.len * dim);
        for (i, to) in to.chunks_exact_mut(dim).enumerate() {
            let row = &self.rows[self.offset(part.row + i, which, 3)..][..dim];
            match self.plan.rotation {
                Some(rotation) if which != VALUE => {
                    rotation.apply(self.isa, part.place + i, row, 1.0, to);
                }
                _ => to.copy_from_slice(row),
            }
        }
        if which == QUERY {
            scale(self.isa, &mut to, 1.0 / (dim as f32).sqrt());
        }
        to
    }

    /// A of a part's queries over each chunk of keys that they see; the last is the part itself, with 0 above the
    /// diagonal.
    fn weights<T: Tile>(
        &self,
        tile: T,
        q: &[f32],
        len: usize,
        keys: &[&Panels<T::In>],
    ) -> Vec<Scratch<f32>> {
        let q = rows_of(tile, q, self.plan.head_dim);
        let mut scores: Vec<Scratch<f32>> = keys
            .iter()
            .map(|keys| {
                let mut scores = Scratch::new(len * keys.columns());
                multiply_add(tile, &q, keys, &mut scores, false);
                scores
            })
            .collect();
        for i in 0..len {
            let mut row = segments(&mut scores, len, i);
            let max = row.iter().map(|s| max_of(self.isa, s));
            let max = max.fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = row.iter_mut().map(|s| exponentials(self.isa, s, max)).sum();
            for segment in &mut row {
                scale(self.isa, segment, 1.0 / sum);
            }
            let last = scores.last_mut().expect("a query sees itself");
            last[i * len..][..len][i + 1..].fill(0.0);
        }
        scores
    }

    /// Applies dropout to the chunks of A.
    fn drop_out(&self, weights: &mut [Scratch<f32>], part: Part) {
        let dropout = self.plan.dropout;
        if dropout.is_off() {
            return;
        }
        for (j, chunk) in weights.iter_mut().enumerate() {
            let columns = chunk.len() / part.len;
            for (i, row) in chunk.chunks_exact_mut(columns).enumerate() {
                let place = self.task * self.plan.rows_per_element() + part.place + i;
                dropout.fold_in(j as u64).apply(self.isa, place, row);
            }
        }
    }

    /// Writes the outputs of all parts, which also see `past`. Each part's keys and values go through `store`.
    ///
    /// # Safety
    /// `out` has a row of `plan.width()` for each of the plan's rows, and no other thread writes this head's columns of
    /// this batch element's rows.
    unsafe fn forward<T: Tile>(
        &self,
        tile: T,
        past: Option<KeysValues<T::In>>,
        mut store: impl FnMut(Part, &[f32], &[f32]),
        out: &SharedMut<f32>,
    ) {
        let dim = self.plan.head_dim;
        let mut chunks: Vec<KeysValues<T::In>> = past.into_iter().collect();
        let before = chunks.len();
        for part in self.plan.parts(self.batch()) {
            let [k, v] = [KEY, VALUE].map(|which| self.load(which, part));
            store(part, &k, &v);
            let own = (
                panels_of_transposed(tile, &k, part.len, dim),
                panels_of(tile, &v, part.len, dim),
            );
            let seen = || chunks[..before + part.seen].iter().chain([&own]);
            let keys: Vec<_> = seen().map(|(keys, _)| keys).collect();
            let mut weights = self.weights(tile, &self.load(QUERY, part), part.len, &keys);
            self.drop_out(&mut weights, part);
            let mut result = Scratch::<f32>::new(part.len * dim);
            for (j, (weights, (_, values))) in weights.iter().zip(seen()).enumerate() {
                let weights = rows_of(tile, weights, weights.len() / part.len);
                multiply_add(tile, &weights, values, &mut result, j > 0);
            }
            for (i, row) in result.chunks_exact(dim).enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let to = out.0.add(self.offset(part.row + i, 0, 1));
                    std::slice::from_raw_parts_mut(to, dim).copy_from_slice(row);
                }
            }
            if part.is_chunk {
                chunks.push(own);
            }
        }
    }
}

/// Row `i` over all chunks, up to its own position in the last.
fn segments(chunks: &mut [Scratch<f32>], len: usize, i: usize) -> Vec<&mut [f32]> {
    let last = chunks.len() - 1;
    let segment = |(j, chunk): (usize, _)| {
        let chunk: &mut Scratch<f32> = chunk;
        let columns = chunk.len() / len;
        let row = &mut chunk[i * columns..][..columns];
        if j == last { &mut row[..i + 1] } else { row }
    };
    chunks.iter_mut().enumerate().map(segment).collect()
}

multiversion! {
    fn max_of(x: &[f32]) -> f32 {
        largest(x)
    }
}

multiversion! {
    /// Replaces x by e^(x - max) and returns their sum.
    fn exponentials(x: &mut [f32], max: f32) -> f32 {
        for x in x.iter_mut() {
            *x = weight(*x - max);
        }
        norm::sum_of([x], |[x]| x)
    }
}

multiversion! {
    fn scale(x: &mut [f32], by: f32) {
        for x in x {
            *x *= by;
        }
    }
}

/// `[rows, 3 * width]` -> `[rows, width]`
pub fn forward<T: Tile>(tile: T, plan: &Plan, rows: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), 3 * plan.rows() * plan.width());
    assert_eq!(out.len(), plan.rows() * plan.width());
    let out = &SharedMut(out.as_mut_ptr());
    each_task(plan.batch * plan.heads, rows.len(), |task| {
        let isa = tile.isa();
        let head = Head {
            plan,
            isa,
            task,
            rows,
        };
        // SAFETY: each task writes its own head's columns of its own rows.
        unsafe { head.forward(tile, None, |_, _, _| {}, out) };
    });
}

/// Runs `work` for every batch element and head.
fn each_task(tasks: usize, size: usize, work: impl Fn(usize) + Sync + Send) {
    if size < 16 * 1024 {
        (0..tasks).for_each(work);
    } else {
        (0..tasks).into_par_iter().for_each(work);
    }
}

#[cfg(test)]
mod tests;
