//! Weights as panels, packed anew or remembered.

use std::sync::Arc;

use super::product::Panels;
use super::tile::Tile;

/// Where panels of weights come from. Weights stand side by side, each `[inputs, outputs]`.
pub trait Packed: Sync {
    /// B is `[inputs, outputs of all]`, or the transpose of that.
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        turned: bool,
    ) -> Arc<Panels<T::In>>;
}

/// Packs at every call.
pub struct Fresh;

impl Packed for Fresh {
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        turned: bool,
    ) -> Arc<Panels<T::In>> {
        Arc::new(if turned {
            panels_turned(tile, weights, inputs)
        } else {
            panels(tile, weights, inputs)
        })
    }
}

/// Panels of weights side by side: B is `[inputs, outputs of all]`.
fn panels<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
    let outputs = weights[0].len() / inputs;
    Panels::pack(
        tile,
        1,
        inputs,
        outputs * weights.len(),
        |_, k, first, to: &mut [f32]| {
            let mut first = first;
            let mut to = to;
            while !to.is_empty() {
                let (which, column) = (first / outputs, first % outputs);
                let count = to.len().min(outputs - column);
                let (now, rest) = to.split_at_mut(count);
                now.copy_from_slice(&weights[which][k * outputs + column..][..count]);
                (to, first) = (rest, first + count);
            }
        },
    )
}

/// Panels of the transpose of weights side by side: B is `[outputs of all, inputs]`.
fn panels_turned<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
    let outputs = weights[0].len() / inputs;
    Panels::pack(
        tile,
        1,
        outputs * weights.len(),
        inputs,
        |_, k, first, to: &mut [f32]| {
            let (weight, column) = (weights[k / outputs], k % outputs);
            for (i, to) in to.iter_mut().enumerate() {
                *to = weight[(first + i) * outputs + column];
            }
        },
    )
}
