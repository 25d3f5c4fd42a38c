//! Linear layers over the last axis, fused with the activation before them.

use burn::nn::Linear;
use burn::tensor::Tensor;
use rem_kernels::{Activation, Precision};

/// `linear(activation(x))` as one matrix product: `[.., inputs]` -> `[.., outputs]`.
pub(crate) fn linear<const D: usize>(
    linear: &Linear,
    activation: Activation,
    x: Tensor<D>,
    precision: Precision,
) -> Tensor<D> {
    let mut shape = x.dims();
    let rows: usize = shape[..D - 1].iter().product();
    let x = x.reshape([rows, shape[D - 1]]);
    let y = rem_kernels::linear(x, linear.weight.val(), bias(linear), activation, precision);
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}

/// The bias of a layer that was created with one: `[outputs]`.
pub(crate) fn bias(linear: &Linear) -> Tensor<1> {
    linear.bias.as_ref().expect("a layer with a bias").val()
}
