//! The RetNet of the world model: layers of retention and feed-forward, and POP's two streams
//! (paper, appendix retentive-nets-details; algorithms pop-retnet-fwd-training and pop-layer-fwd-training).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use burn::module::{Initializer, Module};
use burn::nn::{Dropout, DropoutConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::{gelu, silu};
use burn::tensor::{DType, Device, Tensor, TensorCreationOptions};

use crate::config::{self, Activation};
use crate::linear::by_rows;
use crate::retention::{self, Decay, DecayTables, Rotation};

const NORM_EPSILON: f64 = 1e-6;

/// A stack of retention layers.
#[derive(Module, Debug)]
pub struct RetNet {
    layers: Vec<Layer>,
    #[module(skip)]
    tables: TableCache,
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
    dropout: Dropout,
    heads: usize,
    #[module(skip)]
    activation: Activation,
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

/// The sizes of one call, and what follows from them.
struct Sizes {
    /// Over the whole sequence.
    decay: DecayTables,
    rotation: Rotation,
}

/// Values by size and type.
type Shared<K, V> = Arc<Mutex<HashMap<(K, Option<DType>), V>>>;

/// Decay tables and rotations by size: computed once, shared by layers, calls and clones.
#[derive(Clone, Debug)]
struct TableCache {
    decay: Decay,
    head_dim: usize,
    decay_tables: Shared<usize, DecayTables>,
    rotations: Shared<RotationKey, Rotation>,
}

/// Positions `start + block * stride + 0..tokens` for each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RotationKey {
    start: usize,
    blocks: usize,
    stride: usize,
    tokens: usize,
}

/// Rotations kept at most; a dream without end would otherwise gather one per step.
const MAX_ROTATIONS: usize = 256;

impl TableCache {
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
            let positions: Vec<usize> = (0..key.blocks)
                .flat_map(|b| (0..key.tokens).map(move |t| key.start + b * key.stride + t))
                .collect();
            Rotation::new(positions.into_iter(), self.head_dim, like)
        };
        cache.entry((key, like.dtype)).or_insert_with(make).clone()
    }

    fn sequence(&self, start: usize, tokens: usize, like: &TensorCreationOptions) -> Sizes {
        let key = RotationKey {
            start,
            blocks: 1,
            stride: 0,
            tokens,
        };
        Sizes {
            decay: self.decay(tokens, like),
            rotation: self.rotation(key, like),
        }
    }
}

/// Where and in which type the constants for `x` are made; they need no autodiff.
fn constants_like<const D: usize>(x: &Tensor<D>) -> TensorCreationOptions {
    TensorCreationOptions::new(x.device().without_autodiff()).with_dtype(x.dtype())
}

/// Queries, keys and values, `[batch, heads, tokens, head_dim]`, and the gate, `[batch, tokens, width]`.
struct Projected {
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    gate: Tensor<3>,
}

impl Layer {
    fn new(width: usize, config: &config::WorldModel, device: &Device) -> Self {
        let norm = || {
            LayerNormConfig::new(width)
                .with_epsilon(NORM_EPSILON)
                .init(device)
        };
        let projection = || {
            let xavier = Initializer::XavierNormal { gain: 1.0 };
            let linear = LinearConfig::new(width, width)
                .with_initializer(xavier)
                .init(device);
            Linear {
                bias: Some(Initializer::Zeros.init([width], device)),
                ..linear
            }
        };
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
            dropout: DropoutConfig::new(config.dropout).init(),
            heads: config.heads,
            activation: config.activation,
        }
    }

    fn project(&self, x: Tensor<3>, rotation: &Rotation) -> Projected {
        let [batch, tokens, width] = x.dims();
        let dim = width / self.heads;
        let y = self.norm1.forward(x);
        let split = |x: Tensor<3>| {
            let x: Tensor<4> = x.reshape([batch, tokens, self.heads, dim]);
            // [batch, heads, tokens, head_dim]
            x.swap_dims(1, 2)
        };
        let k = split(by_rows(&self.k_proj, y.clone())).mul_scalar(1.0 / (dim as f64).sqrt());
        Projected {
            q: rotation.apply(split(by_rows(&self.q_proj, y.clone()))),
            k: rotation.apply(k),
            v: split(by_rows(&self.v_proj, y.clone())),
            gate: silu(by_rows(&self.g_proj, y)),
        }
    }

    /// From the retained values to the layer's output: norm over heads, gate, feed-forward, residuals.
    /// # Shapes
    /// - `x`, `gate`: `[batch, tokens, width]`; `retained`: `[batch, heads, tokens, head_dim]`
    fn finish(&self, x: Tensor<3>, retained: Tensor<4>, gate: Tensor<3>) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let retained = unit_variance(self.dropout.forward(retained));
        // [batch, tokens, heads, head_dim] -> [batch, tokens, width]
        let retained: Tensor<3> = retained.swap_dims(1, 2).reshape([batch, tokens, width]);
        let x = x + self
            .dropout
            .forward(by_rows(&self.out_proj, retained * gate));
        let hidden = by_rows(&self.linear1, self.norm2.forward(x.clone()));
        let hidden = match self.activation {
            Activation::Silu => silu(hidden),
            Activation::Gelu => gelu(hidden),
        };
        let hidden = by_rows(&self.linear2, self.dropout.forward(hidden));
        x + self.dropout.forward(hidden)
    }
}

/// The group norm over heads, without affine part: each head's vector to mean 0 and variance 1.
fn unit_variance(x: Tensor<4>) -> Tensor<4> {
    let centred = x.clone() - x.mean_dim(3);
    let variance = centred.clone().square().mean_dim(3);
    centred / (variance + NORM_EPSILON).sqrt()
}

