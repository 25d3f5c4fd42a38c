//! POP on attention (Simulus): a causal Transformer with rotary positions. The prediction tokens of an observation attend
//! to the keys and values of everything before it and to each other, and leave none of their own.
//!
//! Attention is made of tensor operations on every device. Projections and feed-forward sublayers are tuned kernels.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Device;
use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorCreationOptions, TensorData};
use rem_kernels::{Activation, Dropout, Hidden, Precision, SublayerMode};

use crate::config::{self, Activation as FeedForwardActivation};
use crate::model::calls::{CallCounter, Calls};
use crate::model::embedding::embedding;
use crate::model::linear::linear;
use crate::model::retention::Rotation;
use crate::model::sublayer::{
    feed_forward, kernel_activation, layer_norm, projection, xavier_linear,
};

/// A pre-norm Transformer with prediction tokens.
#[derive(Module, Debug)]
pub struct PopAttention {
    /// u: the learned inputs whose outputs predict an observation, `[K, width]`.
    prediction_tokens: Param<Tensor<2>>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    rope_theta: f64,
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
    activation: FeedForwardActivation,
    #[module(skip)]
    precision: Precision,
}

/// Queries (divided by √head_dim), keys and values, queries and keys rotated: `[batch, heads, tokens, head_dim]` each.
struct Projected {
    queries: Tensor<4>,
    keys: Tensor<4>,
    values: Tensor<4>,
}

/// Keys and values of the tokens so far: an argument and a result of the forward pass.
#[derive(Clone, Debug)]
pub struct PopAttentionState {
    /// Rotated keys, and values, of each layer, `[batch, heads, tokens, head_dim]`; empty before the first token.
    layers: Vec<[Tensor<4>; 2]>,
    /// Number of tokens so far: the position of the next one.
    length: usize,
}

impl PopAttentionState {
    /// The state before the first token.
    pub(crate) fn empty() -> Self {
        Self {
            layers: Vec::new(),
            length: 0,
        }
    }
}

/// Type and device, without autodiff, of constants that are combined with `x`.
fn constants_like<const D: usize>(x: &Tensor<D>) -> TensorCreationOptions {
    TensorCreationOptions::new(x.device().without_autodiff()).with_dtype(x.dtype())
}

/// Added to scores: 0 where a query sees a key, else a number that vanishes in a softmax. `[1, 1, queries, keys]`
fn mask(
    [queries, keys]: [usize; 2],
    sees: impl Fn(usize, usize) -> bool,
    like: &Tensor<4>,
) -> Tensor<4> {
    let sees = &sees;
    let pairs = (0..queries).flat_map(|query| (0..keys).map(move |key| sees(query, key)));
    let scores: Vec<f32> = pairs.map(|seen| if seen { 0.0 } else { -1e30 }).collect();
    let scores = TensorData::new(scores, [1, 1, queries, keys]);
    Tensor::from_data(scores, constants_like(like))
}

/// Rotates pairs of neighboring channels by the positions' angles: `[batch, heads, tokens, head_dim]` -> the same.
fn rotated(x: Tensor<4>, rotation: &Rotation) -> Tensor<4> {
    let [batch, heads, tokens, dim] = x.dims();
    let pairs: Tensor<5> = x.clone().reshape([batch, heads, tokens, dim / 2, 2]);
    let [first, second] = [0, 1].map(|i| pairs.clone().narrow(4, i, 1));
    let turned = Tensor::cat(vec![second.neg(), first], 4).reshape([batch, heads, tokens, dim]);
    let table = |t: &Tensor<2>| -> Tensor<4> { t.clone().reshape([1, 1, tokens, dim]) };
    x * table(&rotation.cos) + turned * table(&rotation.sin)
}

/// `[batch, heads, tokens, head_dim]` -> `[batch * tokens, width]`
fn merged(x: Tensor<4>) -> Tensor<2> {
    let [batch, heads, tokens, dim] = x.dims();
    x.swap_dims(1, 2).reshape([batch * tokens, heads * dim])
}

/// Queries over the keys and values of as many tokens as there are, and of those before: `[batch, heads, tokens,
/// head_dim]`.
fn causal_attention(queries: Tensor<4>, keys: Tensor<4>, values: Tensor<4>) -> Tensor<4> {
    let (tokens, all) = (queries.dims()[2], keys.dims()[2]);
    let past = all - tokens;
    let mask = mask([tokens, all], |query, key| key <= past + query, &queries);
    softmax(queries.matmul(keys.swap_dims(2, 3)) + mask, 3).matmul(values)
}

