//! The gradients of attention.

use super::plan::{Part, Plan};
use super::{Head, KEY, QUERY, VALUE, each_task, scale};
use crate::cpu::isa::multiversion;
use crate::cpu::matmul::{Panels, SharedMut, multiply_add};
use crate::cpu::norm;
use crate::cpu::retention::{panels_of, panels_of_transposed, rows_of, transposed};
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::Tile;

/// Keys and values as factors of the backward pass, and their gradients so far, `[len, head_dim]` each.
struct Seen<In> {
    part: Part,
    keys: Panels<In>,
    keys_transposed: Panels<In>,
    values_transposed: Panels<In>,
    d_keys: Scratch<f32>,
    d_values: Scratch<f32>,
}

/// The gradients of queries, keys and values: `[rows, 3 * width]`, `[rows, width]` -> `[rows, 3 * width]`.
pub fn backward<T: Tile>(tile: T, plan: &Plan, rows: &[f32], d_out: &[f32], d_rows: &mut [f32]) {
    assert_eq!(d_out.len(), plan.rows() * plan.width());
    assert_eq!(d_rows.len(), rows.len());
    let d_rows = &SharedMut(d_rows.as_mut_ptr());
    each_task(plan.batch * plan.heads, rows.len(), |task| {
        let isa = tile.isa();
        let head = Head {
            plan,
            isa,
            task,
            rows,
        };
        let mut chunks = Vec::new();
        for part in plan.parts(head.batch()) {
            let mut own = head.seen(tile, part);
            let d_q = head.part_backward(tile, d_out, &mut chunks[..part.seen], &mut own);
            // SAFETY: each task writes its own head's columns of its own rows.
            unsafe { head.write(QUERY, part, &d_q, d_rows) };
            if part.is_chunk {
                chunks.push(own);
            } else {
                // SAFETY: as above.
                unsafe { head.write_keys_values(&own, d_rows) };
            }
        }
        for chunk in &chunks {
            // SAFETY: as above.
            unsafe { head.write_keys_values(chunk, d_rows) };
        }
    });
}

impl Head<'_> {
    fn seen<T: Tile>(&self, tile: T, part: Part) -> Seen<T::In> {
        let (len, dim) = (part.len, self.plan.head_dim);
        let [k, v] = [KEY, VALUE].map(|which| self.load(which, part));
        Seen {
            part,
            keys: panels_of(tile, &k, len, dim),
            keys_transposed: panels_of_transposed(tile, &k, len, dim),
            values_transposed: panels_of_transposed(tile, &v, len, dim),
            d_keys: Scratch::new(len * dim),
            d_values: Scratch::new(len * dim),
        }
    }

    /// The gradient of a part's queries. Adds to the gradients of the keys and values in `chunks` and sets its `own`.
    fn part_backward<T: Tile>(
        &self,
        tile: T,
        d_out: &[f32],
        chunks: &mut [Seen<T::In>],
        own: &mut Seen<T::In>,
    ) -> Scratch<f32> {
        let (isa, part, dim) = (self.isa, own.part, self.plan.head_dim);
        let q = self.load(QUERY, part);
        let keys = chunks.iter().chain([&*own]).map(|c| &c.keys_transposed);
        let a = self.weights(tile, &q, part.len, &keys.collect::<Vec<_>>());
        let mut d = Scratch::<f32>::new(part.len * dim);
        for (i, d) in d.chunks_exact_mut(dim).enumerate() {
            d.copy_from_slice(&d_out[self.offset(part.row + i, 0, 1)..][..dim]);
        }
        let d_scores = self.d_scores(tile, &d, &a, chunks.iter().chain([&*own]), part);
        let mut dropped = a;
        self.drop_out(&mut dropped, part);

        // dq = dS k / √head_dim, dk = dSᵀ q, dv = Aᵀ d
        let q_panels = panels_of(tile, &q, part.len, dim);
        let d_panels = panels_of(tile, &d, part.len, dim);
        let mut d_q = Scratch::<f32>::new(part.len * dim);
        let before = chunks.len();
        let seen = chunks.iter_mut().chain([own]);
        for (j, (chunk, (d_scores, a))) in seen.zip(d_scores.iter().zip(&dropped)).enumerate() {
            let columns = chunk.part.len;
            let rows = rows_of(tile, d_scores, columns);
            multiply_add(tile, &rows, &chunk.keys, &mut d_q, j > 0);
            let d_scores = transposed(isa, d_scores, part.len, columns);
            let rows = rows_of(tile, &d_scores, part.len);
            multiply_add(tile, &rows, &q_panels, &mut chunk.d_keys, j < before);
            let a = transposed(isa, a, part.len, columns);
            let rows = rows_of(tile, &a, part.len);
            multiply_add(tile, &rows, &d_panels, &mut chunk.d_values, j < before);
        }
        scale(isa, &mut d_q, 1.0 / (dim as f32).sqrt());
        d_q
    }

    /// The gradient of the scores of a part's queries over each chunk of keys that they see: dA = d vᵀ, through the
    /// same dropout, then that of the softmax.
    fn d_scores<'a, T: Tile>(
        &self,
        tile: T,
        d: &[f32],
        a: &[Scratch<f32>],
        seen: impl Iterator<Item = &'a Seen<T::In>>,
        part: Part,
    ) -> Vec<Scratch<f32>> {
        let d = rows_of(tile, d, self.plan.head_dim);
        let product = |chunk: &Seen<T::In>| {
            let mut d_a = Scratch::new(part.len * chunk.part.len);
            multiply_add(tile, &d, &chunk.values_transposed, &mut d_a, false);
            d_a
        };
        let mut d_a: Vec<Scratch<f32>> = seen.map(product).collect();
        self.drop_out(&mut d_a, part);
        for i in 0..part.len {
            let row = |chunk: &Scratch<f32>| -> std::ops::Range<usize> {
                let columns = chunk.len() / part.len;
                i * columns..(i + 1) * columns
            };
            let pairs = || a.iter().zip(&d_a);
            let inner = pairs().map(|(a, d)| dot(self.isa, &a[row(a)], &d[row(d)]));
            let inner: f32 = inner.sum();
            for (a, d) in a.iter().zip(&mut d_a) {
                softmax_backward(self.isa, &a[row(a)], &mut d[row(a)], inner);
            }
        }
        d_a
    }

    /// # Safety
    /// As [`write`](Self::write).
    unsafe fn write_keys_values<In>(&self, chunk: &Seen<In>, d_rows: &SharedMut<f32>) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.write(KEY, chunk.part, &chunk.d_keys, d_rows);
            self.write(VALUE, chunk.part, &chunk.d_values, d_rows);
        }
    }

    /// Writes gradients of a part's queries, keys or values, those of queries and keys rotated back.
    ///
    /// # Safety
    /// `d_rows` has `3 * plan.width()` elements for each of the plan's rows, and no other thread writes this head's
    /// columns of the part's rows.
    unsafe fn write(&self, which: usize, part: Part, from: &[f32], d_rows: &SharedMut<f32>) {
        let dim = self.plan.head_dim;
        for (i, row) in from.chunks_exact(dim).enumerate() {
            // SAFETY: guaranteed by the caller.
            let to = unsafe {
                let to = d_rows.0.add(self.offset(part.row + i, which, 3));
                std::slice::from_raw_parts_mut(to, dim)
            };
            match self.plan.rotation {
                Some(rotation) if which != VALUE => {
                    rotation.backward(self.isa, part.place + i, row, 1.0, to);
                }
                _ => to.copy_from_slice(row),
            }
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
