//! Linear layers over the last axis of tensors of any rank.

use burn::nn::Linear;
use burn::tensor::Tensor;

/// As `linear.forward(x)`, in one matrix product over all rows. A batched product would multiply batch by
/// batch and, in its backward pass, write and then add up a weight gradient for each.
pub fn by_rows<const D: usize>(linear: &Linear, x: Tensor<D>) -> Tensor<D> {
    let mut shape = x.dims();
    let rows: usize = shape[..D - 1].iter().product();
    let y = linear.forward(x.reshape([rows, shape[D - 1]]));
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}
