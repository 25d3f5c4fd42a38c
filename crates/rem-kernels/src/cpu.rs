//! Kernels on slices for the CPU. Nothing in this module depends on Burn.
//!
//! Every kernel takes the [`Isa`](isa::Isa) it runs on. [`tile`] holds the register tile, the only place where
//! matrices are multiplied; [`matmul`] and [`conv`] are built on it. Sums are formed in an order that depends on
//! sizes only, so that results do not depend on the number of threads.

pub mod adamw;
pub mod attention;
pub mod conv;
pub mod cross_entropy;
pub mod dropout;
pub mod feature_distance;
pub mod group_norm;
pub mod isa;
pub mod lstm;
pub mod math;
pub mod matmul;
pub mod nearest;
pub mod norm;
pub mod pack;
pub mod pool;
pub mod retention;
pub mod rotation;
pub mod sample;
pub mod scratch;
pub mod sublayer;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod transpose;
