//! Parameters, positions and sizes of the attention sublayer.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::Tensor;

/// Parameters of the attention sublayer. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct AttentionParameters<B: Backend> {
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
    /// Weight of the output projection.
    pub out_weight: FloatTensor<B>,
    /// Bias of the output projection.
    pub out_bias: FloatTensor<B>,
}

impl<B: Backend> AttentionParameters<B> {
    pub(super) fn into_array(self) -> [FloatTensor<B>; 10] {
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
            p.out_weight,
            p.out_bias,
        ]
    }
}

/// Where the positions of queries and keys come from.
#[derive(ExtensionType)]
pub enum Positions<B: Backend> {
    /// They are part of the input rows.
    Embedded,
    /// Pairs of adjacent channels of queries and keys are rotated.
    Rotary {
        /// Cosine of each row's rotation, `[rows of one batch element, head_dim]`.
        cos: FloatTensor<B>,
        /// Sine of each row's rotation, like `cos`.
        sin: FloatTensor<B>,
    },
}

impl Positions<Dispatch> {
    /// Rotations by cosines and sines, `[rows of one batch element, head_dim]`: those of a sequence, then those of its
    /// prediction blocks.
    pub fn rotary(cos: Tensor<2>, sin: Tensor<2>) -> Self {
        Self::Rotary {
            cos: cos.into_dispatch(),
            sin: sin.into_dispatch(),
        }
    }
}

/// The sizes of an attention over whole sequences. Rows are `batch` sequences of equal length, one after the other, then
/// for each of them its prediction blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSizes {
    /// Number of sequences.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Prediction blocks of each sequence.
    pub predictions: PredictionBlocks,
    /// Whether the mode's dropout applies to the attention's weights too.
    pub weight_dropout: bool,
}

/// POP's prediction blocks of a sequence. Block j sees the first `(first + j) * chunk` tokens of its sequence and, causally,
/// itself. Nothing else sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionBlocks {
    /// Number of blocks.
    pub count: usize,
    /// Rows of a block.
    pub tokens: usize,
    /// How many chunks of the sequence the first block sees.
    pub first: usize,
    /// Tokens of a chunk of the sequence.
    pub chunk: usize,
}

impl PredictionBlocks {
    /// No blocks.
    pub const NONE: Self = Self {
        count: 0,
        tokens: 0,
        first: 0,
        chunk: 0,
    };
}

impl AttentionSizes {
    /// Rows of the prediction blocks of a sequence.
    pub(super) fn predicted(self) -> usize {
        self.predictions.count * self.predictions.tokens
    }

    /// Tokens of a sequence, of the number of all rows.
    pub(super) fn tokens(self, rows: usize) -> usize {
        rows / self.batch - self.predicted()
    }
}

/// The sizes of an attention over a cache. Rows are the new tokens of each sequence, one sequence after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedSizes {
    /// Number of sequences.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Tokens of each sequence in the cache.
    pub past: usize,
}
