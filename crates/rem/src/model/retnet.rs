//! The RetNet of the world model: layers of retention and feed-forward (Appendix A.3), and POP's two streams of tokens
//! (Algorithms 1 and 2).

mod state;
mod tables;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rem_kernels::{Dispatch, Dropout, Precision, RetentionSizes, RetentionTables};

use crate::config;
use crate::model::calls::{CallCounter, Calls};
use crate::model::layer::{Layer, LayerKind, constants_like};
use crate::model::retention::{Decay, DecayTables, Rotation};
pub use state::{Outputs, RetNetState};
use tables::TableCache;

/// A stack of retention layers.
#[derive(Module, Debug)]
pub struct RetNet {
    layers: Vec<Layer>,
    #[module(skip)]
    tables: TableCache,
    #[module(skip)]
    counter: CallCounter,
}

/// The tables as arguments of the kernels.
fn for_kernels((decay, rotation): &(DecayTables, Rotation)) -> RetentionTables<Dispatch> {
    RetentionTables {
        cos: rotation.cos.clone().into_dispatch(),
        sin: rotation.sin.clone().into_dispatch(),
        mask: decay.mask.clone().into_dispatch(),
        powers: decay.powers.clone().into_dispatch(),
    }
}

/// Whether the elements of a batch share their prediction tokens, of which `copies` are given.
fn is_shared(copies: usize, batch: usize) -> bool {
    assert!(copies == batch || copies == 1);
    copies < batch
}

impl RetNet {
    /// A network with initial weights.
    ///
    /// # Panics
    ///
    /// Panics if the config's architecture is a Transformer.
    pub fn new(
        width: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let retention = config.architecture.retention();
        let (decay, rope_theta) = retention.expect("an architecture with retention");
        let layer = || Layer::new(LayerKind::Retention, width, config, precision, device);
        Self {
            layers: (0..config.layers).map(|_| layer()).collect(),
            tables: TableCache::new(
                Decay::new(decay, config.heads),
                width / config.heads,
                rope_theta,
            ),
            counter: CallCounter::default(),
        }
    }

    /// Calls outside training so far, including those of clones.
    pub(crate) fn calls(&self) -> Calls {
        self.counter.get()
    }

    /// Sizes without prediction tokens.
    fn sizes(&self, batch: usize, tokens: usize, chunk: usize) -> RetentionSizes {
        RetentionSizes {
            batch,
            heads: self.layers[0].heads(),
            tokens,
            chunk,
            first_predicted: 0,
            predicted: 0,
            block_tokens: 0,
            shared: false,
            last_only: false,
        }
    }

