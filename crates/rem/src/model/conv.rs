//! Convolutions over channels-last images, fused with the norm or activation before them.

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

/// Parameters of a 3x3 convolution.
pub(crate) fn conv3(from: usize, to: usize, device: &Device) -> Conv2d {
    // The kernels take the padding from `ConvKind`. It is set here too, so that the module describes itself correctly.
    Conv2dConfig::new([from, to], [3, 3])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .init(device)
}

/// Parameters of a 1x1 convolution.
pub(crate) fn conv1(from: usize, to: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new([from, to], [1, 1]).init(device)
}

/// `conv(activation(x))`: `[n, h, w, c]` -> `[n, h', w', c']`.
pub(crate) fn conv(
    conv: &Conv2d,
    kind: ConvKind,
    activation: Activation,
    x: Tensor<4>,
    precision: Precision,
) -> Tensor<4> {
    let weight = conv.weight.val();
    rem_kernels::conv(x, weight, bias(conv), activation, kind, precision)
}

/// `conv(silu(norm(x)))`: `[n, h, w, c]` -> `[n, h', w', c']`.
pub(crate) fn norm_conv(
    norm: &GroupNorm,
    conv: &Conv2d,
    kind: ConvKind,
    x: Tensor<4>,
    precision: Precision,
) -> Tensor<4> {
    let (gamma, beta) = norm_parameters(norm);
    let norm = rem_kernels::GroupNorm {
        groups: norm.num_groups,
        gamma,
        beta,
    };
    rem_kernels::norm_conv(x, norm, conv.weight.val(), bias(conv), kind, precision)
}

/// Scale and shift of a group norm, `[channels]` each.
fn norm_parameters(norm: &GroupNorm) -> (Tensor<1>, Tensor<1>) {
    let of = |p: &Option<burn::module::Param<Tensor<1>>>| {
        let p = p.as_ref().expect("an affine norm");
        p.val()
    };
    (of(&norm.gamma), of(&norm.beta))
}

fn bias(conv: &Conv2d) -> Tensor<1> {
    conv.bias.as_ref().expect("a convolution with a bias").val()
}
