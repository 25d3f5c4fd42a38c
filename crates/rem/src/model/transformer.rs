//! The Transformer of IRIS's world model: causal attention, learned positions, and a key-value cache for imagination.

use burn::module::{Module, Param};
use burn::nn::LayerNorm;
use burn::tensor::{Device, Tensor};
use rem_kernels::{Dropout, Precision, PredictionBlocks};

use crate::config;
use crate::model::calls::{CallCounter, Calls};
use crate::model::embedding::embedding;
use crate::model::kv_cache::KvCache;
use crate::model::layer::{Layer, LayerKind, layer_norm};

/// A pre-norm causal Transformer.
#[derive(Module, Debug)]
pub struct Transformer {
    /// Position embeddings, `[max_tokens, width]`.
    positions: Param<Tensor<2>>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    #[module(skip)]
    counter: CallCounter,
}

impl Transformer {
    /// A network with initial weights for sequences of up to `max_tokens` tokens.
    pub(crate) fn new(
        width: usize,
        max_tokens: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let layer = || Layer::new(LayerKind::IrisAttention, width, config, precision, device);
        Self {
            positions: embedding(max_tokens, width, device),
            layers: (0..config.layers).map(|_| layer()).collect(),
            norm: layer_norm(width, device),
            counter: CallCounter::default(),
        }
    }

    /// Calls outside training so far, including those of clones.
    pub(crate) fn calls(&self) -> Calls {
        self.counter.get()
    }

    /// Adds position embeddings: `[batch, tokens, width]` -> `[batch * tokens, width]`.
    fn with_positions(&self, x: Tensor<3>, first: usize) -> Tensor<2> {
        let [batch, tokens, width] = x.dims();
        let [max_tokens, _] = self.positions.dims();
        assert!(
            first + tokens <= max_tokens,
            "{tokens} tokens after {first} exceed the context window of {max_tokens}"
        );
        let positions: Tensor<3> = (self.positions.val())
            .narrow(0, first, tokens)
            .unsqueeze_dim(0);
        (x + positions).reshape([batch * tokens, width])
    }

    /// The training forward pass over whole sequences. Returns all outputs. Dropout applies to embeddings, attention
    /// weights and the outputs of sublayers, as in IRIS.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, tokens, width]` -> the same
    pub(crate) fn forward_train(&self, x: Tensor<3>, dropout: Dropout) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let embedded = self.with_positions(x, 0);
        let mut x = rem_kernels::dropout(embedded, dropout.fold_in(self.layers.len() as u64));
        for (i, layer) in self.layers.iter().enumerate() {
            let dropout = dropout.fold_in(i as u64);
            x = layer.attention(x, None, batch, PredictionBlocks::NONE, dropout.fold_in(0));
            x = layer.feed_forward(x, dropout.fold_in(1));
        }
        self.norm.forward(x).reshape([batch, tokens, width])
    }

    /// Processes tokens after those in the cache and returns the output at the last one.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, tokens, width]` -> `[batch, width]`
    pub(crate) fn update_cache(&self, x: Tensor<3>, cache: KvCache) -> (Tensor<2>, KvCache) {
        let [batch, tokens, _] = x.dims();
        self.counter.add(tokens);
        let [max_tokens, _] = self.positions.dims();
        let x = self.with_positions(x, cache.length());
        let (y, cache) = cache.advance(&self.layers, x, batch, None, max_tokens);
        (self.norm.forward(y), cache)
    }
}
