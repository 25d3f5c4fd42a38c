//! Causal attention over rows of projections, forward and backward, one batch element and head at a time; and over a
//! cache of keys and values.
//!
//! Notation: q (divided by √head_dim), k and v are queries, keys and values; A is the softmax of a query's scores over
//! the keys up to its own position. Queries and keys are processed in blocks, and blocks of keys after the queries are
//! skipped. A is not saved; the backward pass recomputes it.

mod cached;

pub use cached::{CachePlan, LANES, forward_cached};

use rayon::prelude::*;

use super::cross_entropy::{largest, weight};
use super::dropout::Dropout;
use super::isa::{Isa, multiversion};
use super::matmul::{Panels, SharedMut, multiply_add};
use super::norm;
use super::retention::{panels_of, panels_of_transposed, rows_of, transposed};
use super::scratch::Scratch;
use super::tile::Tile;

/// Tokens of a block.
const BLOCK: usize = 96;

/// Whole sequences from their start. Rows are `3 * width` long: queries, keys, values.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Batch size.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Tokens of a sequence.
    pub tokens: usize,
    /// Dropout of A.
    pub dropout: Dropout,
}

impl Plan {
    /// Rows of all sequences.
    pub fn rows(&self) -> usize {
        self.batch * self.tokens
    }
    /// Channels of a row.
    pub fn width(&self) -> usize {
        self.heads * self.head_dim
    }
    /// First token and number of tokens of each block.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        let tokens = self.tokens;
        let size = move |first: usize| (first, BLOCK.min(tokens - first));
        (0..tokens).step_by(BLOCK).map(size)
    }
}

/// One batch element and head.
struct Head<'a> {
    plan: &'a Plan,
    isa: Isa,
    task: usize,
    rows: &'a [f32],
}

/// The parts of a row: queries, keys and values.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl Head<'_> {
    /// The offset of a token's part in rows of `parts * width`.
    fn offset(&self, token: usize, part: usize, parts: usize) -> usize {
        let plan = self.plan;
        let (batch, head) = (self.task / plan.heads, self.task % plan.heads);
        let row = batch * plan.tokens + token;
        (row * parts + part) * plan.width() + head * plan.head_dim
    }

    /// One part of a block's rows, contiguous.
    fn load(&self, part: usize, (first, count): (usize, usize)) -> Scratch<f32> {
        let dim = self.plan.head_dim;
        let mut to = Scratch::new(count * dim);
        for (i, to) in to.chunks_exact_mut(dim).enumerate() {
            to.copy_from_slice(&self.rows[self.offset(first + i, part, 3)..][..dim]);
        }
        to
    }

    fn queries(&self, block: (usize, usize)) -> Scratch<f32> {
        let mut q = self.load(QUERY, block);
        scale(self.isa, &mut q, 1.0 / (self.plan.head_dim as f32).sqrt());
        q
    }

    /// A of a block of queries over each block of keys up to its own, the last one's upper triangle 0.
    fn weights<T: Tile>(
        &self,
        tile: T,
        q: &[f32],
        (_, count): (usize, usize),
        keys: &[Panels<T::In>],
    ) -> Vec<Scratch<f32>> {
        let q = rows_of(tile, q, self.plan.head_dim);
        let mut scores: Vec<Scratch<f32>> = keys
            .iter()
            .map(|keys| {
                let mut scores = Scratch::new(count * keys.columns());
                multiply_add(tile, &q, keys, &mut scores, false);
                scores
            })
            .collect();
        for i in 0..count {
            let mut row = segments(&mut scores, count, i);
            let max = row.iter().map(|s| max_of(self.isa, s));
            let max = max.fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = row.iter_mut().map(|s| exponentials(self.isa, s, max)).sum();
            for segment in &mut row {
                scale(self.isa, segment, 1.0 / sum);
            }
            let last = scores.last_mut().expect("a query sees itself");
            last[i * count..][..count][i + 1..].fill(0.0);
        }
        scores
    }

    /// Applies dropout to the blocks of A.
    fn drop_out(&self, weights: &mut [Scratch<f32>], (first, count): (usize, usize)) {
        let dropout = self.plan.dropout;
        if dropout.is_off() {
            return;
        }
        for (j, block) in weights.iter_mut().enumerate() {
            let columns = block.len() / count;
            for (i, row) in block.chunks_exact_mut(columns).enumerate() {
                let place = self.task * self.plan.tokens + first + i;
                dropout.fold_in(j as u64).apply(self.isa, place, row);
            }
        }
    }
}

