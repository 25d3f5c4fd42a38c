//! The RetNet of the world model: layers of retention and feed-forward, and POP's two streams
//! (paper, appendix retentive-nets-details; algorithms pop-retnet-fwd-training and pop-layer-fwd-training).

mod tables;

use burn::module::{Initializer, Module};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorCreationOptions};
use rem_kernels::{
    Dispatch, Dropout, FeedForwardParameters, HalfMode, Precision, RetentionParameters,
    RetentionSizes, RetentionTables,
};

use crate::calls::{CallCount, Calls};
use crate::config::{self, Activation};
use crate::retention::{Decay, DecayTables, Rotation};
use tables::TableCache;

const NORM_EPSILON: f64 = 1e-6;

/// A stack of retention layers.
#[derive(Module, Debug)]
pub struct RetNet {
    layers: Vec<Layer>,
    #[module(skip)]
    tables: TableCache,
    #[module(skip)]
    count: CallCount,
}

#[derive(Module, Debug)]
struct Layer {
    norm1: LayerNorm,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    g_proj: Linear,
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

/// What the layers remember of a trajectory; a value that goes in and comes out.
#[derive(Clone, Debug)]
pub struct RetNetState {
    /// One `[batch, heads, head_dim, head_dim]` per layer; none at the very start.
    layers: Option<Vec<Tensor<4>>>,
    /// Tokens taken in so far: the position of the next one.
    position: usize,
}

impl RetNetState {
    /// Nothing seen yet.
    pub fn empty() -> Self {
        Self {
            layers: None,
            position: 0,
        }
    }

    /// The layers' states, `[batch, heads, head_dim, head_dim]` each; none at the very start.
    pub fn layers(&self) -> Option<&[Tensor<4>]> {
        self.layers.as_deref()
    }

    pub fn position(&self) -> usize {
        self.position
    }

    fn layer(&self, i: usize) -> Option<&Tensor<4>> {
        self.layers.as_ref().map(|layers| &layers[i])
    }
}

/// Which outputs of a sequence are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    All,
    /// The last of the sequence; the others matter for the state alone, and the last layer leaves them out.
    Last,
}

/// Where and in which type the constants for `x` are made; they need no autodiff.
fn constants_like<const D: usize>(x: &Tensor<D>) -> TensorCreationOptions {
    TensorCreationOptions::new(x.device().without_autodiff()).with_dtype(x.dtype())
}

fn for_kernels((decay, rotation): &(DecayTables, Rotation)) -> RetentionTables<Dispatch> {
    RetentionTables {
        cos: rotation.cos.clone().into_dispatch(),
        sin: rotation.sin.clone().into_dispatch(),
        mask: decay.mask.clone().into_dispatch(),
        powers: decay.powers.clone().into_dispatch(),
    }
}

impl Layer {
    fn new(
        width: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let norm = || layer_norm(width, device);
        let projection = || projection(width, device);
        Self {
            norm1: norm(),
            q_proj: projection(),
            k_proj: projection(),
            v_proj: projection(),
            g_proj: projection(),
            out_proj: projection(),
            norm2: norm(),
            linear1: LinearConfig::new(width, config.feed_forward).init(device),
            linear2: LinearConfig::new(config.feed_forward, width).init(device),
            heads: config.heads,
            activation: config.activation,
            precision,
        }
    }

