//! A cache of decay tables and rotations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use burn::tensor::{DType, TensorCreationOptions};
use rem_kernels::RetentionSizes;

use crate::model::retention::{Decay, DecayTables, Rotation};

/// Values by key and element type.
type Shared<K, V> = Arc<Mutex<HashMap<(K, Option<DType>), V>>>;

/// Decay tables and rotations by size, shared by layers, calls and clones.
#[derive(Clone, Debug)]
pub(super) struct TableCache {
    decay: Decay,
    head_dim: usize,
    rope_theta: f64,
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

/// Maximum number of cached rotations. A long dream needs a new one at every step.
const MAX_ROTATIONS: usize = 256;

impl TableCache {
    pub(super) fn new(decay: Decay, head_dim: usize, rope_theta: f64) -> Self {
        Self {
            decay,
            head_dim,
            rope_theta,
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
            Rotation::new(positions.into_iter(), self.head_dim, self.rope_theta, like)
        };
        cache.entry((key, like.dtype)).or_insert_with(make).clone()
    }

    /// The tables for a retention whose first token is at position `start`.
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
            stride: sizes.chunk,
            block_tokens: sizes.block_tokens,
        };
        let longest = sizes.chunk.max(sizes.block_tokens);
        (self.decay(longest, like), self.rotation(key, like))
    }
}
