//! POP on attention (Simulus): a causal Transformer with rotary positions. The prediction tokens of an observation attend
//! to the keys and values of everything before it and causally to each other, and leave none of their own.

use burn::module::{Module, Param};
use burn::nn::LayerNorm;
use burn::tensor::{Device, Tensor};
use rem_kernels::{Dropout, Precision, PredictionBlocks};

use crate::config;
use crate::model::calls::{CallCounter, Calls};
use crate::model::embedding::embedding;
use crate::model::kv_cache::KvCache;
use crate::model::layer::{Layer, LayerKind, constants_like, layer_norm};
use crate::model::retention::Rotation;

/// A pre-norm Transformer with prediction tokens.
#[derive(Module, Debug)]
pub struct PopAttention {
    /// u: the learned inputs whose outputs predict an observation, `[K, width]`.
    prediction_tokens: Param<Tensor<2>>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    rope_theta: f64,
    /// Tokens that a cache has room for from the start.
    segment_tokens: usize,
    #[module(skip)]
    counter: CallCounter,
}

impl PopAttention {
    /// A network with initial weights that predicts observations of `k` tokens, seldom after many more than
    /// `segment_tokens` tokens.
    pub(crate) fn new(
        width: usize,
        k: usize,
        segment_tokens: usize,
        config: &config::WorldModel,
        rope_theta: f64,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let layer = || Layer::new(LayerKind::Attention, width, config, precision, device);
        Self {
            prediction_tokens: embedding(k, width, device),
            layers: (0..config.layers).map(|_| layer()).collect(),
            norm: layer_norm(width, device),
            rope_theta,
            segment_tokens,
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
        let dim = x.dims()[D - 1] / self.layers[0].heads();
        Rotation::new(positions, dim, self.rope_theta, &constants_like(x))
    }

    /// Processes tokens after those in the cache and returns the output at the last one: `[batch, tokens, width]` ->
    /// `[batch, width]`.
    pub(crate) fn update_cache(&self, x: Tensor<3>, cache: KvCache) -> (Tensor<2>, KvCache) {
        let [batch, tokens, width] = x.dims();
        self.counter.add(tokens);
        let rotation = self.rotation(cache.length()..cache.length() + tokens, &x);
        let rows = x.reshape([batch * tokens, width]);
        let (layers, room) = (&self.layers, self.segment_tokens);
        let (y, cache) = cache.advance(layers, rows, batch, Some(&rotation), room);
        (self.norm.forward(y), cache)
    }

    /// The outputs of the prediction tokens after those in the cache, which does not change: `[batch, K, width]`.
    ///
    /// # Panics
    ///
    /// Panics before the first token.
    pub(crate) fn predict(&self, cache: &KvCache) -> Tensor<3> {
        let batch = cache.batch().expect("a prediction needs a context");
        let [k, width] = self.prediction_tokens.dims();
        self.counter.add(k);
        let u = self.prediction_tokens.val();
        let rotation = self.rotation(cache.length()..cache.length() + k, &u);
        let u = u.repeat_dim(0, batch);
        let y = cache.predict(&self.layers, u, batch, Some(&rotation));
        self.norm.forward(y).reshape([batch, k, width])
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
        let block_len = tokens / blocks;
        let predictions = PredictionBlocks {
            count: blocks - first_predicted,
            tokens: k,
            first: first_predicted,
            chunk: block_len,
        };
        let rotation = self.rotation(positions(tokens, predictions).into_iter(), &x);
        // Rows of both streams: the trajectory, then the prediction tokens, the same for every block.
        let u = self.prediction_tokens.val();
        let u = u.repeat_dim(0, batch * predictions.count);
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let mut rows = Tensor::cat(vec![x, u], 0);
        for (i, layer) in self.layers.iter().enumerate() {
            let (rotation, dropout) = (Some(&rotation), dropout.fold_in(i as u64));
            rows = layer.attention(rows, rotation, batch, predictions, dropout.fold_in(0));
            if i + 1 == self.layers.len() {
                rows = with_last_of_chunks(rows, batch * tokens, block_len);
            }
            rows = layer.feed_forward(rows, dropout.fold_in(1));
        }
        let rows = self.norm.forward(rows);
        let (last, predicted) = (batch * blocks, batch * predictions.count * k);
        let u = rows.clone().narrow(0, last, predicted);
        (
            rows.narrow(0, 0, last).reshape([batch, blocks, width]),
            u.reshape([batch, predictions.count, k, width]),
        )
    }
}

/// Of the tokens of a sequence, then of its prediction blocks.
fn positions(tokens: usize, predictions: PredictionBlocks) -> Vec<usize> {
    let PredictionBlocks {
        count,
        first,
        chunk,
        ..
    } = predictions;
    let starts = (first..first + count).map(|block| block * chunk);
    let predicted = starts.flat_map(|start| start..start + predictions.tokens);
    (0..tokens).chain(predicted).collect()
}

/// The last row of each chunk among the first `count` rows, then all other rows.
fn with_last_of_chunks(rows: Tensor<2>, count: usize, chunk: usize) -> Tensor<2> {
    let [all, width] = rows.dims();
    let chunks: Tensor<3> =
        (rows.clone().narrow(0, 0, count)).reshape([count / chunk, chunk, width]);
    let last = chunks.narrow(1, chunk - 1, 1).squeeze_dim(1);
    Tensor::cat(vec![last, rows.narrow(0, count, all - count)], 0)
}

#[cfg(test)]
mod tests;
