//! Convolutions of SiLU of a group norm.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::conv::{self, shape_of};
use crate::backend::flex::{FlexTensor, impl_for_flex, is_f32, shaped, values};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::conv::{ConvKind, Stage};
use crate::cpu::group_norm;
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::tile::Precision;

/// A group norm's parameters.
pub struct GroupNorm {
    /// Groups of channels that are normalized together.
    pub groups: usize,
    /// Scale, `[c_in]`.
    pub gamma: Tensor<1>,
    /// Shift, `[c_in]`.
    pub beta: Tensor<1>,
}

/// `conv(silu(norm(x))) + bias`; shapes as in [`conv`](super::conv()).
pub fn norm_conv(
    x: Tensor<4>,
    norm: GroupNorm,
    weight: Tensor<4>,
    bias: Tensor<1>,
    kind: ConvKind,
    precision: Precision,
) -> Tensor<4> {
    let groups = norm.groups;
    let parameters = NormConvParameters {
        gamma: norm.gamma.into_dispatch(),
        beta: norm.beta.into_dispatch(),
        weight: weight.into_dispatch(),
        bias: bias.into_dispatch(),
    };
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::norm_conv(x, parameters, groups, kind, precision))
}

/// Parameters of a group norm and of the convolution after it.
#[derive(ExtensionType)]
pub struct NormConvParameters<B: Backend> {
    /// Scale of the norm, `[c_in]`.
    pub gamma: FloatTensor<B>,
    /// Shift of the norm, `[c_in]`.
    pub beta: FloatTensor<B>,
    /// `[c_out, c_in, side, side]`
    pub weight: FloatTensor<B>,
    /// `[c_out]`
    pub bias: FloatTensor<B>,
}

/// [`norm_conv`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait NormConvOps: Backend {
    /// `conv(silu(norm(x))) + bias`
    fn norm_conv(
        x: FloatTensor<Self>,
        #[extension_type] parameters: NormConvParameters<Self>,
        groups: usize,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, groups, kind, precision)
    }
}

impl_for_flex!(NormConvOps {
    fn norm_conv(
        x: FloatTensor<Self>,
        p: NormConvParameters<Self>,
        groups: usize,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>(x, p, groups, kind, precision);
        }
        let inputs = [x, p.weight, p.bias, p.gamma, p.beta];
        Self::run(NormConv { groups, kind, precision }, inputs)
    }
});

pub(super) fn reference<B: Backend>(
    x: FloatTensor<B>,
    p: NormConvParameters<B>,
    groups: usize,
    kind: ConvKind,
    precision: Precision,
) -> FloatTensor<B> {
    let x = norm_silu::<B>(x, p.gamma, p.beta, groups);
    conv::reference::<B>(x, p.weight, p.bias, kind, precision)
}

fn norm_silu<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    groups: usize,
) -> Primitive<B> {
    let x = Primitive::<B>(x);
    let shape = x.dims();
    let (n, h, w, c) = (shape[0], shape[1], shape[2], shape[3]);
    // [n, groups, pixels * channels of a group]
    let grouped = x
        .reshape([n, h * w, groups, c / groups])
        .permute(&[0, 2, 1, 3]);
    let normed = grouped.reshape([n, groups, h * w * c / groups]).normalize();
    let normed = normed
        .reshape([n, groups, h * w, c / groups])
        .permute(&[0, 2, 1, 3]);
    let of = |t| Primitive::<B>(t).reshape([1, 1, 1, c]);
    (normed.reshape([n, h, w, c]) * of(gamma) + of(beta)).activate(Activation::Silu)
}

#[derive(Clone, Debug)]
struct NormConv {
    groups: usize,
    kind: ConvKind,
    precision: Precision,
}

impl NormConv {
    fn stage<'a>(
        &self,
        gamma: &'a FlexTensor,
        beta: &'a FlexTensor,
        mean_and_scale: &'a [(f32, f32)],
    ) -> Stage<'a> {
        Stage::GroupNormSilu {
            groups: self.groups,
            gamma: values(gamma),
            beta: values(beta),
            mean_and_scale,
        }
    }
}

impl Operation<Flex, 5> for NormConv {
    /// Mean and 1 / standard deviation of each image's groups.
    type Saved = Vec<(f32, f32)>;

    fn forward(
        &self,
        [x, weight, bias, gamma, beta]: &[FlexTensor; 5],
    ) -> (FlexTensor, Self::Saved) {
        let s = shape_of(x, bias);
        let pixels = s.height * s.width;
        let isa = Isa::selected();
        let saved = group_norm::statistics(isa, values(x), s.images, pixels, s.c_in, self.groups);
        let stage = self.stage(gamma, beta, &saved);
        let out = conv::forward(self.precision, self.kind, stage, [x, weight, bias]);
        (out, saved)
    }

    fn backward(
        &self,
        [x, weight, bias, gamma, beta]: &[FlexTensor; 5],
        saved: Self::Saved,
        d_out: FlexTensor,
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let stage = self.stage(gamma, beta, &saved);
        let needs_input = wanted[0] || wanted[3] || wanted[4];
        let [d_x, d_weight, d_bias] = conv::backward(
            self.precision,
            self.kind,
            stage,
            [x, weight, bias],
            values(&d_out),
            [needs_input, wanted[1], wanted[2]],
        );
        let normed = d_x.map(|mut d_x| {
            let channels = gamma.shape()[0];
            let (mut d_gamma, mut d_beta) = (uninit_vec(channels), uninit_vec(channels));
            group_norm::group_norm_silu_backward(
                Isa::selected(),
                self.groups,
                values(x),
                values(gamma),
                values(beta),
                &saved,
                &mut d_x,
                &mut d_gamma,
                &mut d_beta,
            );
            (d_x, d_gamma, d_beta)
        });
        let (d_x, d_gamma, d_beta) = match normed {
            Some((d_x, d_gamma, d_beta)) => (Some(d_x), Some(d_gamma), Some(d_beta)),
            None => (None, None, None),
        };
        [
            shaped(d_x, x),
            shaped(d_weight, weight),
            shaped(d_bias, bias),
            shaped(d_gamma, gamma),
            shaped(d_beta, beta),
        ]
    }
}
