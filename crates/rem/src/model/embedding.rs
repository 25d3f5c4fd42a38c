//! Embedding tables.

use burn::module::Param;
use burn::tensor::{Device, Distribution, Tensor};

/// A learned table with standard normal initialization, `[rows, width]`.
pub(crate) fn embedding(rows: usize, width: usize, device: &Device) -> Param<Tensor<2>> {
    let values = Tensor::random([rows, width], Distribution::Normal(0.0, 1.0), device);
    Param::from_tensor(values)
}
