//! Copies of tensors on the host.

use burn::tensor::{Int, Tensor};

/// The values of a float tensor.
pub fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().expect("reading from the device")
}

/// The values of an integer tensor.
pub fn ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i64> {
    tensor.try_into_vec_as().expect("reading from the device")
}
