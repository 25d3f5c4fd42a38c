//! The sizes of an attention and the order of its rows.

use crate::cpu::dropout::Dropout;
use crate::cpu::rotation::Rotation;

/// Tokens of a block of a sequence without prediction blocks.
pub const BLOCK: usize = 96;

/// Whole sequences from their start: `batch` sequences of `tokens` rows, then for each batch element `predicted`
/// blocks of `block_tokens` rows. Rows are `3 * width` long: queries, keys, values.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Batch size.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
    /// Tokens of a sequence.
    pub tokens: usize,
    /// Tokens of a sequence that are processed at a time.
    pub chunk: usize,
    /// Prediction block j sees the chunks before chunk `first_predicted + j` and, causally, itself.
    pub first_predicted: usize,
    /// Number of prediction blocks.
    pub predicted: usize,
    /// Rows of a prediction block.
    pub block_tokens: usize,
    /// Of queries and keys, by the rows of one batch element: `tokens`, then `predicted * block_tokens`.
    pub rotation: Option<Rotation<'a>>,
    /// Dropout of A.
    pub dropout: Dropout,
}

impl Plan<'_> {
    /// Rows of all sequences and prediction blocks.
    pub fn rows(&self) -> usize {
        self.batch * self.rows_per_element()
    }

    /// Channels of a row.
    pub fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Rows of one batch element.
    pub(super) fn rows_per_element(&self) -> usize {
        self.tokens + self.predicted * self.block_tokens
    }

    /// The parts of a batch element: all chunks of the sequence in their order, then the prediction blocks.
    pub(super) fn parts(&self, batch: usize) -> impl Iterator<Item = Part> {
        let Self { tokens, chunk, .. } = *self;
        let chunks = (0..tokens).step_by(chunk).enumerate();
        let chunks = chunks.map(move |(i, first)| Part {
            row: batch * tokens + first,
            place: first,
            len: chunk.min(tokens - first),
            seen: i,
            is_chunk: true,
        });
        let (len, count, first_predicted) =
            (self.block_tokens, self.predicted, self.first_predicted);
        let predictions = self.batch * tokens + batch * count * len;
        let predictions = (0..count).map(move |j| Part {
            row: predictions + j * len,
            place: tokens + j * len,
            len,
            seen: first_predicted + j,
            is_chunk: false,
        });
        chunks.chain(predictions)
    }
}

/// Rows that see the first chunks of their sequence and, causally, each other.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The first row, among all.
    pub row: usize,
    /// The first row, among those of its batch element.
    pub place: usize,
    pub len: usize,
    /// How many chunks it sees.
    pub seen: usize,
    /// Whether it is a chunk, which later parts see.
    pub is_chunk: bool,
}