/// Row `i` over all blocks, up to its own position in the last.
fn segments(blocks: &mut [Scratch<f32>], count: usize, i: usize) -> Vec<&mut [f32]> {
    let last = blocks.len() - 1;
    let segment = |(j, block): (usize, _)| {
        let block: &mut Scratch<f32> = block;
        let columns = block.len() / count;
        let row = &mut block[i * columns..][..columns];
        if j == last { &mut row[..i + 1] } else { row }
    };
    blocks.iter_mut().enumerate().map(segment).collect()
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

multiversion! {
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        norm::sum_of([a, b], |[a, b]| a * b)
    }
}

multiversion! {
    /// Turns dA into the gradient of the scores: `A ∘ (dA - inner)`.
    fn softmax_backward(a: &[f32], d: &mut [f32], inner: f32) {
        for (d, a) in d.iter_mut().zip(a) {
            *d = a * (*d - inner);
        }
    }
}

/// `[rows, 3 * width]` -> `[rows, width]`
pub fn forward<T: Tile>(tile: T, plan: &Plan, rows: &[f32], out: &mut [f32]) {
    let dim = plan.head_dim;
    assert_eq!(rows.len(), 3 * plan.rows() * plan.width());
    assert_eq!(out.len(), plan.rows() * plan.width());
    let out = &SharedMut(out.as_mut_ptr());
    each_task(plan.batch * plan.heads, rows.len(), |task| {
        let isa = tile.isa();
        let h = Head {
            plan,
            isa,
            task,
            rows,
        };
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for block in plan.blocks() {
            keys.push(panels_of_transposed(
                tile,
                &h.load(KEY, block),
                block.1,
                dim,
            ));
            values.push(panels_of(tile, &h.load(VALUE, block), block.1, dim));
            let mut weights = h.weights(tile, &h.queries(block), block, &keys);
            h.drop_out(&mut weights, block);
            let mut result = Scratch::<f32>::new(block.1 * dim);
            for (j, (weights, values)) in weights.iter().zip(&values).enumerate() {
                let weights = rows_of(tile, weights, weights.len() / block.1);
                multiply_add(tile, &weights, values, &mut result, j > 0);
            }
            for (i, row) in result.chunks_exact(dim).enumerate() {
                // SAFETY: each task writes its own head's columns of its own rows.
                unsafe {
                    let to = out.0.add(h.offset(block.0 + i, 0, 1));
                    std::slice::from_raw_parts_mut(to, dim).copy_from_slice(row);
                }
            }
        }
    });
}

