//! Convolutions and their neighbours in ordinary operations, on images `[n, h, w, c]`.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::FloatDType;
use burn::tensor::ops::ConvOptions;

use crate::cpu::conv::ConvKind;
use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;
use crate::plain::Plain;

/// Channels to the front, as Burn's convolutions have them.
const TO_FRONT: [usize; 4] = [0, 3, 1, 2];
const TO_BACK: [usize; 4] = [0, 2, 3, 1];

pub(crate) fn conv<B: Backend>(
    x: Plain<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    kind: ConvKind,
    precision: Precision,
) -> FloatTensor<B> {
    let dtype = x.dtype();
    let x = match kind {
        ConvKind::Down => padded_below(padded_below(x, 1), 2),
        ConvKind::Up => twice_as_large(x),
        ConvKind::Same | ConvKind::Pointwise => x,
    };
    let (stride, padding) = match kind {
        ConvKind::Same | ConvKind::Up => (1, 1),
        ConvKind::Down => (2, 0),
        ConvKind::Pointwise => (1, 0),
    };
    let options = ConvOptions::new([stride; 2], [padding; 2], [1; 2], 1);
    let x = x.permute(&TO_FRONT).0;
    let y = match precision {
        Precision::Mixed if dtype == FloatDType::F32 => {
            let round = |t| B::float_cast(t, FloatDType::BF16);
            let y = B::conv2d(round(x), round(weight), None, options);
            let outputs = bias.shape()[0];
            let bias = Plain::<B>(bias).reshape([1, outputs, 1, 1]);
            (Plain::<B>(B::float_cast(y, dtype)) + bias).0
        }
        _ => B::conv2d(x, weight, Some(bias), options),
    };
    Plain::<B>(y).permute(&TO_BACK).0
}

/// With a row of zeros after the last one of an axis.
fn padded_below<B: Backend>(x: Plain<B>, axis: usize) -> Plain<B> {
    let zeros = x.clone().narrow(axis, 0, 1) * 0.0;
    Plain::cat(vec![x, zeros], axis)
}

/// Every pixel doubled along both axes.
fn twice_as_large<B: Backend>(x: Plain<B>) -> Plain<B> {
    let shape = x.dims();
    let (n, h, w, c) = (shape[0], shape[1], shape[2], shape[3]);
    let cells = x.reshape([n, h, 1, w, 1, c]).expand([n, h, 2, w, 2, c]);
    cells.reshape([n, 2 * h, 2 * w, c])
}

/// SiLU of a group norm.
pub(crate) fn norm_silu<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    groups: usize,
) -> Plain<B> {
    let x = Plain::<B>(x);
    let shape = x.dims();
    let (n, h, w, c) = (shape[0], shape[1], shape[2], shape[3]);
    // [n, groups, everything of a group]
    let grouped = x
        .reshape([n, h * w, groups, c / groups])
        .permute(&[0, 2, 1, 3]);
    let normed = grouped
        .reshape([n, groups, h * w * c / groups])
        .unit_variance();
    let normed = normed
        .reshape([n, groups, h * w, c / groups])
        .permute(&[0, 2, 1, 3]);
    let of = |t| Plain::<B>(t).reshape([1, 1, 1, c]);
    (normed.reshape([n, h, w, c]) * of(gamma) + of(beta)).activate(Activation::Silu)
}

pub(crate) fn max_pool_relu<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let x = Plain::<B>(x)
        .activate(Activation::Relu)
        .permute(&TO_FRONT)
        .0;
    let pooled = B::max_pool2d(x, [2, 2], [2, 2], [0, 0], [1, 1], false);
    Plain::<B>(pooled).permute(&TO_BACK).0
}

pub(crate) fn feature_distance<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    head: FloatTensor<B>,
) -> FloatTensor<B> {
    let shape = a.shape();
    let (n, pixels, c) = (shape[0], shape[1] * shape[2], shape[3]);
    let unit = |x: FloatTensor<B>| {
        let x = Plain::<B>(x)
            .activate(Activation::Relu)
            .reshape([n, pixels, c]);
        // The floor leaves every value as it is and keeps the square root's gradient finite at zero.
        let squares = B::float_clamp_min(x.clone().square().sum(2).0, 1e-20.into());
        x / (Plain::<B>(squares).sqrt() + 1e-10)
    };
    let difference = (unit(a) - unit(b)).square() * Plain::<B>(head).reshape([1, 1, c]);
    difference.sum(2).mean(1).reshape([n]).0
}
