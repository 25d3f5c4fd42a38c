//! Convolutions and their neighbours on images `[n, h, w, c]`.

use burn::backend::TensorMetadata;

use super::{FlexTensor, Operation, mode, shaped, tensor, values};
use crate::cpu::conv::{self, ConvKind, Shape, Stage};
use crate::cpu::layer::Mode;
use crate::cpu::level::Level;
use crate::cpu::math::Activation;
use crate::cpu::pool::{self, Images};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::Precision;
use crate::cpu::{group_norm, norm, perceptual};

fn shape_of(x: &FlexTensor, bias: &FlexTensor) -> Shape {
    let shape = x.shape();
    Shape {
        images: shape[0],
        height: shape[1],
        width: shape[2],
        c_in: shape[3],
        c_out: bias.shape()[0],
    }
}

fn forward(
    precision: Precision,
    kind: ConvKind,
    stage: Stage,
    [x, weight, bias]: [&FlexTensor; 3],
) -> FlexTensor {
    let Mode { level, precision } = mode(precision);
    let shape = shape_of(x, bias);
    let mut out = unfilled(shape.outputs(kind));
    let bias = Some(values(bias));
    conv::forward(
        level,
        precision,
        shape,
        kind,
        stage,
        values(x),
        values(weight),
        bias,
        &mut out,
    );
    let (height, width) = shape.output(kind);
    tensor(out, [shape.images, height, width, shape.c_out])
}

/// The gradients of staged input, weight and bias.
fn backward(
    precision: Precision,
    kind: ConvKind,
    stage: Stage,
    [x, weight, bias]: [&FlexTensor; 3],
    d_out: &[f32],
    wanted: [bool; 3],
) -> [Option<Vec<f32>>; 3] {
    let Mode { level, precision } = mode(precision);
    let shape = shape_of(x, bias);
    let d_staged = wanted[0].then(|| {
        let mut d = unfilled(shape.inputs());
        conv::input_gradient(level, precision, shape, kind, values(weight), d_out, &mut d);
        d
    });
    let d_weight = wanted[1].then(|| {
        let mut d = unfilled(shape.weights(kind));
        conv::weight_gradient(
            level,
            precision,
            shape,
            kind,
            stage,
            values(x),
            d_out,
            &mut d,
        );
        d
    });
    let d_bias = wanted[2].then(|| norm::column_sums(level, d_out, shape.c_out));
    [d_staged, d_weight, d_bias]
}

/// A convolution of an activated image.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub activation: Activation,
    pub kind: ConvKind,
    pub precision: Precision,
}

impl Conv {
    fn stage(&self) -> Stage<'static> {
        match self.activation {
            Activation::None => Stage::Plain,
            activation => Stage::Activation(activation),
        }
    }
}

impl Operation<3> for Conv {
    type Kept = ();

    fn forward(&self, [x, weight, bias]: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        (
            forward(self.precision, self.kind, self.stage(), [x, weight, bias]),
            (),
        )
    }

    fn backward(
        &self,
        [x, weight, bias]: &[FlexTensor; 3],
        _kept: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let inputs = [x, weight, bias];
        let [mut d_x, d_weight, d_bias] = backward(
            self.precision,
            self.kind,
            self.stage(),
            inputs,
            values(&d_out),
            wanted,
        );
        if let (Some(d_x), true) = (&mut d_x, self.activation != Activation::None) {
            conv::activation_back(Level::of_this_machine(), self.activation, values(x), d_x);
        }
        [
            shaped(d_x, x),
            shaped(d_weight, weight),
            shaped(d_bias, bias),
        ]
    }
}

/// A convolution of SiLU of a group norm.
#[derive(Clone, Debug)]
pub(crate) struct NormConv {
    pub groups: usize,
    pub kind: ConvKind,
    pub precision: Precision,
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

impl Operation<5> for NormConv {
    /// Mean and 1 / deviation of each image's groups.
    type Kept = Vec<(f32, f32)>;

    fn forward(
        &self,
        [x, weight, bias, gamma, beta]: &[FlexTensor; 5],
    ) -> (FlexTensor, Self::Kept) {
        let s = shape_of(x, bias);
        let pixels = s.height * s.width;
        let level = Level::of_this_machine();
        let kept = group_norm::statistics(level, values(x), s.images, pixels, s.c_in, self.groups);
        let stage = self.stage(gamma, beta, &kept);
        (
            forward(self.precision, self.kind, stage, [x, weight, bias]),
            kept,
        )
    }

    fn backward(
        &self,
        [x, weight, bias, gamma, beta]: &[FlexTensor; 5],
        kept: Self::Kept,
        d_out: FlexTensor,
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let stage = self.stage(gamma, beta, &kept);
        let needs_input = wanted[0] || wanted[3] || wanted[4];
        let [d_x, d_weight, d_bias] = backward(
            self.precision,
            self.kind,
            stage,
            [x, weight, bias],
            values(&d_out),
            [needs_input, wanted[1], wanted[2]],
        );
        let normed = d_x.map(|mut d_x| {
            let channels = gamma.shape()[0];
            let (mut d_gamma, mut d_beta) = (unfilled(channels), unfilled(channels));
            group_norm::group_norm_silu_back(
                Level::of_this_machine(),
                self.groups,
                values(x),
                values(gamma),
                values(beta),
                &kept,
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

/// The largest of each 2x2 window of ReLU(x).
#[derive(Clone, Debug)]
pub(crate) struct MaxPoolRelu;

fn images(x: &FlexTensor) -> Images {
    let shape = x.shape();
    Images {
        count: shape[0],
        height: shape[1],
        width: shape[2],
        channels: shape[3],
    }
}

impl Operation<1> for MaxPoolRelu {
    type Kept = ();

    fn forward(&self, [x]: &[FlexTensor; 1]) -> (FlexTensor, ()) {
        let images = images(x);
        let half = [
            images.count,
            images.height / 2,
            images.width / 2,
            images.channels,
        ];
        let mut out = unfilled(half.iter().product());
        pool::max_pool_relu(Level::of_this_machine(), images, values(x), &mut out);
        (tensor(out, half), ())
    }

    fn backward(
        &self,
        [x]: &[FlexTensor; 1],
        _kept: (),
        d_out: FlexTensor,
        _wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let mut d_x = unfilled(values(x).len());
        let level = Level::of_this_machine();
        pool::max_pool_relu_back(level, images(x), values(x), values(&d_out), &mut d_x);
        [shaped(Some(d_x), x)]
    }
}

/// The distance of two images' features, differentiated by the second's alone.
#[derive(Clone, Debug)]
pub(crate) struct FeatureDistance;

impl Operation<3> for FeatureDistance {
    type Kept = ();

    fn forward(&self, [a, b, head]: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        let count = a.shape()[0];
        let mut out = vec![0.0; count];
        perceptual::forward(
            Level::of_this_machine(),
            values(a),
            values(b),
            values(head),
            &mut out,
        );
        (tensor(out, [count]), ())
    }

    fn backward(
        &self,
        [a, b, head]: &[FlexTensor; 3],
        _kept: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        assert!(
            !wanted[0] && !wanted[2],
            "only the second image's features have a gradient"
        );
        let mut d_b = vec![0.0; values(b).len()];
        let level = Level::of_this_machine();
        perceptual::backward(
            level,
            values(a),
            values(b),
            values(head),
            values(&d_out),
            &mut d_b,
        );
        [None, shaped(Some(d_b), b), None]
    }
}
