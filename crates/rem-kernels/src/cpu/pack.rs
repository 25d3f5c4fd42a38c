//! Packing of weights into panels.

use std::sync::Arc;

use super::matmul::Panels;
use super::scratch::Scratch;
use super::tile::{PANEL, Tile};
use super::transpose::transpose;

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
    let columns = outputs * weights.len();
    if weights.len() == 1 || outputs.is_multiple_of(PANEL) {
        // No panel has columns of two weights.
        return Panels::pack_rows(tile, inputs, columns, |k, first| {
            &weights[first / outputs][k * outputs + first % outputs..(k + 1) * outputs]
        });
    }
    Panels::pack(tile, 1, inputs, columns, |_, k, first, to: &mut [f32]| {
        let mut first = first;
        let mut to = to;
        while !to.is_empty() {
            let (which, column) = (first / outputs, first % outputs);
            let count = to.len().min(outputs - column);
            let (now, rest) = to.split_at_mut(count);
            now.copy_from_slice(&weights[which][k * outputs + column..][..count]);
            (to, first) = (rest, first + count);
        }
    })
}

/// Panels of the transpose of weights side by side: B is `[outputs of all, inputs]`.
fn panels_transposed<T: Tile>(tile: T, weights: &[&[f32]], inputs: usize) -> Panels<T::In> {
    let outputs = weights[0].len() / inputs;
    let size = inputs * outputs;
    let mut transposed = Scratch::new(size * weights.len());
    for (weight, to) in weights.iter().zip(transposed.chunks_exact_mut(size)) {
        transpose(tile.isa(), weight, outputs, inputs, outputs, to, inputs);
    }
    Panels::pack_rows(tile, outputs * weights.len(), inputs, |k, first| {
        &transposed[k * inputs + first..(k + 1) * inputs]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;
    use crate::cpu::testing::numbers;
    use crate::cpu::tile::{Precision, with_tile};

    /// Weights `[inputs, outputs]`, of which one or two are side by side.
    #[test]
    fn weights_and_their_transposes_have_every_element_in_its_place() {
        for (inputs, outputs, count) in [
            (5, 3, 1),
            (64, 96, 1),
            (33, 32, 2),
            (32, 20, 2),
            (128, 64, 2),
        ] {
            let all: Vec<Vec<f32>> = (0..count).map(|i| numbers(inputs * outputs, i)).collect();
            let weights: Vec<&[f32]> = all.iter().map(|weight| &weight[..]).collect();
            let columns = outputs * weights.len();
            let at = |row: usize, column: usize| {
                weights[column / outputs][row * outputs + column % outputs]
            };
            for isa in Isa::available() {
                for precision in [Precision::F32, Precision::Mixed] {
                    with_tile!(isa, precision, tile => {
                        let expected = Panels::pack(tile, 1, inputs, columns, |_, k, first, to| {
                            to.iter_mut().enumerate().for_each(|(i, to)| *to = at(k, first + i));
                        });
                        let found = Uncached.panels(tile, &weights, inputs, false);
                        assert!(found.data[..] == expected.data[..], "{isa:?} {inputs} {outputs}");
                        let expected = Panels::pack(tile, 1, columns, inputs, |_, k, first, to| {
                            to.iter_mut().enumerate().for_each(|(i, to)| *to = at(first + i, k));
                        });
                        let found = Uncached.panels(tile, &weights, inputs, true);
                        assert!(found.data[..] == expected.data[..], "{isa:?} {inputs} {outputs} transposed");
                    });
                }
            }
        }
    }
}
