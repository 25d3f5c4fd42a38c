//! Chunkwise retention over rows of projections (Equations (4) to (7)), forward and backward, one batch element and head
//! at a time.
//!
//! Trajectories are split into chunks. A chunk sees itself through a decay mask and everything before it through the
//! state. POP's prediction blocks see themselves and a state, and do not change it (Algorithm 2).
//!
//! Notation: q, k, v are queries, keys and values, with the rotation in q and k; η is the decay of a head; D the decay
//! mask; S the state before a chunk; A the masked scores of a chunk; G the gradient of the state after it.

mod backward;
mod plan;

pub use backward::backward;
pub use plan::Plan;

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use super::matmul::{Converted, Dense, Panels, SharedMut, convert, multiply_add};
use super::scratch::Scratch;
use super::tile::Tile;
use super::transpose::transpose;
use plan::Part;

/// The inputs of retention. Rows are `2 * width` long.
#[derive(Clone, Copy)]
pub struct Projections<'a> {
    /// `[queries, 2 * width]`: queries, and columns that are not read
    pub queries: &'a [f32],
    /// `[rows, 2 * width]`: keys and values
    pub keys_values: &'a [f32],
}

/// One head of the plan, with its powers of η.
struct Head<'a> {
    plan: &'a Plan<'a>,
    isa: Isa,
    head: usize,
    /// η^i, from 0 on.
    powers: &'a [f32],
}

impl<'a> Head<'a> {
    fn new(plan: &'a Plan<'a>, isa: Isa, head: usize) -> Self {
        let powers = &plan.powers[head * plan.powers_per_head..][..plan.powers_per_head];
        Self {
            plan,
            isa,
            head,
            powers,
        }
    }

    /// Queries, keys and values of a part, rotated, a row of `head_dim` each.
    fn load(&self, p: Projections, part: Part) -> [Scratch<f32>; 3] {
        let dim = self.plan.head_dim;
        let [q, k] = self.queries_and_keys(p, part);
        let mut v = Scratch::new(part.len * dim);
        for (i, v) in v.chunks_exact_mut(dim).enumerate() {
            v.copy_from_slice(self.value(p, part, i));
        }
        [q, k, v]
    }

    /// Queries and keys of a part, rotated, a row of `head_dim` each.
    fn queries_and_keys(&self, p: Projections, part: Part) -> [Scratch<f32>; 2] {
        let (dim, width) = (self.plan.head_dim, self.plan.width());
        let column = self.head * dim;
        let rotated = |rows: &[f32], first: usize, count: usize, scale: f32| {
            let mut out = Scratch::new(count * dim);
            let first = part.rotation + first;
            (self.plan.rotation).apply_rows(self.isa, first, rows, 2 * width, dim, scale, &mut out);
            out
        };
        let queries = &p.queries[2 * part.query * width + column..];
        let keys = &p.keys_values[2 * part.row * width + column..];
        let scale = 1.0 / (dim as f32).sqrt();
        [
            rotated(queries, part.first_query, part.queries(), 1.0),
            rotated(keys, 0, part.len, scale),
        ]
    }

    /// The value of a part's row.
    fn value<'p>(&self, p: Projections<'p>, part: Part, row: usize) -> &'p [f32] {
        let (dim, width) = (self.plan.head_dim, self.plan.width());
        let at = (2 * (part.row + row) + 1) * width + self.head * dim;
        &p.keys_values[at..][..dim]
    }

    /// Panels of a part's values.
    fn values<T: Tile>(&self, tile: T, p: Projections, part: Part) -> Panels<T::In> {
        let value = |row: usize, first: usize| &self.value(p, part, row)[first..];
        Panels::pack_rows(tile, part.len, self.plan.head_dim, value)
    }

    /// A = (q kᵀ) ∘ D, `[queries, len]`.
    fn scores<T: Tile>(
        &self,
        tile: T,
        q: &Converted<T::In>,
        k: &[f32],
        part: Part,
    ) -> Scratch<f32> {
        let mut scores = Scratch::new(part.queries() * part.len);
        let transposed = panels_of_transposed(tile, k, part.len, self.plan.head_dim);
        multiply_add(tile, q, &transposed, &mut scores, false);
        self.mask(&mut scores, part);
        scores
    }

    /// Multiplies by D: η^(i-j) on and below the diagonal, 0 above.
    fn mask(&self, scores: &mut [f32], part: Part) {
        // η^(len-1) ... η^0: the last i + 1 are row i of D.
        let mut falling = Scratch::<f32>::new(part.len);
        for (j, power) in falling.iter_mut().enumerate() {
            *power = self.powers[part.len - 1 - j];
        }
        for (i, scores) in scores.chunks_exact_mut(part.len).enumerate() {
            let seen = part.first_query + i + 1;
            multiply_by(self.isa, &mut scores[..seen], &falling[part.len - seen..]);
            scores[seen..].fill(0.0);
        }
    }

    /// Multiplies rows by η to a power that depends on the row.
    fn scaled(&self, x: &[f32], power: impl Fn(usize) -> usize) -> Scratch<f32> {
        let mut scaled = Scratch::new(x.len());
        for (i, (to, x)) in scaled
            .chunks_exact_mut(self.plan.head_dim)
            .zip(x.chunks_exact(self.plan.head_dim))
            .enumerate()
        {
            scale(self.isa, x, self.powers[power(i)], to);
        }
        scaled
    }
}

