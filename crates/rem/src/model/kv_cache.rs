//! The key-value cache of attention layers in imagination.

use burn::tensor::Tensor;
use rem_kernels::{CachedSizes, Dropout};

use crate::model::layer::Layer;
use crate::model::retention::Rotation;

/// Keys and values of the tokens so far: an argument and a result of the cached forward pass, which writes them in
/// place unless the cache is shared with a clone.
#[derive(Clone, Debug)]
pub struct KvCache {
    /// One `[batch, heads, 2, capacity, head_dim]` per layer; empty before the first token.
    layers: Vec<Tensor<5>>,
    /// Number of tokens so far.
    length: usize,
}

impl KvCache {
    /// The cache before the first token.
    pub(crate) fn empty() -> Self {
        Self {
            layers: Vec::new(),
            length: 0,
        }
    }

    /// Number of tokens so far: the position of the next one.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Number of sequences; `None` before the first token.
    pub(crate) fn batch(&self) -> Option<usize> {
        self.layers.first().map(|layer| layer.dims()[0])
    }

    /// All layers over tokens after those in the cache; the outputs at the last token of each sequence, and the cache
    /// with these tokens: `[batch * tokens, width]` -> `[batch, width]`. The first call allocates `capacity` tokens; if
    /// they are exceeded, the cache is copied to a larger one.
    pub(super) fn advance(
        self,
        layers: &[Layer],
        mut x: Tensor<2>,
        batch: usize,
        rotation: Option<&Rotation>,
        capacity: usize,
    ) -> (Tensor<2>, Self) {
        let [rows, width] = x.dims();
        let tokens = rows / batch;
        let cache = self.with_room(layers, tokens, &x, batch, capacity);
        let past = cache.length;
        let mut updated = Vec::with_capacity(layers.len());
        for (i, (layer, cache)) in layers.iter().zip(cache.layers).enumerate() {
            let sizes = sizes(layer, batch, past);
            let (mut y, cache) = layer.attention_cached(x, rotation, cache, sizes);
            updated.push(cache);
            if i + 1 == layers.len() {
                let last: Tensor<3> = y.reshape([batch, tokens, width]);
                y = last.narrow(1, tokens - 1, 1).squeeze_dim(1);
            }
            x = layer.feed_forward(y, Dropout::NONE);
        }
        let cache = Self {
            layers: updated,
            length: past + tokens,
        };
        (x, cache)
    }

    /// All layers over tokens after those in the cache, which does not change: `[batch * tokens, width]` -> the same.
    pub(super) fn predict(
        &self,
        layers: &[Layer],
        mut x: Tensor<2>,
        batch: usize,
        rotation: Option<&Rotation>,
    ) -> Tensor<2> {
        for (layer, cache) in layers.iter().zip(&self.layers) {
            let sizes = sizes(layer, batch, self.length);
            let y = layer.attention_predict(x, rotation, cache.clone(), sizes);
            x = layer.feed_forward(y, Dropout::NONE);
        }
        x
    }

    /// With room for `tokens` more, of the type and on the device of `x`.
    fn with_room(
        mut self,
        layers: &[Layer],
        tokens: usize,
        x: &Tensor<2>,
        batch: usize,
        capacity: usize,
    ) -> Self {
        let (device, dtype, width) = (x.device(), x.dtype(), x.dims()[1]);
        let needed = self.length + tokens;
        let zeros = |layer: &Layer, tokens: usize| -> Tensor<5> {
            let shape = [batch, layer.heads(), 2, tokens, width / layer.heads()];
            Tensor::zeros(shape, (&device, dtype))
        };
        if self.layers.is_empty() {
            let capacity = rem_kernels::cache_capacity(capacity.max(needed));
            self.layers = layers.iter().map(|layer| zeros(layer, capacity)).collect();
        }
        let capacity = self.layers[0].dims()[3];
        if needed > capacity {
            // By a quarter at least, so that a long sequence is copied a few times only.
            let larger = rem_kernels::cache_capacity(needed.max(capacity + capacity / 4));
            let grown =
                self.layers.into_iter().zip(layers).map(|(cache, layer)| {
                    Tensor::cat(vec![cache, zeros(layer, larger - capacity)], 3)
                });
            self.layers = grown.collect();
        }
        self
    }
}

fn sizes(layer: &Layer, batch: usize, past: usize) -> CachedSizes {
    CachedSizes {
        batch,
        heads: layer.heads(),
        past,
    }
}