    fn retention_parameters(&self) -> RetentionParameters<Dispatch> {
        let weight = |l: &Linear| l.weight.val().into_dispatch();
        let bias = |l: &Linear| crate::linear::bias(l).into_dispatch();
        let (gamma, beta) = norm_parameters(&self.norm1);
        RetentionParameters {
            gamma: gamma.into_dispatch(),
            beta: beta.into_dispatch(),
            query_weight: weight(&self.q_proj),
            query_bias: bias(&self.q_proj),
            key_weight: weight(&self.k_proj),
            key_bias: bias(&self.k_proj),
            value_weight: weight(&self.v_proj),
            value_bias: bias(&self.v_proj),
            gate_weight: weight(&self.g_proj),
            gate_bias: bias(&self.g_proj),
            out_weight: weight(&self.out_proj),
            out_bias: bias(&self.out_proj),
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

pub(crate) fn layer_norm(width: usize, device: &Device) -> LayerNorm {
    LayerNormConfig::new(width)
        .with_epsilon(NORM_EPSILON)
        .init(device)
}

/// A projection of the width onto itself, Xavier-normal with no bias at first.
pub(crate) fn projection(width: usize, device: &Device) -> Linear {
    let xavier = Initializer::XavierNormal { gain: 1.0 };
    let linear = LinearConfig::new(width, width)
        .with_initializer(xavier)
        .init(device);
    Linear {
        bias: Some(Initializer::Zeros.init([width], device)),
        ..linear
    }
}

/// A layer's feed-forward half, from its norm to its residual.
pub(crate) fn feed_forward(
    x: Tensor<2>,
    norm: &LayerNorm,
    [up, down]: [&Linear; 2],
    activation: Activation,
    mode: HalfMode,
) -> Tensor<2> {
    let (gamma, beta) = norm_parameters(norm);
    let parameters = FeedForwardParameters {
        gamma: gamma.into_dispatch(),
        beta: beta.into_dispatch(),
        up_weight: up.weight.val().into_dispatch(),
        up_bias: crate::linear::bias(up).into_dispatch(),
        down_weight: down.weight.val().into_dispatch(),
        down_bias: crate::linear::bias(down).into_dispatch(),
    };
    let activation = match activation {
        Activation::Silu => rem_kernels::Activation::Silu,
        Activation::Gelu => rem_kernels::Activation::Gelu,
    };
    rem_kernels::feed_forward(x, parameters, activation, mode)
}

pub(crate) fn norm_parameters(norm: &LayerNorm) -> (Tensor<1>, Tensor<1>) {
    let beta = norm.beta.as_ref().expect("made with a shift");
    (norm.gamma.val(), beta.val())
}

impl RetNet {
    pub fn new(
        width: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        Self {
            layers: (0..config.layers)
                .map(|_| Layer::new(width, config, precision, device))
                .collect(),
            tables: TableCache::new(
                Decay::new(config.decay, config.decay_over, config.heads),
                width / config.heads,
                config.rotation_base,
            ),
            count: CallCount::default(),
        }
    }

    /// Calls outside training so far, those of copies included.
    pub fn calls(&self) -> Calls {
        self.count.so_far()
    }

    /// Takes a sequence in, whatever its length: a token (recurrent), a chunk, or all (parallel).
    /// # Shapes
    /// - `x`: `[batch, tokens, width]` -> `[batch, tokens or 1, width]`
    pub fn forward(
        &self,
        x: Tensor<3>,
        state: &RetNetState,
        wanted: Wanted,
    ) -> (Tensor<3>, RetNetState) {
        let [batch, tokens, width] = x.dims();
        let sizes = RetentionSizes {
            batch,
            heads: self.layers[0].heads,
            tokens,
            piece: tokens,
            first_predicted: 0,
            predicted: 0,
            block_tokens: 0,
            last_only: false,
        };
        let (y, state) = self.go_on(x.reshape([batch * tokens, width]), sizes, state, wanted);
        let [rows, _] = y.dims();
        (y.reshape([batch, rows / batch, width]), state)
    }

    /// A sequence and, after it, prediction tokens that leave no trace, in one call: the last output of the
    /// sequence, those of the prediction tokens, and the state after the sequence.
    /// # Shapes
    /// - `x`: `[batch, tokens, width]`, `u`: `[batch, K, width]` -> `[batch, width]`, `[batch, K, width]`
    pub fn forward_and_peek(
        &self,
        x: Tensor<3>,
        u: Tensor<3>,
        state: &RetNetState,
    ) -> (Tensor<2>, Tensor<3>, RetNetState) {
        let [batch, tokens, width] = x.dims();
        let [_, k, _] = u.dims();
        let sizes = RetentionSizes {
            batch,
            heads: self.layers[0].heads,
            tokens,
            piece: tokens,
            // They see the state before a second piece, which is not there: that after the first.
            first_predicted: 1,
            predicted: 1,
            block_tokens: k,
            last_only: false,
        };
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let rows = Tensor::cat(vec![x, u.reshape([batch * k, width])], 0);
        let (y, state) = self.go_on(rows, sizes, state, Wanted::Last);
        let predictions = y.clone().narrow(0, batch, batch * k);
        (
            y.narrow(0, 0, batch),
            predictions.reshape([batch, k, width]),
            state,
        )
    }

    /// Rows as `sizes` orders them through all layers, from a state on.
    fn go_on(
        &self,
        x: Tensor<2>,
        mut sizes: RetentionSizes,
        state: &RetNetState,
        wanted: Wanted,
    ) -> (Tensor<2>, RetNetState) {
        self.count
            .add(sizes.tokens + sizes.predicted * sizes.block_tokens);
        let tables = (self.tables).tables(state.position, sizes, &constants_like(&x));
        let mut layers = Vec::with_capacity(self.layers.len());
        let mut x = x;
        for (i, layer) in self.layers.iter().enumerate() {
            sizes.last_only = wanted == Wanted::Last && i + 1 == self.layers.len();
            let (y, next) = rem_kernels::retention_fold(
                x,
                layer.retention_parameters(),
                for_kernels(&tables),
                state.layer(i).cloned(),
                sizes,
                layer.mode(Dropout::NONE),
            );
            layers.push(next);
            x = layer.feed_forward(y, Dropout::NONE);
        }
        let state = RetNetState {
            layers: Some(layers),
            position: state.position + sizes.tokens,
        };
        (x, state)
    }

    /// The outputs of a sequence that leaves no trace in the state: POP's prediction tokens.
    /// # Shapes
    /// - `u`: `[batch, tokens, width]` -> the same
    pub fn peek(&self, u: Tensor<3>, state: &RetNetState) -> Tensor<3> {
        let [batch, tokens, width] = u.dims();
        let Some(layers) = &state.layers else {
            return self.forward(u, state, Wanted::All).0;
        };
        let sizes = RetentionSizes {
            batch,
            heads: self.layers[0].heads,
            tokens: 0,
            piece: 0,
            first_predicted: 0,
            predicted: 1,
            block_tokens: tokens,
            last_only: false,
        };
        self.count.add(tokens);
        let tables = (self.tables).tables(state.position, sizes, &constants_like(&u));
        let mut u: Tensor<2> = u.reshape([batch * tokens, width]);
        for (layer, state) in self.layers.iter().zip(layers) {
            u = rem_kernels::retention_peek(
                u,
                layer.retention_parameters(),
                for_kernels(&tables),
                state.clone(),
                sizes,
                layer.mode(Dropout::NONE),
            );
            u = layer.feed_forward(u, Dropout::NONE);
        }
        u.reshape([batch, tokens, width])
    }

    /// POP over whole trajectories from their start: the outputs at the end of each block, and for each
    /// block from `first_predicted` on the outputs of the prediction tokens from the state before it.
    /// # Shapes
    /// - `x`: `[batch, blocks * block_len, width]`, `u`: `[K, width]`
    /// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
    pub fn pop(
        &self,
        x: Tensor<3>,
        u: Tensor<2>,
        blocks: usize,
        first_predicted: usize,
        dropout: Dropout,
    ) -> (Tensor<3>, Tensor<4>) {
        let [batch, tokens, width] = x.dims();
        let [k, _] = u.dims();
        let predicted = blocks - first_predicted;
        let sizes = RetentionSizes {
            batch,
            heads: self.layers[0].heads,
            tokens,
            piece: tokens / blocks,
            first_predicted,
            predicted,
            block_tokens: k,
            last_only: false,
        };
        // Both streams below each other: the same prediction tokens for every block.
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let x = Tensor::cat(vec![x, u.repeat_dim(0, batch * predicted)], 0);
        let x = self.train(x, sizes, Wanted::Last, dropout);
        let ends = x.clone().narrow(0, 0, batch * blocks);
        let predictions = x.narrow(0, batch * blocks, batch * predicted * k);
        (
            ends.reshape([batch, blocks, width]),
            predictions.reshape([batch, predicted, k, width]),
        )
    }

    /// Whole trajectories from their start, all outputs: what a RetNet without POP learns from.
    /// # Shapes
    /// - `x`: `[batch, blocks * block_len, width]` -> the same
    pub fn trajectories(&self, x: Tensor<3>, blocks: usize, dropout: Dropout) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let sizes = RetentionSizes {
            batch,
            heads: self.layers[0].heads,
            tokens,
            piece: tokens / blocks,
            first_predicted: 0,
            predicted: 0,
            block_tokens: 0,
            last_only: false,
        };
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let y = self.train(x, sizes, Wanted::All, dropout);
        y.reshape([batch, tokens, width])
    }

    /// Rows as `sizes` orders them through all layers, with gradients and dropout; of the last layer all outputs
    /// or those at the end of each piece.
    fn train(
        &self,
        mut x: Tensor<2>,
        mut sizes: RetentionSizes,
        wanted: Wanted,
        dropout: Dropout,
    ) -> Tensor<2> {
        let whole = sizes.pieces() * sizes.piece == sizes.tokens;
        assert!(whole, "blocks are whole");
        let tables = self.tables.tables(0, sizes, &constants_like(&x));
        for (i, layer) in self.layers.iter().enumerate() {
            let dropout = dropout.place(i as u64);
            sizes.last_only = wanted == Wanted::Last && i + 1 == self.layers.len();
            x = rem_kernels::retention(
                x,
                layer.retention_parameters(),
                for_kernels(&tables),
                sizes,
                layer.mode(dropout.place(0)),
            );
            x = layer.feed_forward(x, dropout.place(1));
        }
        x
    }
}
