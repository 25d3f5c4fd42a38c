//! Packing of weights into panels.

use std::sync::Arc;

use super::matmul::Panels;
use super::tile::Tile;

/// Packs weights, which may reuse earlier results. Several weights, each `[inputs, outputs]`, form one matrix side by
/// side.
pub trait Packer: Sync {
    /// Panels of `[inputs, outputs of all]`, or of its transpose.
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        transposed: bool,
    ) -> Arc<Panels<T::In>>;
}

/// Packs at every call.
pub struct Uncached;

impl Packer for Uncached {
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        transposed: bool,
    ) -> Arc<Panels<T::In>> {
        Arc::new(if transposed {
            panels_transposed(tile, weights, inputs)
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
fn panels_transposed<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
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
