//! The operations, one file each: types, the public function on tensors, the extension trait that dispatches to a
//! backend, the reference body, and the CPU body as an [`Operation`](crate::backend::Operation).

mod adamw;
mod attention;
mod conv;
mod cross_entropy;
#[cfg(feature = "cube")]
mod cube;
mod dropout;
mod feature_distance;
mod feed_forward;
mod linear;
mod lstm;
mod max_pool;
mod nearest;
mod norm_conv;
mod retention;
mod sample;
#[cfg(test)]
mod tests;

pub use adamw::{AdamWInput, AdamWOutput, adamw, sums_of_squares};
pub use attention::{
    AttentionParameters, AttentionSizes, CachedSizes, Positions, PredictionBlocks, attention,
    attention_cached, attention_predict, cache_capacity,
};
pub use conv::conv;
pub use cross_entropy::cross_entropy;
pub use dropout::dropout;
pub use feature_distance::feature_distance;
pub use feed_forward::{FeedForwardParameters, Hidden, feed_forward};
pub use linear::linear;
pub use lstm::{lstm_cell, lstm_sequence};
pub use max_pool::max_pool_relu;
pub use nearest::nearest;
pub use norm_conv::{GroupNorm, norm_conv};
pub use retention::{
    RetentionParameters, RetentionSizes, RetentionTables, retention, retention_predict,
    retention_update_state,
};
pub use sample::sample;

#[cfg(feature = "cube")]
use {
    attention::AttentionOps, conv::ConvOps, cross_entropy::CrossEntropyOps, dropout::DropoutOps,
    feature_distance::FeatureDistanceOps, feed_forward::FeedForwardOps, linear::LinearOps,
    lstm::LstmOps, max_pool::MaxPoolOps, nearest::NearestOps, norm_conv::NormConvOps,
    retention::RetentionOps, sample::SampleOps,
};

use crate::cpu::dropout::Dropout;
use crate::cpu::tile::Precision;

/// How a sublayer (retention, attention or feed-forward, from its norm to its residual) is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SublayerMode {
    /// Dropout inside the sublayer and of its output.
    pub dropout: Dropout,
    /// Of the matrix products.
    pub precision: Precision,
}

/// `first`, then `rest`.
fn prepend<T, const N: usize, const M: usize>(first: T, rest: [T; N]) -> [T; M] {
    let mut all = std::iter::once(first).chain(rest);
    std::array::from_fn(|_| all.next().expect("M is N + 1"))
}