impl RetNet {
    pub fn new(width: usize, config: &config::WorldModel, device: &Device) -> Self {
        Self {
            layers: (0..config.layers)
                .map(|_| Layer::new(width, config, device))
                .collect(),
            tables: TableCache {
                decay: Decay::new(config.decay, config.heads),
                head_dim: width / config.heads,
                decay_tables: Arc::default(),
                rotations: Arc::default(),
            },
        }
    }

    /// Takes a sequence in, whatever its length: a token (recurrent), a chunk, or all (parallel).
    /// # Shapes
    /// - `x`: `[batch, tokens, width]` -> outputs of the same shape
    pub fn forward(&self, x: Tensor<3>, state: &RetNetState) -> (Tensor<3>, RetNetState) {
        let [_, tokens, _] = x.dims();
        let sizes = self
            .tables
            .sequence(state.position, tokens, &constants_like(&x));
        let mut layers = Vec::with_capacity(self.layers.len());
        let mut x = x;
        for (i, layer) in self.layers.iter().enumerate() {
            let p = layer.project(x.clone(), &sizes.rotation);
            let before = state.layer(i);
            layers.push(retention::next_state(
                p.k.clone(),
                p.v.clone(),
                before,
                &sizes.decay,
            ));
            let retained = retention::outputs(p.q, p.k, p.v, before, &sizes.decay);
            x = layer.finish(x, retained, p.gate);
        }
        let position = state.position + tokens;
        (
            x,
            RetNetState {
                layers: Some(layers),
                position,
            },
        )
    }

    /// The outputs of a sequence that leaves no trace in the state: POP's prediction tokens.
    /// # Shapes
    /// - `u`: `[batch, tokens, width]` -> the same
    pub fn peek(&self, u: Tensor<3>, state: &RetNetState) -> Tensor<3> {
        let [_, tokens, _] = u.dims();
        let sizes = self
            .tables
            .sequence(state.position, tokens, &constants_like(&u));
        let mut u = u;
        for (i, layer) in self.layers.iter().enumerate() {
            let p = layer.project(u.clone(), &sizes.rotation);
            let retained = retention::outputs(p.q, p.k, p.v, state.layer(i), &sizes.decay);
            u = layer.finish(u, retained, p.gate);
        }
        u
    }

    /// POP over one chunk: the trajectory's outputs, and for each block from `first_predicted` on the
    /// outputs of the prediction tokens from the state before that block.
    /// # Shapes
    /// - `x`: `[batch, blocks * block_len, width]`, `u`: `[batch, K, width]`
    /// - outputs: like `x`; `[batch, predicted blocks, K, width]`, none where no block is predicted
    pub fn pop(
        &self,
        x: Tensor<3>,
        u: Tensor<3>,
        blocks: usize,
        first_predicted: usize,
        state: &RetNetState,
    ) -> (Tensor<3>, Option<Tensor<4>>, RetNetState) {
        let [batch, tokens, width] = x.dims();
        let [_, k, _] = u.dims();
        let (len, dim) = (tokens / blocks, self.tables.head_dim);
        let predicted = blocks - first_predicted;
        let like = constants_like(&x);
        let whole = self.tables.sequence(state.position, tokens, &like);
        let block = self.tables.decay(len, &like);
        let peek = Sizes {
            decay: self.tables.decay(k, &like),
            rotation: self.tables.rotation(
                RotationKey {
                    start: state.position + first_predicted * len,
                    blocks: predicted,
                    stride: len,
                    tokens: k,
                },
                &like,
            ),
        };

        let mut layers = Vec::with_capacity(self.layers.len());
        let mut x = x;
        // [batch, predicted * K, width]: the same prediction tokens for every block
        let mut u = u.repeat_dim(1, predicted);
        for (i, layer) in self.layers.iter().enumerate() {
            let p = layer.project(x.clone(), &whole.rotation);
            let before = state.layer(i);
            let (starts, end) =
                retention::block_states(p.k.clone(), p.v.clone(), before, blocks, &block);
            let retained = retention::outputs(p.q, p.k, p.v, before, &whole.decay);
            x = layer.finish(x, retained, p.gate);
            layers.push(end);

            if predicted == 0 {
                continue;
            }
            let heads = layer.heads;
            let p = layer.project(u.clone(), &peek.rotation);
            // Blocks become batch: [batch, heads, predicted, K, dim] -> [predicted * batch, heads, K, dim]
            let fold = |t: Tensor<4>| {
                let t: Tensor<5> = t.reshape([batch, heads, predicted, k, dim]);
                t.permute([2, 0, 1, 3, 4])
                    .reshape([predicted * batch, heads, k, dim])
            };
            let starts = Tensor::cat(starts[first_predicted..].to_vec(), 0);
            let retained =
                retention::outputs(fold(p.q), fold(p.k), fold(p.v), Some(&starts), &peek.decay);
            let retained: Tensor<5> = retained.reshape([predicted, batch, heads, k, dim]);
            let retained = retained.permute([1, 2, 0, 3, 4]);
            let retained: Tensor<4> = retained.reshape([batch, heads, predicted * k, dim]);
            u = layer.finish(u, retained, p.gate);
        }
        let position = state.position + tokens;
        let outputs = (predicted > 0).then(|| u.reshape([batch, predicted, k, width]));
        (
            x,
            outputs,
            RetNetState {
                layers: Some(layers),
                position,
            },
        )
    }
}
