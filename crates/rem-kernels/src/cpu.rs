//! Kernels on slices. Nothing here knows Burn.

pub mod conv;
pub mod group_norm;
pub mod layer;
pub mod level;
pub mod transpose;
pub mod retention;
pub mod norm;
pub mod math;
pub mod dropout;
pub mod pool;
pub mod product;
pub mod scratch;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod adamw;
pub mod cross_entropy;
pub mod lstm;
pub mod nearest;
pub mod peak;
pub mod perceptual;
pub mod sampling;
