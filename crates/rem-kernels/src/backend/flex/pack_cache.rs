//! A cache of packed weights. An entry lives as long as its weights are in use elsewhere.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use super::{FlexTensor, values};
use crate::cpu::matmul::Panels;
use crate::cpu::pack::{Packer, Uncached};
use crate::cpu::tile::Tile;

/// Packs weights that are among these tensors at most once.
pub(crate) struct PackCache<'a>(pub &'a [FlexTensor]);

#[derive(PartialEq, Eq, Hash)]
struct Key {
    addresses: Vec<usize>,
    inputs: usize,
    transposed: bool,
    tile: TypeId,
}

/// Flex never writes to a tensor in place while it has a second owner. As long as an entry holds its weights, their
/// values do not change and their addresses are not reused.
struct Entry {
    weights: Vec<FlexTensor>,
    panels: Arc<dyn Any + Send + Sync>,
}

impl Entry {
    /// Whether the entry is the only owner of the weights.
    fn is_unused(&self) -> bool {
        self.weights.iter().any(FlexTensor::is_unique)
    }
}

static ENTRIES: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// The number of entries at which the cache is cleared; far more than an agent has weights.
const MAX_ENTRIES: usize = 512;

impl Packer for PackCache<'_> {
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        transposed: bool,
    ) -> Arc<Panels<T::In>> {
        let key = Key {
            addresses: weights.iter().map(|w| w.as_ptr() as usize).collect(),
            inputs,
            transposed,
            tile: TypeId::of::<T>(),
        };
        let mut entries = ENTRIES.lock().expect("no panic while locked");
        if let Some(entry) = entries.get(&key) {
            let panels = entry.panels.clone().downcast();
            return panels.expect("the key names the type");
        }
        entries.retain(|_, entry| !entry.is_unused());
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        drop(entries);
        let panels = Uncached.panels(tile, weights, inputs, transposed);
        let owner = |weight: &&[f32]| {
            let owns = |t: &&FlexTensor| std::ptr::eq(values(t), *weight);
            self.0.iter().find(owns).cloned()
        };
        if let Some(weights) = weights.iter().map(owner).collect() {
            let entry = Entry {
                weights,
                panels: panels.clone(),
            };
            ENTRIES
                .lock()
                .expect("no panic while locked")
                .insert(key, entry);
        }
        panels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;
    use crate::cpu::tile::F32;
    use burn::tensor::TensorData;

    #[test]
    fn weights_are_packed_once_until_they_change() {
        let weight = FlexTensor::from_data(TensorData::new(vec![1f32; 6 * 4], [6, 4]));
        let tile = F32(Isa::Portable);
        let tensors = [weight.clone()];
        let pack =
            |transposed| PackCache(&tensors).panels(tile, &[values(&tensors[0])], 6, transposed);
        let first = pack(false);
        assert!(Arc::ptr_eq(&first, &pack(false)), "packed twice");
        assert!(
            !Arc::ptr_eq(&first, &pack(true)),
            "the transpose has panels of its own"
        );

        // Writing to cached weights copies them first.
        let mut written = weight;
        written.storage_mut::<f32>()[0] = 2.0;
        let other = [written];
        let again = PackCache(&other).panels(tile, &[values(&other[0])], 6, false);
        assert!(!Arc::ptr_eq(&first, &again));
    }
}
