//! The sequence model between a world model's embeddings and heads: a RetNet with POP, a plain RetNet, a Transformer, or a
//! Transformer with POP.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Dropout, Precision};

use crate::config::{self, Architecture};
use crate::model::calls::Calls;
use crate::model::embedding::embedding;
use crate::model::kv_cache::KvCache;
use crate::model::pop_attention::PopAttention;
use crate::model::retnet::{Outputs, RetNet, RetNetState};
use crate::model::transformer::Transformer;
use crate::model::world_model_sizes::WorldModelSizes;

/// The variants of [`Architecture`].
#[derive(Module, Debug)]
pub enum Network {
    /// Predicts all tokens of an observation in parallel.
    Pop(Pop),
    /// Predicts token by token.
    Retnet(RetNet),
    /// Predicts token by token (IRIS).
    Transformer(Transformer),
    /// Predicts all tokens of an observation in parallel, with attention.
    PopAttention(PopAttention),
}

/// A RetNet with Parallel Observation Prediction (POP), Section 2.3.
#[derive(Module, Debug)]
pub struct Pop {
    /// u: the learned inputs whose outputs predict an observation, `[K, width]`.
    prediction_tokens: Param<Tensor<2>>,
    retnet: RetNet,
}

/// The recurrent state of a [`Network`]: an argument and a result of its methods.
#[derive(Clone, Debug)]
pub enum NetworkState {
    /// States of the retention layers.
    Retention(RetNetState),
    /// Keys and values of a Transformer, with or without POP.
    Cache(KvCache),
}

impl Default for NetworkState {
    fn default() -> Self {
        Self::Retention(RetNetState::empty())
    }
}

impl NetworkState {
    /// The state of a RetNet.
    ///
    /// # Panics
    ///
    /// Panics if the network is another one.
    pub fn retention(&self) -> &RetNetState {
        match self {
            Self::Retention(state) => state,
            Self::Cache(_) => panic!("attention has no retention state"),
        }
    }

    fn cache(&self) -> &KvCache {
        match self {
            Self::Cache(cache) => cache,
            Self::Retention(_) => panic!("retention has no key-value cache"),
        }
    }
}

impl Network {
    /// A network with initial weights.
    pub(crate) fn new(
        config: &config::WorldModel,
        sizes: WorldModelSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let retnet = || RetNet::new(sizes.width, config, precision, device);
        match config.architecture {
            Architecture::Pop { .. } => Self::Pop(Pop {
                prediction_tokens: embedding(sizes.tokens_per_obs, sizes.width, device),
                retnet: retnet(),
            }),
            Architecture::Retnet { .. } => Self::Retnet(retnet()),
            Architecture::Transformer {} => {
                let max_tokens = sizes.context_window_steps * (sizes.tokens_per_obs + 1);
                let width = sizes.width;
                let net = Transformer::new(width, max_tokens, config, precision, device);
                Self::Transformer(net)
            }
            Architecture::PopAttention { rope_theta } => Self::PopAttention(PopAttention::new(
                sizes.width,
                sizes.tokens_per_obs,
                sizes.context_window_steps * (sizes.tokens_per_obs + 1),
                config,
                rope_theta,
                precision,
                device,
            )),
        }
    }

    /// The state before the first token.
    pub(crate) fn initial_state(&self) -> NetworkState {
        match self {
            Self::Pop(_) | Self::Retnet(_) => NetworkState::Retention(RetNetState::empty()),
            Self::Transformer(_) | Self::PopAttention(_) => NetworkState::Cache(KvCache::empty()),
        }
    }

    /// The training forward pass over whole trajectories. Returns the outputs at the last token of each block (the
    /// action), and the outputs that predict the K observation tokens of each block from `first_predicted` on. Without
    /// POP, nothing predicts the first token of block 0 ([`Self::predicts_first_token`]): its output is zero.
    ///
    /// # Shapes
    ///
    /// - `x`: `[batch, blocks * (K + 1), width]`
    /// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
    pub(crate) fn forward(
        &self,
        x: Tensor<3>,
        blocks: usize,
        first_predicted: usize,
        dropout: Dropout,
    ) -> (Tensor<3>, Tensor<4>) {
        match self {
            Self::Pop(pop) => {
                let u = pop.prediction_tokens.val();
                pop.retnet.pop(x, u, blocks, first_predicted, dropout)
            }
            Self::Retnet(net) => {
                let y = net.forward_train(x, blocks, dropout);
                split_outputs(y, blocks, first_predicted)
            }
            Self::Transformer(net) => {
                split_outputs(net.forward_train(x, dropout), blocks, first_predicted)
            }
            Self::PopAttention(net) => net.pop(x, blocks, first_predicted, dropout),
        }
    }

