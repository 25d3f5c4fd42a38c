//! The Transformer of IRIS's world model: causal attention, learned positions, and a key-value cache for imagination.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use rem_kernels::{
    AttentionParameters, AttentionSizes, Dispatch, Dropout, Hidden, Precision, SublayerMode,
};

use crate::config::{self, Activation};
use crate::model::calls::{CallCounter, Calls};
use crate::model::embedding::embedding;
use crate::model::linear;
use crate::model::sublayer::{
    feed_forward, kernel_activation, layer_norm, norm_parameters, projection,
};

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

#[derive(Module, Debug)]
struct Layer {
    norm1: LayerNorm,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    norm2: LayerNorm,
    linear1: Linear,
    linear2: Linear,
    heads: usize,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    precision: Precision,
}

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
}

impl Layer {
    fn new(
        width: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        Self {
            norm1: layer_norm(width, device),
            q_proj: projection(width, device),
            k_proj: projection(width, device),
            v_proj: projection(width, device),
            out_proj: projection(width, device),
            norm2: layer_norm(width, device),
            linear1: LinearConfig::new(width, config.feed_forward).init(device),
            linear2: LinearConfig::new(config.feed_forward, width).init(device),
            heads: config.heads,
            activation: config.activation,
            precision,
        }
    }

    fn parameters(&self) -> AttentionParameters<Dispatch> {
        let weight = |l: &Linear| l.weight.val().into_dispatch();
        let bias = |l: &Linear| linear::bias(l).into_dispatch();
        let (gamma, beta) = norm_parameters(&self.norm1);
        AttentionParameters {
            gamma: gamma.into_dispatch(),
            beta: beta.into_dispatch(),
            query_weight: weight(&self.q_proj),
            query_bias: bias(&self.q_proj),
            key_weight: weight(&self.k_proj),
            key_bias: bias(&self.k_proj),
            value_weight: weight(&self.v_proj),
            value_bias: bias(&self.v_proj),
            out_weight: weight(&self.out_proj),
            out_bias: bias(&self.out_proj),
        }
    }

    fn sizes(&self, batch: usize) -> AttentionSizes {
        AttentionSizes {
            batch,
            heads: self.heads,
        }
    }

    fn mode(&self, dropout: Dropout) -> SublayerMode {
        SublayerMode {
            dropout,
            precision: self.precision,
        }
    }

    fn feed_forward(&self, x: Tensor<2>, dropout: Dropout) -> Tensor<2> {
        let linears = [&self.linear1, &self.linear2];
        // As in IRIS: dropout of the output only.
        let hidden = Hidden {
            activation: kernel_activation(self.activation),
            dropout: false,
        };
        feed_forward(x, &self.norm2, linears, hidden, self.mode(dropout))
    }
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
        Self {
            positions: embedding(max_tokens, width, device),
            layers: (0..config.layers)
                .map(|_| Layer::new(width, config, precision, device))
                .collect(),
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
            let mode = layer.mode(dropout.fold_in(0));
            x = rem_kernels::attention(x, layer.parameters(), layer.sizes(batch), mode);
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
        let [batch, tokens, width] = x.dims();
        self.counter.add(tokens);
        let (device, dtype) = (x.device(), x.dtype());
        let KvCache { mut layers, length } = cache;
        if layers.is_empty() {
            let [max_tokens, _] = self.positions.dims();
            let allocate = |layer: &Layer| {
                let capacity = rem_kernels::cache_capacity(max_tokens);
                let shape = [batch, layer.heads, 2, capacity, width / layer.heads];
                Tensor::zeros(shape, (&device, dtype))
            };
            layers = self.layers.iter().map(allocate).collect();
        }
        let mut x = self.with_positions(x, length);
        let mut updated = Vec::with_capacity(layers.len());
        for (layer, cache) in self.layers.iter().zip(layers) {
            let (y, cache) = rem_kernels::attention_cached(
                x,
                layer.parameters(),
                cache,
                layer.sizes(batch),
                length,
                layer.mode(Dropout::NONE),
            );
            updated.push(cache);
            x = layer.feed_forward(y, Dropout::NONE);
        }
        let last: Tensor<3> = x.reshape([batch, tokens, width]);
        let last: Tensor<2> = last.narrow(1, tokens - 1, 1).squeeze_dim(1);
        let cache = KvCache {
            layers: updated,
            length: length + tokens,
        };
        (self.norm.forward(last), cache)
    }
}
