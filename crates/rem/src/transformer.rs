//! The Transformer of IRIS's world model: causal attention, learned positions, and a cache of keys and values so
//! that a dream reads each token once.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use rem_kernels::{AttentionParameters, AttentionSizes, Dispatch, Dropout, HalfMode, Precision};

use crate::calls::{CallCount, Calls};
use crate::config::{self, Activation};
use crate::network::embedding;
use crate::retnet::{feed_forward, layer_norm, norm_parameters, projection};

#[derive(Module, Debug)]
pub struct Transformer {
    /// `[most tokens, width]`
    positions: Param<Tensor<2>>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    #[module(skip)]
    count: CallCount,
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

/// The keys and values of the tokens read so far; a value that goes in and comes out. It is written in place
/// unless somebody holds a copy.
#[derive(Clone, Debug)]
pub struct KeyValues {
    /// One `[batch, heads, 2, capacity, head_dim]` per layer; none at the very start.
    layers: Vec<Tensor<5>>,
    length: usize,
}

impl KeyValues {
    /// Nothing seen yet.
    pub fn empty() -> Self {
        Self {
            layers: Vec::new(),
            length: 0,
        }
    }

    /// Tokens read so far.
    pub fn length(&self) -> usize {
        self.length
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
        let bias = |l: &Linear| crate::linear::bias(l).into_dispatch();
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

    fn mode(&self, dropout: Dropout) -> HalfMode {
        HalfMode {
            dropout,
            precision: self.precision,
        }
    }

    fn feed_forward(&self, x: Tensor<2>, dropout: Dropout) -> Tensor<2> {
        let linears = [&self.linear1, &self.linear2];
        feed_forward(x, &self.norm2, linears, self.activation, self.mode(dropout))
    }
}

impl Transformer {
    /// For sequences of up to `most` tokens.
    pub fn new(
        width: usize,
        most: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        Self {
            positions: embedding(most, width, device),
            layers: (0..config.layers)
                .map(|_| Layer::new(width, config, precision, device))
                .collect(),
            norm: layer_norm(width, device),
            count: CallCount::default(),
        }
    }

    /// Calls outside training so far, those of copies included.
    pub fn calls(&self) -> Calls {
        self.count.so_far()
    }

    /// Tokens with their places: `[batch, tokens, width]` -> `[batch * tokens, width]`.
    fn placed(&self, x: Tensor<3>, first: usize) -> Tensor<2> {
        let [batch, tokens, width] = x.dims();
        let [most, _] = self.positions.dims();
        assert!(
            first + tokens <= most,
            "a memory of {most} tokens has no place for {tokens} after {first}"
        );
        let places: Tensor<3> = (self.positions.val())
            .narrow(0, first, tokens)
            .unsqueeze_dim(0);
        (x + places).reshape([batch * tokens, width])
    }

    /// Whole sequences from their start, all outputs: what is learned from.
    /// # Shapes
    /// - `x`: `[batch, tokens, width]` -> the same
    pub fn sequences(&self, x: Tensor<3>, dropout: Dropout) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let mut x = self.placed(x, 0);
        for (i, layer) in self.layers.iter().enumerate() {
            let dropout = dropout.place(i as u64);
            let mode = layer.mode(dropout.place(0));
            x = rem_kernels::attention(x, layer.parameters(), layer.sizes(batch), mode);
            x = layer.feed_forward(x, dropout.place(1));
        }
        self.norm.forward(x).reshape([batch, tokens, width])
    }

    /// Takes tokens in; gives the output at the last one.
    /// # Shapes
    /// - `x`: `[batch, tokens, width]` -> `[batch, width]`
    pub fn read(&self, x: Tensor<3>, cache: KeyValues) -> (Tensor<2>, KeyValues) {
        let [batch, tokens, width] = x.dims();
        self.count.add(tokens);
        let (device, dtype) = (x.device(), x.dtype());
        let KeyValues { mut layers, length } = cache;
        if layers.is_empty() {
            let [most, _] = self.positions.dims();
            let room = |layer: &Layer| {
                let capacity = rem_kernels::cache_capacity(most);
                let shape = [batch, layer.heads, 2, capacity, width / layer.heads];
                Tensor::zeros(shape, (&device, dtype))
            };
            layers = self.layers.iter().map(room).collect();
        }
        let mut x = self.placed(x, length);
        let mut kept = Vec::with_capacity(layers.len());
        for (layer, cache) in self.layers.iter().zip(layers) {
            let (y, cache) = rem_kernels::attention_read(
                x,
                layer.parameters(),
                cache,
                layer.sizes(batch),
                length,
                layer.mode(Dropout::NONE),
            );
            kept.push(cache);
            x = layer.feed_forward(y, Dropout::NONE);
        }
        let last: Tensor<3> = x.reshape([batch, tokens, width]);
        let last: Tensor<2> = last.narrow(1, tokens - 1, 1).squeeze_dim(1);
        let cache = KeyValues {
            layers: kept,
            length: length + tokens,
        };
        (self.norm.forward(last), cache)
    }
}