/// Panels of `b`, which is `[depth, columns]`.
pub(super) fn panels_of<T: Tile>(
    tile: T,
    b: &[f32],
    depth: usize,
    columns: usize,
) -> Panels<T::In> {
    Panels::pack_rows(tile, depth, columns, |k, first| {
        &b[k * columns + first..(k + 1) * columns]
    })
}

/// Panels of the transpose of `b`, which is `[columns, depth]`.
pub(super) fn panels_of_transposed<T: Tile>(
    tile: T,
    b: &[f32],
    columns: usize,
    depth: usize,
) -> Panels<T::In> {
    let transposed = transposed(tile.isa(), b, columns, depth);
    panels_of(tile, &transposed, depth, columns)
}

/// The transpose of `x`, which is `[rows, columns]`.
pub(super) fn transposed(isa: Isa, x: &[f32], rows: usize, columns: usize) -> Scratch<f32> {
    let mut to = Scratch::new(rows * columns);
    transpose(isa, x, columns, rows, columns, &mut to, rows);
    to
}

pub(super) fn rows_of<T: Tile>(tile: T, x: &[f32], depth: usize) -> Converted<T::In> {
    convert(tile, &Dense::new(x, depth), 0, x.len() / depth)
}

multiversion! {
    fn multiply_by(x: &mut [f32], by: &[f32]) {
        for (x, b) in x.iter_mut().zip(by) {
            *x *= b;
        }
    }
}

multiversion! {
    fn scale(x: &[f32], by: f32, out: &mut [f32]) {
        for (o, x) in out.iter_mut().zip(x) {
            *o = x * by;
        }
    }
}

multiversion! {
    /// `to = from * by`, or `to += from * by`
    fn scale_into(to: &mut [f32], from: &[f32], by: f32, add: bool) {
        for (t, f) in to.iter_mut().zip(from) {
            *t = if add { *t + f * by } else { f * by };
        }
    }
}

/// The retained values, `[outputs, width]`, and the states after each chunk; the last one only if `last_state`.
/// # Shapes
/// - `start`: `[batch, heads, head_dim, head_dim]`, or none for zero
/// - `states`: `[batch, heads, chunks, head_dim, head_dim]`
pub fn forward<T: Tile>(
    tile: T,
    plan: &Plan,
    p: Projections,
    start: Option<&[f32]>,
    states: &mut [f32],
    last_state: bool,
    out: &mut [f32],
) {
    assert_eq!(out.len(), plan.outputs() * plan.width());
    assert_eq!(states.len(), plan.states_len());
    assert_eq!(p.queries.len(), plan.queries() * 2 * plan.width());
    assert_eq!(p.keys_values.len(), plan.rows() * 2 * plan.width());
    let shared = &SharedMut(out.as_mut_ptr());
    let (own, len) = (plan.chunks() * plan.state_len(), plan.state_len());
    let states = &SharedMut(states.as_mut_ptr());
    let work = |task: usize| {
        let (batch, head) = (task / plan.heads, task % plan.heads);
        let h = Head::new(plan, tile.isa(), head);
        // SAFETY: each task has its own states.
        let states = unsafe { std::slice::from_raw_parts_mut(states.0.add(task * own), own) };
        let start = start.map(|s| &s[task * len..(task + 1) * len]);
        if plan.tokens == 1 && plan.predicted == 0 {
            let part = plan.trajectory_part(batch, 0);
            let [q, k, v] = h.load(p, part);
            // SAFETY: each task writes its own head's columns of its own rows.
            let out = unsafe {
                let at = part.output * plan.width() + head * plan.head_dim;
                std::slice::from_raw_parts_mut(shared.0.add(at), plan.head_dim)
            };
            recurrent_step(h.isa, [&q, &k, &v], h.powers[1], start, states, out);
            return;
        }
        for chunk in 0..=plan.chunks() {
            let (before, after) = states.split_at_mut(chunk * len);
            let state = match chunk {
                0 => start,
                _ => Some(&before[(chunk - 1) * len..]),
            };
            let state_panels = state.map(|s| panels_of(tile, s, plan.head_dim, plan.head_dim));
            if chunk < plan.chunks() {
                let part = plan.trajectory_part(batch, chunk);
                let [q, k] = h.queries_and_keys(p, part);
                let values = h.values(tile, p, part);
                // SAFETY: each task writes its own head's columns of its own rows.
                unsafe { h.outputs(tile, part, &q, &k, &values, state_panels.as_ref(), shared) };
                if last_state || chunk + 1 < plan.chunks() {
                    let weighted = h.scaled(&k, |i| part.len - 1 - i);
                    let weighted = transposed(h.isa, &weighted, part.len, plan.head_dim);
                    let after = &mut after[..len];
                    multiply_add(
                        tile,
                        &rows_of(tile, &weighted, part.len),
                        &values,
                        after,
                        false,
                    );
                    if let Some(state) = state {
                        scale_into(h.isa, after, state, h.powers[part.len], true);
                    }
                }
            }
            if (plan.first_predicted..plan.first_predicted + plan.predicted).contains(&chunk) {
                let part = plan.predicted_part(batch, chunk - plan.first_predicted);
                let [q, k] = h.queries_and_keys(p, part);
                let values = h.values(tile, p, part);
                // SAFETY: as above.
                unsafe { h.outputs(tile, part, &q, &k, &values, state_panels.as_ref(), shared) };
            }
        }
    };
    each_task(plan, work);
}

