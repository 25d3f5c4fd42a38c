//! The gradients of retention.

use super::{
    Head, Part, Plan, Projections, each_task, panels_of, panels_of_transposed, rows_of,
    scale_in_place, scale_into, transposed,
};
use crate::cpu::matmul::{Panels, SharedMut, multiply_add};
use crate::cpu::scratch::Scratch;
use crate::cpu::tile::Tile;

/// The gradients of queries, keys and values, in the layout of [`Projections`]. The columns after the queries are not
/// written.
/// # Shapes
/// - `start`, `states`: the input and output of [`forward`](super::forward); `d_out`: `[outputs, width]`
#[allow(clippy::too_many_arguments)]
pub fn backward<T: Tile>(
    tile: T,
    plan: &Plan,
    p: Projections,
    start: Option<&[f32]>,
    states: &[f32],
    d_out: &[f32],
    d_queries: &mut [f32],
    d_keys_values: &mut [f32],
) {
    assert_eq!(d_queries.len(), p.queries.len());
    assert_eq!(d_keys_values.len(), p.keys_values.len());
    let (own, len, dim) = (
        plan.chunks() * plan.state_len(),
        plan.state_len(),
        plan.head_dim,
    );
    let d_p = &[
        SharedMut(d_queries.as_mut_ptr()),
        SharedMut(d_keys_values.as_mut_ptr()),
    ];
    let work = |task: usize| {
        let (batch, head) = (task / plan.heads, task % plan.heads);
        let h = Head::new(plan, tile.isa(), head);
        // G: the gradient of the state after the chunk; none after the last.
        let mut after: Option<Scratch<f32>> = None;
        for chunk in (0..=plan.chunks()).rev() {
            let state = match chunk {
                0 => start.map(|s| &s[task * len..(task + 1) * len]),
                _ => Some(&states[task * own + (chunk - 1) * len..][..len]),
            };
            // Sᵀ as the second factor of d_out · Sᵀ.
            let state = state.map(|s| panels_of_transposed(tile, s, dim, dim));
            let has_state = state.is_some();
            let mut before: Option<Scratch<f32>> = None;
            if (plan.first_predicted..plan.first_predicted + plan.predicted).contains(&chunk) {
                let part = plan.predicted_part(batch, chunk - plan.first_predicted);
                let d_state = h.part_backward(tile, part, p, state.as_ref(), None, d_out, d_p);
                before = has_state.then_some(d_state).flatten();
            }
            if chunk < plan.chunks() {
                let part = plan.trajectory_part(batch, chunk);
                let d_state =
                    h.part_backward(tile, part, p, state.as_ref(), after.as_deref(), d_out, d_p);
                if has_state {
                    let mut total = d_state.expect("there is a state");
                    if let Some(before) = &before {
                        scale_into(h.isa, &mut total, before, 1.0, true);
                    }
                    if let Some(after) = &after {
                        scale_into(h.isa, &mut total, after, h.powers[part.len], true);
                    }
                    before = Some(total);
                }
            }
            after = before;
        }
    };
    each_task(plan, work);
}

