//! Convolutions of images `[n, h, w, c]`.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;

use crate::backend::flex::{FlexTensor, impl_for_flex, is_f32, mode, shaped, tensor, values};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::conv::{self, ConvKind, Shape, Stage};
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::norm;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::sublayer::Mode;
use crate::cpu::tile::Precision;

/// `conv(activation(x)) + bias`
///
/// # Shapes
/// - `x`: `[n, h, w, c_in]`, `weight`: `[c_out, c_in, side, side]`, `bias`: `[c_out]` -> `[n, h', w', c_out]`
pub fn conv(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Tensor<1>,
    activation: Activation,
    kind: ConvKind,
    precision: Precision,
) -> Tensor<4> {
    Tensor::from_dispatch(Dispatch::conv(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        activation,
        kind,
        precision,
    ))
}

/// [`conv`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait ConvOps: Backend {
    /// `conv(activation(x)) + bias`
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        reference::<Self>(
            Primitive(x).activate(activation),
            weight,
            bias,
            kind,
            precision,
        )
    }
}

impl_for_flex!(ConvOps {
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            let x = Primitive(x).activate(activation);
            return reference::<Self>(x, weight, bias, kind, precision);
        }
        Self::run(Conv { activation, kind, precision }, [x, weight, bias])
    }
});

/// Channels first, as Burn's image operations expect them.
pub(super) const TO_FRONT: [usize; 4] = [0, 3, 1, 2];
/// Channels last.
pub(super) const TO_BACK: [usize; 4] = [0, 2, 3, 1];

/// The convolution of an image that is already activated.
pub(super) fn reference<B: Backend>(
    x: Primitive<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    kind: ConvKind,
    precision: Precision,
) -> FloatTensor<B> {
    let rounds = x.rounds_factors(precision);
    let x = match kind {
        ConvKind::Down => pad_after(pad_after(x, 1), 2),
        ConvKind::Up => upsample(x),
        ConvKind::Same | ConvKind::Pointwise => x,
    };
    let (stride, padding) = match kind {
        ConvKind::Same | ConvKind::Up => (1, 1),
        ConvKind::Down => (2, 0),
        ConvKind::Pointwise => (1, 0),
    };
    let options = ConvOptions::new([stride; 2], [padding; 2], [1; 2], 1);
    let x = x.permute(&TO_FRONT);
    let y = if rounds {
        let (x, weight) = (x.rounded(), Primitive::<B>(weight).rounded());
        let y = Primitive::<B>(B::conv2d(x.0, weight.0, None, options));
        let outputs = bias.shape()[0];
        // The gradient of the bias is a sum of gradients that are not rounded.
        let bias = Primitive::<B>(bias).reshape([1, outputs, 1, 1]);
        (y.with_rounded_gradient() + bias).0
    } else {
        B::conv2d(x.0, weight, Some(bias), options)
    };
    Primitive::<B>(y).permute(&TO_BACK).0
}

/// Appends a row of zeros to an axis.
fn pad_after<B: Backend>(x: Primitive<B>, axis: usize) -> Primitive<B> {
    let zeros = x.clone().narrow(axis, 0, 1) * 0.0;
    Primitive::cat(vec![x, zeros], axis)
}

/// Doubles every pixel along both axes.
fn upsample<B: Backend>(x: Primitive<B>) -> Primitive<B> {
    let shape = x.dims();
    let (n, h, w, c) = (shape[0], shape[1], shape[2], shape[3]);
    let cells = x.reshape([n, h, 1, w, 1, c]).expand([n, h, 2, w, 2, c]);
    cells.reshape([n, 2 * h, 2 * w, c])
}

#[derive(Clone, Debug)]
struct Conv {
    activation: Activation,
    kind: ConvKind,
    precision: Precision,
}

impl Conv {
    fn stage(&self) -> Stage<'static> {
        match self.activation {
            Activation::None => Stage::Identity,
            activation => Stage::Activation(activation),
        }
    }
}

impl Operation<Flex, 3> for Conv {
    type Saved = ();

    fn forward(&self, [x, weight, bias]: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        let inputs = [x, weight, bias];
        (forward(self.precision, self.kind, self.stage(), inputs), ())
    }

    fn backward(
        &self,
        [x, weight, bias]: &[FlexTensor; 3],
        _saved: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let [mut d_x, d_weight, d_bias] = backward(
            self.precision,
            self.kind,
            self.stage(),
            [x, weight, bias],
            values(&d_out),
            wanted,
        );
        if let (Some(d_x), true) = (&mut d_x, self.activation != Activation::None) {
            conv::activation_backward(Isa::selected(), self.activation, values(x), d_x);
        }
        [
            shaped(d_x, x),
            shaped(d_weight, weight),
            shaped(d_bias, bias),
        ]
    }
}

/// The sizes of a convolution.
pub(super) fn shape_of(x: &FlexTensor, bias: &FlexTensor) -> Shape {
    let shape = x.shape();
    Shape {
        images: shape[0],
        height: shape[1],
        width: shape[2],
        c_in: shape[3],
        c_out: bias.shape()[0],
    }
}

/// `conv(stage(x)) + bias` on the CPU.
pub(super) fn forward(
    precision: Precision,
    kind: ConvKind,
    stage: Stage,
    [x, weight, bias]: [&FlexTensor; 3],
) -> FlexTensor {
    let Mode { isa, precision } = mode(precision);
    let shape = shape_of(x, bias);
    let mut out = uninit_vec(shape.outputs(kind));
    conv::forward(
        isa,
        precision,
        shape,
        kind,
        stage,
        values(x),
        values(weight),
        Some(values(bias)),
        &mut out,
    );
    let (height, width) = shape.output(kind);
    tensor(out, [shape.images, height, width, shape.c_out])
}

/// The gradients of the staged input, the weight and the bias.
pub(super) fn backward(
    precision: Precision,
    kind: ConvKind,
    stage: Stage,
    [x, weight, bias]: [&FlexTensor; 3],
    d_out: &[f32],
    wanted: [bool; 3],
) -> [Option<Vec<f32>>; 3] {
    let Mode { isa, precision } = mode(precision);
    let shape = shape_of(x, bias);
    let d_staged = wanted[0].then(|| {
        let mut d = uninit_vec(shape.inputs());
        conv::input_gradient(isa, precision, shape, kind, values(weight), d_out, &mut d);
        d
    });
    let d_weight = wanted[1].then(|| {
        let mut d = uninit_vec(shape.weights(kind));
        conv::weight_gradient(isa, precision, shape, kind, stage, values(x), d_out, &mut d);
        d
    });
    let d_bias = wanted[2].then(|| norm::column_sums(isa, d_out, shape.c_out));
    [d_staged, d_weight, d_bias]
}