multiversion! {
    /// The recurrent form for a single token: `next = η S + k ⊗ v`, `out = q · next`.
    fn recurrent_step(
        qkv: [&[f32]; 3],
        decay: f32,
        state: Option<&[f32]>,
        next: &mut [f32],
        out: &mut [f32],
    ) {
        let [q, k, v] = qkv;
        let dim = v.len();
        out.fill(0.0);
        for (i, next) in next.chunks_exact_mut(dim).enumerate() {
            match state {
                Some(state) => {
                    for ((n, s), v) in next.iter_mut().zip(&state[i * dim..]).zip(v) {
                        *n = s * decay + k[i] * v;
                    }
                }
                None => next.iter_mut().zip(v).for_each(|(n, v)| *n = k[i] * v),
            }
            for (o, n) in out.iter_mut().zip(&*next) {
                *o += q[i] * n;
            }
        }
    }
}

/// Runs `work` for every batch element and head.
fn each_task(plan: &Plan, work: impl Fn(usize) + Sync + Send) {
    let tasks = plan.batch * plan.heads;
    if plan.rows().max(plan.outputs()) * plan.width() < 4096 {
        (0..tasks).for_each(work);
    } else {
        (0..tasks).into_par_iter().for_each(work);
    }
}

impl Head<'_> {
    /// Writes a part's outputs (Equation (4)): A v + ξ ∘ (q S).
    /// # Safety
    /// `out` has a row of `plan.width()` for each of the plan's outputs, and no other thread writes this head's
    /// columns of the part's rows.
    #[allow(clippy::too_many_arguments)]
    unsafe fn outputs<T: Tile>(
        &self,
        tile: T,
        part: Part,
        q: &[f32],
        k: &[f32],
        values: &Panels<T::In>,
        state: Option<&Panels<T::In>>,
        out: &SharedMut<f32>,
    ) {
        let dim = self.plan.head_dim;
        let queries = rows_of(tile, q, dim);
        let mut result = Scratch::<f32>::new(part.queries() * dim);
        if let Some(state) = state {
            multiply_add(tile, &queries, state, &mut result, false);
            self.decay_from_state(part, &mut result);
        }
        let scores = self.scores(tile, &queries, k, part);
        multiply_add(
            tile,
            &rows_of(tile, &scores, part.len),
            values,
            &mut result,
            state.is_some(),
        );
        for (i, row) in result.chunks_exact(dim).enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let to = out
                    .0
                    .add((part.output + i) * self.plan.width() + self.head * dim);
                std::slice::from_raw_parts_mut(to, dim).copy_from_slice(row);
            }
        }
    }

    /// ξ: multiplies rows of queries by η to the power of their distance from the state.
    fn decay_from_state(&self, part: Part, rows: &mut [f32]) {
        for (i, row) in rows.chunks_exact_mut(self.plan.head_dim).enumerate() {
            scale_in_place(self.isa, row, self.powers[part.first_query + i + 1]);
        }
    }
}

multiversion! {
    fn scale_in_place(x: &mut [f32], by: f32) {
        for x in x {
            *x *= by;
        }
    }
}
