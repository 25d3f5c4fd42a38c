//! The recurrent state of a RetNet.

use burn::tensor::Tensor;

/// The recurrent state of all layers: an argument and a result of [`RetNet::forward`](super::RetNet::forward).
#[derive(Clone, Debug)]
pub struct RetNetState {
    /// One `[batch, heads, head_dim, head_dim]` per layer; `None` before the first token.
    pub(super) layers: Option<Vec<Tensor<4>>>,
    /// Number of tokens so far: the position of the next one.
    pub(super) position: usize,
}

impl RetNetState {
    /// The state before the first token.
    pub fn empty() -> Self {
        Self {
            layers: None,
            position: 0,
        }
    }

    /// The state of each layer, `[batch, heads, head_dim, head_dim]`; `None` before the first token.
    pub fn layers(&self) -> Option<&[Tensor<4>]> {
        self.layers.as_deref()
    }

    /// Number of tokens so far: the position of the next one.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The state of layer `i`.
    pub(super) fn layer(&self, i: usize) -> Option<&Tensor<4>> {
        self.layers.as_ref().map(|layers| &layers[i])
    }
}

/// Which outputs of a sequence are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// Those of all tokens.
    All,
    /// That of the last token. The last layer skips the other tokens, which only update its state.
    Last,
}
