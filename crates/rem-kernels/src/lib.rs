//! The hot operations of REM as an extension of Burn's backends.
//!
//! Each operation is a function on tensors that runs on every device and supports autodiff. On the CPU (Burn's Flex
//! backend) f32 tensors go to SIMD kernels with a backward pass of their own; other devices and types run a reference
//! body of ordinary tensor operations. Tests compare outputs and gradients of the two.
//!
//! | operation | functions |
//! | --- | --- |
//! | retention sublayer with POP | [`retention`], [`retention_update_state`], [`retention_predict`] |
//! | attention sublayer with POP | [`attention`], [`attention_cached`], [`attention_predict`] |
//! | feed-forward sublayer | [`feed_forward`] |
//! | dropout of embeddings | [`dropout()`] |
//! | linear layer | [`linear`] |
//! | convolution | [`conv()`], [`norm_conv`], [`max_pool_relu`] |
//! | LSTM | [`lstm_cell`], [`lstm_sequence`] |
//! | losses | [`cross_entropy()`], [`feature_distance()`] |
//! | discrete choices | [`sample()`], [`nearest()`] |
//! | optimizer | [`adamw()`], [`sums_of_squares`] |
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rem_kernels::{Activation, Precision, linear};
//!
//! let device = Device::flex();
//! let x = Tensor::<2>::from_floats([[1.0, -2.0], [3.0, 0.5]], &device);
//! let weight = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 2.0]], &device);
//! let bias = Tensor::<1>::from_floats([0.5, -0.5], &device);
//! let y = linear(x, weight, bias, Activation::Relu, Precision::F32);
//! let y: Vec<f32> = y.try_into_vec_as()?;
//! assert_eq!(y, [1.5, -0.5, 3.5, 0.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout
//!
//! `ops/<operation>.rs` holds an operation's types, its public function, the extension trait that dispatches to a
//! backend, the reference body and the CPU body. `backend` defines what a body with its own backward pass is and how
//! autodiff records it. [`cpu`] holds the kernels on slices, and all `unsafe` code.

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod backend;
pub mod cpu;
mod ops;

pub use burn::backend::Dispatch;
pub use cpu::adamw::AdamWStep;
pub use cpu::conv::ConvKind;
pub use cpu::dropout::Dropout;
pub use cpu::isa::Isa;
pub use cpu::math::Activation;
pub use cpu::tile::Precision;
pub use ops::{
    AdamWInput, AdamWOutput, AttentionParameters, AttentionSizes, CachedSizes,
    FeedForwardParameters, GroupNorm, Hidden, Positions, PredictionBlocks, RetentionParameters,
    RetentionSizes, RetentionTables, SublayerMode, adamw, attention, attention_cached,
    attention_predict, cache_capacity, conv, cross_entropy, dropout, feature_distance,
    feed_forward, linear, lstm_cell, lstm_sequence, max_pool_relu, nearest, norm_conv, retention,
    retention_predict, retention_update_state, sample, sums_of_squares,
};
