//! Parameters, tables and sizes of the retention sublayer.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType};

/// Parameters of the retention sublayer. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct RetentionParameters<B: Backend> {
    /// Scale of the norm.
    pub gamma: FloatTensor<B>,
    /// Shift of the norm.
    pub beta: FloatTensor<B>,
    /// Weight of the queries.
    pub query_weight: FloatTensor<B>,
    /// Bias of the queries.
    pub query_bias: FloatTensor<B>,
    /// Weight of the keys.
    pub key_weight: FloatTensor<B>,
    /// Bias of the keys.
    pub key_bias: FloatTensor<B>,
    /// Weight of the values.
    pub value_weight: FloatTensor<B>,
    /// Bias of the values.
    pub value_bias: FloatTensor<B>,
    /// Weight of the gate.
    pub gate_weight: FloatTensor<B>,
    /// Bias of the gate.
    pub gate_bias: FloatTensor<B>,
    /// Weight of the output projection.
    pub out_weight: FloatTensor<B>,
    /// Bias of the output projection.
    pub out_bias: FloatTensor<B>,
}

impl<B: Backend> RetentionParameters<B> {
    pub(super) fn into_array(self) -> [FloatTensor<B>; 12] {
        let p = self;
        [
            p.gamma,
            p.beta,
            p.query_weight,
            p.query_bias,
            p.key_weight,
            p.key_bias,
            p.value_weight,
            p.value_bias,
            p.gate_weight,
            p.gate_bias,
            p.out_weight,
            p.out_bias,
        ]
    }
}

/// Constants that depend on the sizes and positions only (Appendix A.3).
#[derive(ExtensionType)]
pub struct RetentionTables<B: Backend> {
    /// Cosine of each row's rotation, `[rows of one batch element, head_dim]`: trajectory, then prediction blocks.
    pub cos: FloatTensor<B>,
    /// Sine of each row's rotation, like `cos`.
    pub sin: FloatTensor<B>,
    /// D, `[heads, longest, longest]`: η^(n-m) on and below the diagonal, 0 above.
    pub mask: FloatTensor<B>,
    /// η^i, `[heads, longest + 1]`.
    pub powers: FloatTensor<B>,
}

/// The sizes of a retention. Rows are ordered as `batch` trajectories of `tokens` rows each, then for each batch
/// element `predicted` blocks of `block_tokens` rows, or one block for all of them if `shared`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionSizes {
    /// Number of trajectories.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Rows of each trajectory, a multiple of `chunk`.
    pub tokens: usize,
    /// Rows of a chunk.
    pub chunk: usize,
    /// Prediction block j sees the state before chunk `first_predicted + j`.
    pub first_predicted: usize,
    /// Number of prediction blocks.
    pub predicted: usize,
    /// Rows of a prediction block.
    pub block_tokens: usize,
    /// Whether all prediction blocks have the same input rows, which are then given, normed and projected once.
    /// Outputs are those of all blocks. Without gradients.
    pub shared: bool,
    /// Whether only the last row of each chunk gives an output. Prediction blocks give one for every row.
    pub last_only: bool,
}

impl RetentionSizes {
    /// Chunks of a trajectory.
    pub fn chunks(&self) -> usize {
        self.tokens / self.chunk.max(1)
    }
}

/// The state before the first chunk.
#[derive(ExtensionType)]
pub enum InitialState<B: Backend> {
    /// All zeros.
    Zero,
    /// `[batch, heads, head_dim, head_dim]`
    Given(FloatTensor<B>),
}

impl<B: Backend> InitialState<B> {
    pub(super) fn given(self) -> Option<FloatTensor<B>> {
        match self {
            Self::Zero => None,
            Self::Given(state) => Some(state),
        }
    }
}
