//! Kernels on slices. Nothing here knows Burn.

pub mod adamw;
pub mod attention;
pub mod conv;
pub mod cross_entropy;
pub mod dropout;
pub mod group_norm;
pub mod layer;
pub mod level;
pub mod lstm;
pub mod math;
pub mod nearest;
pub mod norm;
pub mod packed;
pub mod peak;
pub mod perceptual;
pub mod pool;
pub mod product;
pub mod resize;
pub mod retention;
pub mod sampling;
pub mod scratch;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod transpose;