impl Head<'_> {
    /// Gradients of one part; returns its contribution to the gradient of the state before it.
    #[allow(clippy::too_many_arguments)]
    fn part_backward<T: Tile>(
        &self,
        tile: T,
        part: Part,
        p: Projections,
        state_transposed: Option<&Panels<T::In>>,
        after: Option<&[f32]>,
        d_out: &[f32],
        d_p: &[SharedMut<f32>; 2],
    ) -> Option<Scratch<f32>> {
        let (dim, width, len, isa) = (self.plan.head_dim, self.plan.width(), part.len, self.isa);
        let queries = part.queries();
        let [q, k, v] = self.load(p, part);
        let mut d = Scratch::<f32>::new(queries * dim);
        for (i, d) in d.chunks_exact_mut(dim).enumerate() {
            d.copy_from_slice(&d_out[(part.output + i) * width + self.head * dim..][..dim]);
        }
        let d_rows = rows_of(tile, &d, dim);
        let d_panels = panels_of(tile, &d, queries, dim);

        // dA = (d vᵀ) ∘ D
        let mut d_scores = Scratch::<f32>::new(queries * len);
        multiply_add(
            tile,
            &d_rows,
            &panels_of_transposed(tile, &v, len, dim),
            &mut d_scores,
            false,
        );
        self.mask(&mut d_scores, part);
        let scores = self.scores(tile, &rows_of(tile, &q, dim), &k, part);

        // dq = dA k + ξ ∘ (d Sᵀ)
        let mut d_q = Scratch::<f32>::new(queries * dim);
        if let Some(state) = state_transposed {
            multiply_add(tile, &d_rows, state, &mut d_q, false);
            self.decay_from_state(part, &mut d_q);
        }
        let add = state_transposed.is_some();
        multiply_add(
            tile,
            &rows_of(tile, &d_scores, len),
            &panels_of(tile, &k, len, dim),
            &mut d_q,
            add,
        );

        // dk = ζ ∘ (v Gᵀ) + dAᵀ q,  dv = ζ ∘ (k G) + Aᵀ d
        let (mut d_k, mut d_v) = (
            Scratch::<f32>::new(len * dim),
            Scratch::<f32>::new(len * dim),
        );
        if let Some(after) = after {
            let d_after = panels_of_transposed(tile, after, dim, dim);
            multiply_add(tile, &rows_of(tile, &v, dim), &d_after, &mut d_k, false);
            multiply_add(
                tile,
                &rows_of(tile, &k, dim),
                &panels_of(tile, after, dim, dim),
                &mut d_v,
                false,
            );
            for (i, (d_k, d_v)) in d_k
                .chunks_exact_mut(dim)
                .zip(d_v.chunks_exact_mut(dim))
                .enumerate()
            {
                scale_in_place(isa, d_k, self.powers[len - 1 - i]);
                scale_in_place(isa, d_v, self.powers[len - 1 - i]);
            }
        }
        let add = after.is_some();
        let d_scores = transposed(isa, &d_scores, queries, len);
        let q_panels = panels_of(tile, &q, queries, dim);
        multiply_add(
            tile,
            &rows_of(tile, &d_scores, queries),
            &q_panels,
            &mut d_k,
            add,
        );
        let scores = transposed(isa, &scores, queries, len);
        multiply_add(
            tile,
            &rows_of(tile, &scores, queries),
            &d_panels,
            &mut d_v,
            add,
        );

        // SAFETY: this task alone writes this head's columns of these rows.
        let to = |which: usize, row: usize, offset: usize| unsafe {
            let at = 2 * row * width + offset + self.head * dim;
            std::slice::from_raw_parts_mut(d_p[which].0.add(at), dim)
        };
        let rotation = self.plan.rotation;
        for (i, d_q) in d_q.chunks_exact(dim).enumerate() {
            let position = part.rotation + part.first_query + i;
            rotation.backward(isa, position, d_q, 1.0, to(0, part.output + i, 0));
        }
        let scale = 1.0 / (dim as f32).sqrt();
        for (i, (d_k, d_v)) in d_k.chunks_exact(dim).zip(d_v.chunks_exact(dim)).enumerate() {
            let position = part.rotation + i;
            rotation.backward(isa, position, d_k, scale, to(1, part.row + i, 0));
            to(1, part.row + i, width).copy_from_slice(d_v);
        }

        // dS = (ξ ∘ q)ᵀ d
        state_transposed.map(|_| {
            let mut weighted = q;
            self.decay_from_state(part, &mut weighted);
            let weighted = transposed(isa, &weighted, queries, dim);
            let mut d_state = Scratch::<f32>::new(dim * dim);
            multiply_add(
                tile,
                &rows_of(tile, &weighted, queries),
                &d_panels,
                &mut d_state,
                false,
            );
            d_state
        })
    }
}
