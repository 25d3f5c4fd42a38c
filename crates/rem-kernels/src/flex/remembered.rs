//! Packed weights, remembered as long as the weights are somebody's.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use super::{FlexTensor, values};
use crate::cpu::packed::{Fresh, Packed};
use crate::cpu::product::Panels;
use crate::cpu::tile::Tile;

/// Remembers the panels of weights that are among these tensors.
pub(crate) struct Remembered<'a>(pub &'a [FlexTensor]);

#[derive(PartialEq, Eq, Hash)]
struct Key {
    addresses: Vec<usize>,
    inputs: usize,
    turned: bool,
    tile: TypeId,
}

/// A tensor that is held twice is never written in place: as long as an entry holds its weights, they stay what
/// they were, and their addresses belong to nobody else.
struct Entry {
    weights: Vec<FlexTensor>,
    panels: Arc<dyn Any + Send + Sync>,
}

impl Entry {
    /// Whether nobody but this entry holds the weights.
    fn is_forgotten(&self) -> bool {
        self.weights.iter().any(FlexTensor::is_unique)
    }
}

static ENTRIES: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// Entries at most; far more than the weights of an agent.
const MAX_ENTRIES: usize = 512;

impl Packed for Remembered<'_> {
    fn panels<T: Tile>(
        &self,
        tile: T,
        weights: &[&[f32]],
        inputs: usize,
        turned: bool,
    ) -> Arc<Panels<T::In>> {
        let key = Key {
            addresses: weights.iter().map(|w| w.as_ptr() as usize).collect(),
            inputs,
            turned,
            tile: TypeId::of::<T>(),
        };
        let mut entries = ENTRIES.lock().expect("no panic while locked");
        if let Some(entry) = entries.get(&key) {
            let panels = entry.panels.clone().downcast();
            return panels.expect("the key names the type");
        }
        entries.retain(|_, entry| !entry.is_forgotten());
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        drop(entries);
        let panels = Fresh.panels(tile, weights, inputs, turned);
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
    use crate::cpu::level::Level;
    use crate::cpu::tile::F32;
    use burn::tensor::TensorData;

    #[test]
    fn panels_live_as_long_as_their_weights() {
        let weight = FlexTensor::from_data(TensorData::new(vec![1f32; 6 * 4], [6, 4]));
        let tile = F32(Level::Portable);
        let tensors = [weight.clone()];
        let pack = |turned| Remembered(&tensors).panels(tile, &[values(&tensors[0])], 6, turned);
        let first = pack(false);
        assert!(Arc::ptr_eq(&first, &pack(false)), "packed once");
        assert!(
            !Arc::ptr_eq(&first, &pack(true)),
            "its transpose is another matter"
        );

        // Writing to remembered weights makes other weights of them.
        let mut written = weight;
        written.storage_mut::<f32>()[0] = 2.0;
        let other = [written];
        let again = Remembered(&other).panels(tile, &[values(&other[0])], 6, false);
        assert!(!Arc::ptr_eq(&first, &again));
    }
}
