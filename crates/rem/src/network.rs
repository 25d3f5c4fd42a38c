//! The network between a world model's embeddings and its heads: a RetNet with POP, a plain one, or a Transformer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Distribution, Tensor};
use rem_kernels::{Dropout, Precision};

use crate::calls::Calls;
use crate::config::{self, Architecture};
use crate::retnet::{RetNet, RetNetState, Wanted};
use crate::transformer::{KeyValues, Transformer};
use crate::world_model::WorldModelSizes;

#[derive(Module, Debug)]
pub enum Network {
    Pop(Pop),
    Retnet(RetNet),
    Transformer(Transformer),
}

/// A RetNet and what it is asked for a whole observation with.
#[derive(Module, Debug)]
pub struct Pop {
    /// u, `[K, width]`
    prediction_tokens: Param<Tensor<2>>,
    retnet: RetNet,
}

/// What a world model remembers of a trajectory; a value that goes in and comes out.
#[derive(Clone, Debug)]
pub enum Memory {
    Retention(RetNetState),
    Cache(KeyValues),
}

impl Default for Memory {
    fn default() -> Self {
        Self::Retention(RetNetState::empty())
    }
}

impl Memory {
    /// The states of a RetNet.
    pub fn retention(&self) -> &RetNetState {
        match self {
            Self::Retention(state) => state,
            Self::Cache(_) => panic!("a Transformer has no retention state"),
        }
    }
}

/// Rows drawn from a normal distribution.
pub(crate) fn embedding(rows: usize, width: usize, device: &Device) -> Param<Tensor<2>> {
    let values = Tensor::random([rows, width], Distribution::Normal(0.0, 1.0), device);
    Param::from_tensor(values)
}

impl Network {
    pub fn new(
        config: &config::WorldModel,
        sizes: WorldModelSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let retnet = || RetNet::new(sizes.width, config, precision, device);
        match config.architecture {
            Architecture::Pop => Self::Pop(Pop {
                prediction_tokens: embedding(sizes.tokens_per_obs, sizes.width, device),
                retnet: retnet(),
            }),
            Architecture::Retnet => Self::Retnet(retnet()),
            Architecture::Transformer => {
                let most = sizes.memory_steps * (sizes.tokens_per_obs + 1);
                let width = sizes.width;
                Self::Transformer(Transformer::new(width, most, config, precision, device))
            }
        }
    }

    /// Nothing seen yet.
    pub fn nothing_seen(&self) -> Memory {
        match self {
            Self::Pop(_) | Self::Retnet(_) => Memory::Retention(RetNetState::empty()),
            Self::Transformer(_) => Memory::Cache(KeyValues::empty()),
        }
    }

    /// Whole trajectories from their start: the outputs at the end of each block, and for each block from
    /// `first_predicted` on those that stand for its K observation tokens.
    /// # Shapes
    /// - `x`: `[batch, blocks * (K + 1), width]`
    /// - outputs: `[batch, blocks, width]`; `[batch, blocks - first_predicted, K, width]`
    pub fn learn(
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
                let y = net.trajectories(x, blocks, dropout);
                before_each_token(y, blocks, first_predicted)
            }
            Self::Transformer(net) => {
                before_each_token(net.sequences(x, dropout), blocks, first_predicted)
            }
        }
    }

    /// Takes tokens in; gives the output at the last one: `[batch, tokens, width]` -> `[batch, width]`.
    pub fn read(&self, x: Tensor<3>, memory: Memory) -> (Tensor<2>, Memory) {
        match (self, memory) {
            (Self::Pop(Pop { retnet, .. }) | Self::Retnet(retnet), Memory::Retention(state)) => {
                let (y, state) = retnet.forward(x, &state, Wanted::Last);
                (y.squeeze_dim(1), Memory::Retention(state))
            }
            (Self::Transformer(net), Memory::Cache(cache)) => {
                let (y, cache) = net.read(x, cache);
                (y, Memory::Cache(cache))
            }
            _ => panic!("a memory of another network"),
        }
    }

    /// The outputs of POP's prediction tokens, which leave no trace: `[batch, K, width]`.
    pub fn peek(&self, memory: &Memory) -> Tensor<3> {
        let pop = self.pop();
        let state = memory.retention();
        let layers = state.layers().expect("a prediction needs a past");
        let [batch, ..] = layers[0].dims();
        pop.retnet.peek(pop.questions(batch), state)
    }

    /// [`Self::read`] and [`Self::peek`] in one call: the last output, the predictions, the memory, in which
    /// the prediction tokens leave no trace.
    pub fn read_and_peek(&self, x: Tensor<3>, memory: &Memory) -> (Tensor<2>, Tensor<3>, Memory) {
        let pop = self.pop();
        let [batch, ..] = x.dims();
        let u = pop.questions(batch);
        let (last, predictions, state) = pop.retnet.forward_and_peek(x, u, memory.retention());
        (last, predictions, Memory::Retention(state))
    }

    /// Calls outside training so far, those of copies included.
    pub fn calls(&self) -> Calls {
        match self {
            Self::Pop(Pop { retnet, .. }) | Self::Retnet(retnet) => retnet.calls(),
            Self::Transformer(net) => net.calls(),
        }
    }

    pub fn retnet(&self) -> Option<&RetNet> {
        match self {
            Self::Pop(Pop { retnet, .. }) | Self::Retnet(retnet) => Some(retnet),
            Self::Transformer(_) => None,
        }
    }

    fn pop(&self) -> &Pop {
        match self {
            Self::Pop(pop) => pop,
            _ => panic!("only POP predicts a whole observation at once"),
        }
    }
}

impl Pop {
    /// The prediction tokens for each of a batch.
    fn questions(&self, batch: usize) -> Tensor<3> {
        let u: Tensor<3> = self.prediction_tokens.val().unsqueeze_dim(0);
        u.repeat_dim(0, batch)
    }
}

/// Of all outputs those at the ends of blocks, and those from which each observation token of the blocks from
/// `first_predicted` on is predicted: at the token before it.
fn before_each_token(
    y: Tensor<3>,
    blocks: usize,
    first_predicted: usize,
) -> (Tensor<3>, Tensor<4>) {
    let [batch, tokens, width] = y.dims();
    let length = tokens / blocks;
    assert!(first_predicted > 0, "the first token of all has no past");
    let predicted = blocks - first_predicted;
    let before = y
        .clone()
        .narrow(1, first_predicted * length - 1, predicted * length);
    let before: Tensor<4> = before.reshape([batch, predicted, length, width]);
    let ends: Tensor<4> = y.reshape([batch, blocks, length, width]);
    (
        ends.narrow(2, length - 1, 1).squeeze_dim(2),
        before.narrow(2, 0, length - 1),
    )
}
