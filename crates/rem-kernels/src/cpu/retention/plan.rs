//! The sizes of a retention and the order of its rows.

use crate::cpu::rotation::Rotation;

/// The sizes and constants of a retention. Rows are ordered as `batch` trajectories of `tokens` rows, then for each
/// batch element `predicted` blocks of `block_tokens` rows, or one block for all of them if `shared`.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Batch size.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
    /// Channels of a head.
    pub head_dim: usize,
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
    /// Whether all prediction blocks have the same rows, which are then given, and projected, once. Without gradients.
    pub shared: bool,
    /// Whether only the last row of each chunk has a query and an output. Prediction blocks have one for every row.
    pub last_only: bool,
    /// η^i of each head for i from 0 to `powers_per_head - 1`, at least the longest part's length.
    pub powers: &'a [f32],
    /// Exponents per head in `powers`.
    pub powers_per_head: usize,
    /// Of the rows of one batch element: `tokens`, then `predicted * block_tokens`.
    pub rotation: Rotation<'a>,
}

impl Plan<'_> {
    /// Chunks of a trajectory.
    pub fn chunks(&self) -> usize {
        self.tokens / self.chunk.max(1)
    }
    /// Rows that have keys and values.
    pub fn rows(&self) -> usize {
        self.batch * self.tokens + self.predicted_rows()
    }
    /// Rows of the prediction blocks, as given.
    fn predicted_rows(&self) -> usize {
        match self.shared {
            true => self.block_tokens,
            false => self.batch * self.predicted * self.block_tokens,
        }
    }
    /// Rows that have queries.
    pub fn queries(&self) -> usize {
        self.trajectory_outputs() + self.predicted_rows()
    }
    /// The query of an output.
    pub fn query_of(&self, output: usize) -> usize {
        match output.checked_sub(self.trajectory_outputs()) {
            Some(predicted) if self.shared => {
                self.trajectory_outputs() + predicted % self.block_tokens
            }
            _ => output,
        }
    }
    /// Outputs: one for each query, or for each block's copy of it if they are shared.
    pub fn outputs(&self) -> usize {
        self.trajectory_outputs() + self.batch * self.predicted * self.block_tokens
    }
    fn trajectory_outputs(&self) -> usize {
        self.batch
            * if self.last_only {
                self.chunks()
            } else {
                self.tokens
            }
    }
    /// The row that an output belongs to.
    pub fn row_of(&self, output: usize) -> usize {
        match self.query_of(output).checked_sub(self.trajectory_outputs()) {
            Some(predicted) => self.batch * self.tokens + predicted,
            None if self.last_only => (output + 1) * self.chunk - 1,
            None => output,
        }
    }
    /// The output of a row, if it has one.
    pub fn output_of(&self, row: usize) -> Option<usize> {
        match row.checked_sub(self.batch * self.tokens) {
            Some(predicted) => Some(self.trajectory_outputs() + predicted),
            None if self.last_only => (row + 1)
                .is_multiple_of(self.chunk)
                .then(|| (row + 1) / self.chunk - 1),
            None => Some(row),
        }
    }
    /// Channels of a row.
    pub fn width(&self) -> usize {
        self.heads * self.head_dim
    }
    /// Elements of a state of one batch element and head.
    pub(super) fn state_len(&self) -> usize {
        self.head_dim * self.head_dim
    }
    /// States after each chunk of everything: `[batch, heads, chunks, head_dim, head_dim]`.
    pub fn states_len(&self) -> usize {
        self.batch * self.heads * self.chunks() * self.state_len()
    }

    pub(super) fn trajectory_part(&self, batch: usize, chunk: usize) -> Part {
        let start = chunk * self.chunk;
        let row = batch * self.tokens + start;
        let first_query = if self.last_only { self.chunk - 1 } else { 0 };
        let output = self.output_of(row + first_query);
        let output = output.expect("a query has an output");
        Part {
            row,
            query: output,
            output,
            rotation: start,
            len: self.chunk,
            first_query,
        }
    }

    pub(super) fn predicted_part(&self, batch: usize, block: usize) -> Part {
        let predicted = (batch * self.predicted + block) * self.block_tokens;
        let output = self.trajectory_outputs() + predicted;
        Part {
            row: self.row_of(output),
            query: self.query_of(output),
            output,
            rotation: self.tokens + block * self.block_tokens,
            len: self.block_tokens,
            first_query: 0,
        }
    }
}

/// A chunk or prediction block: where it begins among all rows, the queries, the outputs, and in the rotation tables.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub row: usize,
    pub query: usize,
    pub output: usize,
    pub rotation: usize,
    pub len: usize,
    /// The first row that has a query; all after it have one too.
    pub first_query: usize,
}

impl Part {
    pub fn queries(self) -> usize {
        self.len - self.first_query
    }
}
