//! Convolutions over images with their channels last, with what stands before them.

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use rem_kernels::{Activation, ConvKind, Precision};

/// The parameters of a 3x3 convolution.
pub fn conv3(from: usize, to: usize, device: &Device) -> Conv2d {
    // Where it pads is told at each use; said here too, so that the module tells no lie.
    Conv2dConfig::new([from, to], [3, 3])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .init(device)
}

/// The parameters of a 1x1 convolution.
pub fn conv1(from: usize, to: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new([from, to], [1, 1]).init(device)
}

/// `conv(activation(x))`: `[n, h, w, c]` -> the same with other sizes.
pub fn conv(
    conv: &Conv2d,
    kind: ConvKind,
    activation: Activation,
    x: Tensor<4>,
    precision: Precision,
) -> Tensor<4> {
    let weight = conv.weight.val();
    rem_kernels::conv(x, weight, bias(conv), activation, kind, precision)
}

/// `conv(silu(norm(x)))`.
pub fn norm_conv(
    norm: &GroupNorm,
    conv: &Conv2d,
    kind: ConvKind,
    x: Tensor<4>,
    precision: Precision,
) -> Tensor<4> {
    let (gamma, beta) = scale_and_shift(norm);
    let norm = rem_kernels::GroupNorm {
        groups: norm.num_groups,
        gamma,
        beta,
    };
    rem_kernels::norm_conv(x, norm, conv.weight.val(), bias(conv), kind, precision)
}

/// What a norm multiplies by, and what it adds.
fn scale_and_shift(norm: &GroupNorm) -> (Tensor<1>, Tensor<1>) {
    let of = |p: &Option<burn::module::Param<Tensor<1>>>| {
        let p = p.as_ref().expect("made with scale and shift");
        p.val()
    };
    (of(&norm.gamma), of(&norm.beta))
}

fn bias(conv: &Conv2d) -> Tensor<1> {
    conv.bias.as_ref().expect("made with a bias").val()
}
