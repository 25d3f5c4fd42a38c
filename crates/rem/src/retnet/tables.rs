//! Decay tables and rotations, computed once for each size.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use burn::tensor::{DType, TensorCreationOptions};
use rem_kernels::RetentionSizes;

use crate::retention::{Decay, DecayTables, Rotation};

/// Values by size and type.
type Shared<K, V> = Arc<Mutex<HashMap<(K, Option<DType>), V>>>;

/// Decay tables and rotations by size: computed once, shared by layers, calls and clones.
#[derive(Clone, Debug)]
pub(super) struct TableCache {
    decay: Decay,
    head_dim: usize,
    rotation_base: f64,
    decay_tables: Shared<usize, DecayTables>,
    rotations: Shared<RotationKey, Rotation>,
}

/// Positions `start + 0..tokens`, then for each predicted block `start + (first + block) * stride + 0..block_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RotationKey {
    start: usize,
    tokens: usize,
    first: usize,
    blocks: usize,
    stride: usize,
    block_tokens: usize,
}

/// Rotations kept at most; a dream without end would otherwise gather one per step.
const MAX_ROTATIONS: usize = 256;

impl TableCache {
    pub(super) fn new(decay: Decay, head_dim: usize, rotation_base: f64) -> Self {
        Self {
            decay,
            head_dim,
            rotation_base,
            decay_tables: Arc::default(),
            rotations: Arc::default(),
        }
    }

    fn decay(&self, tokens: usize, like: &TensorCreationOptions) -> DecayTables {
        let mut cache = self.decay_tables.lock().expect("no panic while locked");
        let make = || DecayTables::new(&self.decay, tokens, like);
        cache
            .entry((tokens, like.dtype))
            .or_insert_with(make)
            .clone()
    }

    fn rotation(&self, key: RotationKey, like: &TensorCreationOptions) -> Rotation {
        let mut cache = self.rotations.lock().expect("no panic while locked");
        if cache.len() >= MAX_ROTATIONS {
            cache.clear();
        }
        let make = || {
            let block = |b: usize| key.start + (key.first + b) * key.stride;
            let positions: Vec<usize> = (key.start..key.start + key.tokens)
                .chain((0..key.blocks).flat_map(|b| block(b)..block(b) + key.block_tokens))
                .collect();
            Rotation::new(
                positions.into_iter(),
                self.head_dim,
                self.rotation_base,
                like,
            )
        };
        cache.entry((key, like.dtype)).or_insert_with(make).clone()
    }

    /// The tables of a retention that begins at a position.
    pub(super) fn tables(
        &self,
        start: usize,
        sizes: RetentionSizes,
        like: &TensorCreationOptions,
    ) -> (DecayTables, Rotation) {
        let key = RotationKey {
            start,
            tokens: sizes.tokens,
            first: sizes.first_predicted,
            blocks: sizes.predicted,
            stride: sizes.piece,
            block_tokens: sizes.block_tokens,
        };
        let longest = sizes.piece.max(sizes.block_tokens);
        (self.decay(longest, like), self.rotation(key, like))
    }
}