    /// Processes a sequence of any length after `state`: one token (recurrent form), a chunk (chunkwise form) or all
    /// tokens (parallel form).
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, tokens, width]` -> `[batch, tokens or 1, width]`
    pub fn forward(
        &self,
        x: Tensor<3>,
        state: &RetNetState,
        outputs: Outputs,
    ) -> (Tensor<3>, RetNetState) {
        let [batch, tokens, width] = x.dims();
        let sizes = self.sizes(batch, tokens, tokens);
        let (y, state) = self.advance(x.reshape([batch * tokens, width]), sizes, state, outputs);
        let [rows, _] = y.dims();
        (y.reshape([batch, rows / batch, width]), state)
    }

    /// [`Self::forward`] and [`Self::predict`] in one call (Appendix A.1.2, alternative mode). Returns the output at
    /// the last token of `x`, the outputs of the prediction tokens `u`, and the state after `x`.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, tokens, width]`, `u`: `[batch, K, width]`, or `[1, K, width]` for all -> `[batch, width]`,
    ///   `[batch, K, width]`
    pub(crate) fn forward_and_predict(
        &self,
        x: Tensor<3>,
        u: Tensor<3>,
        state: &RetNetState,
    ) -> (Tensor<2>, Tensor<3>, RetNetState) {
        let [batch, tokens, width] = x.dims();
        let [copies, k, _] = u.dims();
        let sizes = RetentionSizes {
            // Prediction tokens follow the state before their chunk: chunk 1 begins after all of `x`.
            first_predicted: 1,
            predicted: 1,
            block_tokens: k,
            shared: is_shared(copies, batch),
            ..self.sizes(batch, tokens, tokens)
        };
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let rows = Tensor::cat(vec![x, u.reshape([copies * k, width])], 0);
        let (y, state) = self.advance(rows, sizes, state, Outputs::Last);
        let predictions = y.clone().narrow(0, batch, batch * k);
        (
            y.narrow(0, 0, batch),
            predictions.reshape([batch, k, width]),
            state,
        )
    }

    /// All layers over rows in the order of `sizes`, after `state`.
    fn advance(
        &self,
        x: Tensor<2>,
        mut sizes: RetentionSizes,
        state: &RetNetState,
        outputs: Outputs,
    ) -> (Tensor<2>, RetNetState) {
        self.counter
            .add(sizes.tokens + sizes.predicted * sizes.block_tokens);
        let tables = (self.tables).tables(state.position, sizes, &constants_like(&x));
        let mut layers = Vec::with_capacity(self.layers.len());
        let mut x = x;
        for (i, layer) in self.layers.iter().enumerate() {
            sizes.last_only = outputs == Outputs::Last && i + 1 == self.layers.len();
            let (y, next) = rem_kernels::retention_update_state(
                x,
                layer.retention_parameters(),
                for_kernels(&tables),
                state.layer(i).cloned(),
                sizes,
                layer.mode(Dropout::NONE),
            );
            layers.push(next);
            // From here on, the rows of the prediction tokens depend on the state.
            sizes.shared = false;
            x = layer.feed_forward(y, Dropout::NONE);
        }
        let state = RetNetState {
            layers: Some(layers),
            position: state.position + sizes.tokens,
        };
        (x, state)
    }

    /// The outputs of POP's prediction tokens after `state`, which does not change (Section 2.3).
    ///
    /// # Shapes
    ///
    /// - `u`: `[batch, K, width]`, or `[1, K, width]` for all -> `[batch, K, width]`
    pub fn predict(&self, u: Tensor<3>, state: &RetNetState) -> Tensor<3> {
        let [copies, tokens, width] = u.dims();
        let Some(layers) = &state.layers else {
            return self.forward(u, state, Outputs::All).0;
        };
        let [batch, ..] = layers[0].dims();
        let mut sizes = RetentionSizes {
            predicted: 1,
            block_tokens: tokens,
            shared: is_shared(copies, batch),
            ..self.sizes(batch, 0, 0)
        };
        self.counter.add(tokens);
        let tables = (self.tables).tables(state.position, sizes, &constants_like(&u));
        let mut u: Tensor<2> = u.reshape([copies * tokens, width]);
        for (layer, state) in self.layers.iter().zip(layers) {
            u = rem_kernels::retention_predict(
                u,
                layer.retention_parameters(),
                for_kernels(&tables),
                state.clone(),
                sizes,
                layer.mode(Dropout::NONE),
            );
            sizes.shared = false;
            u = layer.feed_forward(u, Dropout::NONE);
        }
        u.reshape([batch, tokens, width])
    }

    /// The training forward pass with POP over whole trajectories (Algorithm 1). Returns the outputs at the last token
    /// of each block, and for each block from `first_predicted` on the outputs of the prediction tokens `u` after the
    /// state before that block.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, blocks * block_len, width]`, `u`: `[K, width]`
    /// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
    pub(crate) fn pop(
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
            first_predicted,
            predicted,
            block_tokens: k,
            ..self.sizes(batch, tokens, tokens / blocks)
        };
        // Rows of both streams: the trajectory, then the prediction tokens, the same for every block.
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let x = Tensor::cat(vec![x, u.repeat_dim(0, batch * predicted)], 0);
        let x = self.train_layers(x, sizes, Outputs::Last, dropout);
        let last = x.clone().narrow(0, 0, batch * blocks);
        let predictions = x.narrow(0, batch * blocks, batch * predicted * k);
        (
            last.reshape([batch, blocks, width]),
            predictions.reshape([batch, predicted, k, width]),
        )
    }

    /// The training forward pass without POP over whole trajectories. Returns all outputs.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, blocks * block_len, width]` -> the same
    pub(crate) fn forward_train(&self, x: Tensor<3>, blocks: usize, dropout: Dropout) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let sizes = self.sizes(batch, tokens, tokens / blocks);
        let x: Tensor<2> = x.reshape([batch * tokens, width]);
        let y = self.train_layers(x, sizes, Outputs::All, dropout);
        y.reshape([batch, tokens, width])
    }

    /// All layers over rows in the order of `sizes`, with gradients and dropout. [`Outputs::Last`] is that of each
    /// chunk.
    fn train_layers(
        &self,
        mut x: Tensor<2>,
        mut sizes: RetentionSizes,
        outputs: Outputs,
        dropout: Dropout,
    ) -> Tensor<2> {
        let complete = sizes.chunks() * sizes.chunk == sizes.tokens;
        assert!(complete, "the trajectory consists of complete blocks");
        let tables = self.tables.tables(0, sizes, &constants_like(&x));
        for (i, layer) in self.layers.iter().enumerate() {
            let dropout = dropout.fold_in(i as u64);
            sizes.last_only = outputs == Outputs::Last && i + 1 == self.layers.len();
            x = rem_kernels::retention(
                x,
                layer.retention_parameters(),
                for_kernels(&tables),
                sizes,
                layer.mode(dropout.fold_in(0)),
            );
            x = layer.feed_forward(x, dropout.fold_in(1));
        }
        x
    }
}