    /// Whether the first token of a trajectory is predicted: by POP's first prediction token. Token by token, each token
    /// is predicted by the one before it.
    pub(crate) fn predicts_first_token(&self) -> bool {
        matches!(self, Self::Pop(_) | Self::PopAttention(_))
    }

    /// Processes tokens and returns the output at the last one: `[batch, tokens, width]` -> `[batch, width]`.
    ///
    /// # Panics
    ///
    /// Panics if the state belongs to another variant.
    pub fn update_state(&self, x: Tensor<3>, state: NetworkState) -> (Tensor<2>, NetworkState) {
        match (self, state) {
            (
                Self::Pop(Pop { retnet, .. }) | Self::Retnet(retnet),
                NetworkState::Retention(state),
            ) => {
                let (y, state) = retnet.forward(x, &state, Outputs::Last);
                (y.squeeze_dim(1), NetworkState::Retention(state))
            }
            (Self::Transformer(net), NetworkState::Cache(cache)) => {
                let (y, cache) = net.update_cache(x, cache);
                (y, NetworkState::Cache(cache))
            }
            (Self::PopAttention(net), NetworkState::Cache(cache)) => {
                let (y, cache) = net.update_cache(x, cache);
                (y, NetworkState::Cache(cache))
            }
            _ => panic!("the state belongs to another network variant"),
        }
    }

    /// The outputs of POP's prediction tokens, `[batch, K, width]`. The state does not change.
    ///
    /// # Panics
    ///
    /// Panics without POP, or if the state is that before the first token.
    pub(crate) fn predict(&self, state: &NetworkState) -> Tensor<3> {
        if let Self::PopAttention(net) = self {
            return net.predict(state.cache());
        }
        let pop = self.pop();
        let state = state.retention();
        assert!(state.layers().is_some(), "a prediction needs a context");
        pop.retnet.predict(pop.prediction_tokens(), state)
    }

    /// [`Self::update_state`] and [`Self::predict`] in one call (Appendix A.1.2, alternative mode). Returns the output
    /// at the last token, `[batch, width]`, the outputs of the prediction tokens, `[batch, K, width]`, and the state
    /// without them.
    ///
    /// # Panics
    ///
    /// Panics without POP on a RetNet.
    pub(crate) fn update_and_predict(
        &self,
        x: Tensor<3>,
        state: &NetworkState,
    ) -> (Tensor<2>, Tensor<3>, NetworkState) {
        let pop = self.pop();
        let u = pop.prediction_tokens();
        let (last, predictions, state) = pop.retnet.forward_and_predict(x, u, state.retention());
        (last, predictions, NetworkState::Retention(state))
    }

    /// Calls outside training so far, including those of clones.
    pub fn calls(&self) -> Calls {
        match self {
            Self::Pop(Pop { retnet, .. }) | Self::Retnet(retnet) => retnet.calls(),
            Self::Transformer(net) => net.calls(),
            Self::PopAttention(net) => net.calls(),
        }
    }

    fn pop(&self) -> &Pop {
        match self {
            Self::Pop(pop) => pop,
            _ => panic!("only POP on a RetNet does this"),
        }
    }
}

impl Pop {
    /// The prediction tokens u, the same for all elements of a batch: `[1, K, width]`.
    fn prediction_tokens(&self) -> Tensor<3> {
        self.prediction_tokens.val().unsqueeze_dim(0)
    }
}

/// Splits the outputs of token-by-token prediction: those at the last token of each block, and those that predict the
/// observation tokens of the blocks from `first_predicted` on. The output at a token predicts the next token; that for
/// the very first token is zero.
///
/// # Shapes
///
/// - `y`: `[batch, blocks * (K + 1), width]`
/// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
fn split_outputs(y: Tensor<3>, blocks: usize, first_predicted: usize) -> (Tensor<3>, Tensor<4>) {
    let [batch, tokens, width] = y.dims();
    let length = tokens / blocks;
    let predicted = blocks - first_predicted;
    let predicting = match (first_predicted * length).checked_sub(1) {
        Some(first) => y.clone().narrow(1, first, predicted * length),
        None => {
            let nothing = y.clone().narrow(1, 0, 1).zeros_like();
            Tensor::cat(vec![nothing, y.clone().narrow(1, 0, tokens - 1)], 1)
        }
    };
    let predicting: Tensor<4> = predicting.reshape([batch, predicted, length, width]);
    let by_block: Tensor<4> = y.reshape([batch, blocks, length, width]);
    (
        by_block.narrow(2, length - 1, 1).squeeze_dim(2),
        predicting.narrow(2, 0, length - 1),
    )
}