/// The sizes of a training forward pass.
#[derive(Clone, Copy)]
struct Blocks {
    batch: usize,
    /// Blocks of a trajectory, of `block_len` tokens each.
    blocks: usize,
    block_len: usize,
    /// The first block with a prediction, by `k` tokens.
    first_predicted: usize,
    k: usize,
}

impl Blocks {
    fn tokens(self) -> usize {
        self.blocks * self.block_len
    }

    fn predicted(self) -> usize {
        self.blocks - self.first_predicted
    }
}

/// Prediction tokens of all predicted blocks over the trajectory before their block, and causally over the tokens of
/// their own prediction.
///
/// # Shapes
///
/// - `u`: `[batch, heads, predicted * K, head_dim]` each; `x`: `[batch, heads, blocks * block_len, head_dim]` each
/// - result: `[batch, heads, predicted * K, head_dim]`
fn prediction_attention(u: Projected, x: &Projected, sizes: Blocks) -> Tensor<4> {
    let [batch, heads, rows, dim] = u.queries.dims();
    let (k, tokens, predicted) = (sizes.k, sizes.tokens(), sizes.predicted());
    // By prediction: [batch * heads, predicted, K, head_dim]
    let by_prediction =
        |t: &Tensor<4>| -> Tensor<4> { t.clone().reshape([batch * heads, predicted, k, dim]) };
    let own = by_prediction(&u.queries).matmul(by_prediction(&u.keys).swap_dims(2, 3));
    let own = own + mask([k, k], |query, key| key <= query, &u.queries);
    let own: Tensor<4> = own.reshape([batch, heads, rows, k]);
    let before = |query: usize, key: usize| {
        let block = sizes.first_predicted + query / k;
        key < block * sizes.block_len
    };
    let past = u.queries.clone().matmul(x.keys.clone().swap_dims(2, 3));
    let past = past + mask([rows, tokens], before, &u.queries);
    let weights = softmax(Tensor::cat(vec![past, own], 3), 3);
    let past = weights
        .clone()
        .narrow(3, 0, tokens)
        .matmul(x.values.clone());
    let own: Tensor<4> = weights
        .narrow(3, tokens, k)
        .reshape([batch * heads, predicted, k, k]);
    let own = own.matmul(by_prediction(&u.values));
    past + own.reshape([batch, heads, rows, dim])
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
            linear1: xavier_linear(width, config.feed_forward, device),
            linear2: xavier_linear(config.feed_forward, width, device),
            heads: config.heads,
            activation: config.activation,
            precision,
        }
    }

    /// The norm and the projections of `batch` sequences: `[batch * tokens, width]`.
    fn project(&self, x: Tensor<2>, batch: usize, rotation: &Rotation) -> Projected {
        let [rows, width] = x.dims();
        let (heads, dim) = (self.heads, width / self.heads);
        let normed = self.norm1.forward(x);
        let project = |layer: &Linear| -> Tensor<4> {
            let y = linear(layer, Activation::None, normed.clone(), self.precision);
            y.reshape([batch, rows / batch, heads, dim]).swap_dims(1, 2)
        };
        let queries = project(&self.q_proj).div_scalar((dim as f64).sqrt());
        Projected {
            queries: rotated(queries, rotation),
            keys: rotated(project(&self.k_proj), rotation),
            values: project(&self.v_proj),
        }
    }

    /// What follows attention: projection, residual and the feed-forward sublayer, `[rows, width]` each.
    fn finish(&self, x: Tensor<2>, attended: Tensor<2>, dropout: Dropout) -> Tensor<2> {
        let y = linear(&self.out_proj, Activation::None, attended, self.precision);
        let x = x + rem_kernels::dropout(y, dropout.fold_in(0));
        let hidden = Hidden {
            activation: kernel_activation(self.activation),
            dropout: true,
        };
        let mode = SublayerMode {
            dropout: dropout.fold_in(1),
            precision: self.precision,
        };
        feed_forward(x, &self.norm2, [&self.linear1, &self.linear2], hidden, mode)
    }
}

impl PopAttention {
    /// A network with initial weights that predicts observations of `k` tokens.
    pub(crate) fn new(
        width: usize,
        k: usize,
        rope_theta: f64,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        Self {
            prediction_tokens: embedding(k, width, device),
            layers: (0..config.layers)
                .map(|_| Layer::new(width, config, precision, device))
                .collect(),
            norm: layer_norm(width, device),
            rope_theta,
            counter: CallCounter::default(),
        }
    }

    /// Calls outside training so far, including those of clones.
    pub(crate) fn calls(&self) -> Calls {
        self.counter.get()
    }