/// The gradients of queries, keys and values: `[rows, 3 * width]`, `[rows, width]` -> `[rows, 3 * width]`.
pub fn backward<T: Tile>(tile: T, plan: &Plan, rows: &[f32], d_out: &[f32], d_rows: &mut [f32]) {
    let dim = plan.head_dim;
    assert_eq!(d_out.len(), plan.rows() * plan.width());
    assert_eq!(d_rows.len(), rows.len());
    let d_rows = &SharedMut(d_rows.as_mut_ptr());
    each_task(plan.batch * plan.heads, rows.len(), |task| {
        let isa = tile.isa();
        let h = Head {
            plan,
            isa,
            task,
            rows,
        };
        let write = |part: usize, first: usize, from: &[f32]| {
            for (i, row) in from.chunks_exact(dim).enumerate() {
                // SAFETY: each task writes its own head's columns of its own rows.
                unsafe {
                    let to = d_rows.0.add(h.offset(first + i, part, 3));
                    std::slice::from_raw_parts_mut(to, dim).copy_from_slice(row);
                }
            }
        };
        let blocks: Vec<(usize, usize)> = plan.blocks().collect();
        let (mut keys_transposed, mut keys, mut values_transposed) = (vec![], vec![], vec![]);
        let (mut d_keys, mut d_values) = (vec![], vec![]);
        for (i, &block) in blocks.iter().enumerate() {
            let (first, count) = block;
            let (k, v) = (h.load(KEY, block), h.load(VALUE, block));
            keys_transposed.push(panels_of_transposed(tile, &k, count, dim));
            keys.push(panels_of(tile, &k, count, dim));
            values_transposed.push(panels_of_transposed(tile, &v, count, dim));
            d_keys.push(Scratch::<f32>::new(count * dim));
            d_values.push(Scratch::<f32>::new(count * dim));

            let q = h.queries(block);
            let a = h.weights(tile, &q, block, &keys_transposed);
            let mut d = Scratch::<f32>::new(count * dim);
            for (n, d) in d.chunks_exact_mut(dim).enumerate() {
                d.copy_from_slice(&d_out[h.offset(first + n, 0, 1)..][..dim]);
            }
            let d_converted = rows_of(tile, &d, dim);
            let d_panels = panels_of(tile, &d, count, dim);
            // dA = d vᵀ, through the same dropout.
            let mut d_a: Vec<Scratch<f32>> = values_transposed
                .iter()
                .map(|values| {
                    let mut d_a = Scratch::new(count * values.columns());
                    multiply_add(tile, &d_converted, values, &mut d_a, false);
                    d_a
                })
                .collect();
            h.drop_out(&mut d_a, block);
            let mut dropped: Vec<Scratch<f32>> = a.iter().map(|a| copied(a)).collect();
            h.drop_out(&mut dropped, block);
            for n in 0..count {
                let part = |blocks: &[Scratch<f32>], j: usize| -> std::ops::Range<usize> {
                    let columns = blocks[j].len() / count;
                    n * columns..(n + 1) * columns
                };
                let inner: f32 = (0..=i)
                    .map(|j| dot(isa, &a[j][part(&a, j)], &d_a[j][part(&d_a, j)]))
                    .sum();
                for j in 0..=i {
                    let at = part(&a, j);
                    softmax_backward(isa, &a[j][at.clone()], &mut d_a[j][at], inner);
                }
            }
            // dq = dS k / √head_dim, dk = dSᵀ q, dv = Aᵀ d
            let q_panels = panels_of(tile, &q, count, dim);
            let mut d_q = Scratch::<f32>::new(count * dim);
            for j in 0..=i {
                let columns = blocks[j].1;
                let d_scores = rows_of(tile, &d_a[j], columns);
                multiply_add(tile, &d_scores, &keys[j], &mut d_q, j > 0);
                let d_scores = transposed(isa, &d_a[j], count, columns);
                let d_scores = rows_of(tile, &d_scores, count);
                multiply_add(tile, &d_scores, &q_panels, &mut d_keys[j], j < i);
                let dropped = transposed(isa, &dropped[j], count, columns);
                let dropped = rows_of(tile, &dropped, count);
                multiply_add(tile, &dropped, &d_panels, &mut d_values[j], j < i);
            }
            scale(isa, &mut d_q, 1.0 / (dim as f32).sqrt());
            write(QUERY, first, &d_q);
        }
        for (&(first, _), (d_k, d_v)) in blocks.iter().zip(d_keys.iter().zip(&d_values)) {
            write(KEY, first, d_k);
            write(VALUE, first, d_v);
        }
    });
}

fn copied(x: &[f32]) -> Scratch<f32> {
    let mut to = Scratch::new(x.len());
    to.copy_from_slice(x);
    to
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