    fn rotation<const D: usize>(
        &self,
        positions: impl ExactSizeIterator<Item = usize>,
        x: &Tensor<D>,
    ) -> Rotation {
        let dim = x.dims()[D - 1] / self.layers[0].heads;
        Rotation::new(positions, dim, self.rope_theta, &constants_like(x))
    }

    /// Processes tokens after `state`: `[batch, tokens, width]` -> the same, and the state with these tokens.
    fn forward(&self, x: Tensor<3>, state: &PopAttentionState) -> (Tensor<3>, PopAttentionState) {
        let [batch, tokens, width] = x.dims();
        self.counter.add(tokens);
        let rotation = self.rotation(state.length..state.length + tokens, &x);
        let mut x: Tensor<2> = x.reshape([batch * tokens, width]);
        let mut layers = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().enumerate() {
            let new = layer.project(x.clone(), batch, &rotation);
            let [keys, values] = match state.layers.get(i) {
                Some([keys, values]) => [(keys, new.keys), (values, new.values)]
                    .map(|(past, new)| Tensor::cat(vec![past.clone(), new], 2)),
                None => [new.keys, new.values],
            };
            let attended = causal_attention(new.queries, keys.clone(), values.clone());
            x = layer.finish(x, merged(attended), Dropout::NONE);
            layers.push([keys, values]);
        }
        let state = PopAttentionState {
            layers,
            length: state.length + tokens,
        };
        (self.norm.forward(x).reshape([batch, tokens, width]), state)
    }

    /// Processes tokens after `state` and returns the output at the last one: `[batch, tokens, width]` ->
    /// `[batch, width]`.
    pub(crate) fn update_state(
        &self,
        x: Tensor<3>,
        state: &PopAttentionState,
    ) -> (Tensor<2>, PopAttentionState) {
        let tokens = x.dims()[1];
        let (y, state) = self.forward(x, state);
        (y.narrow(1, tokens - 1, 1).squeeze_dim(1), state)
    }

    /// The outputs of the prediction tokens after `state`, which does not change: `[batch, K, width]`.
    ///
    /// # Panics
    ///
    /// Panics before the first token.
    pub(crate) fn predict(&self, state: &PopAttentionState) -> Tensor<3> {
        let [keys, _] = state.layers.first().expect("a prediction needs a context");
        let u: Tensor<3> = self.prediction_tokens.val().unsqueeze_dim(0);
        self.forward(u.repeat_dim(0, keys.dims()[0]), state).0
    }

    /// The training forward pass over whole trajectories. Returns the outputs at the last token of each block, and for
    /// each block from `first_predicted` on those of the prediction tokens after what precedes that block.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, blocks * (K + 1), width]`
    /// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
    pub(crate) fn pop(
        &self,
        x: Tensor<3>,
        blocks: usize,
        first_predicted: usize,
        dropout: Dropout,
    ) -> (Tensor<3>, Tensor<4>) {
        let [batch, tokens, width] = x.dims();
        let [k, _] = self.prediction_tokens.dims();
        let sizes = Blocks {
            batch,
            blocks,
            block_len: tokens / blocks,
            first_predicted,
            k,
        };
        let predicted = sizes.predicted();
        let of_trajectory = self.rotation(0..tokens, &x);
        let positions: Vec<usize> = (first_predicted..blocks)
            .flat_map(|block| (0..k).map(move |i| block * sizes.block_len + i))
            .collect();
        let of_predictions = self.rotation(positions.into_iter(), &x);
        // Rows of both streams: the trajectory, then the prediction tokens, the same for every block.
        let u = self
            .prediction_tokens
            .val()
            .repeat_dim(0, batch * predicted);
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let mut rows = Tensor::cat(vec![x, u], 0);
        let split = |rows: &Tensor<2>| {
            let [x, u] = [batch * tokens, batch * predicted * k];
            let u = rows.clone().narrow(0, x, u);
            (rows.clone().narrow(0, 0, x), u)
        };
        for (i, layer) in self.layers.iter().enumerate() {
            let (x, u) = split(&rows);
            let x = layer.project(x, sizes.batch, &of_trajectory);
            let u = layer.project(u, sizes.batch, &of_predictions);
            let u = merged(prediction_attention(u, &x, sizes));
            let x = merged(causal_attention(x.queries, x.keys, x.values));
            let attended = Tensor::cat(vec![x, u], 0);
            rows = layer.finish(rows, attended, dropout.fold_in(i as u64));
        }
        let (x, u) = split(&self.norm.forward(rows));
        let by_block: Tensor<4> = x.reshape([batch, blocks, sizes.block_len, width]);
        (
            by_block.narrow(2, sizes.block_len - 1, 1).squeeze_dim(2),
            u.reshape([batch, predicted, k, width]),
        )
    }
}

#[cfg(test)]
mod tests;
