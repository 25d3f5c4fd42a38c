//! Linear layers.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use crate::backend::flex::{
    FlexTensor, PackCache, impl_for_flex, is_f32, mode, rows_and_width, tensor, values,
};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::dropout::Dropout;
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::matmul::{Dense, matmul};
use crate::cpu::pack::Packer;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::sublayer::{Activated, Mode, add_bias, row_sums, weight_gradient};
use crate::cpu::tile::{Precision, with_tile};

/// `activation(x) · weight + bias`
///
/// # Shapes
/// - `x`: `[rows, inputs]`, `weight`: `[inputs, outputs]`, `bias`: `[outputs]` -> `[rows, outputs]`
pub fn linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    activation: Activation,
    precision: Precision,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        activation,
        precision,
    ))
}

/// [`linear`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait LinearOps: Backend {
    /// `activation(x) · weight + bias`
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        reference::<Self>([x, weight, bias], activation, precision)
    }
}

impl_for_flex!(LinearOps {
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>([x, weight, bias], activation, precision);
        }
        Self::run(Linear { activation, precision }, [x, weight, bias])
    }
});

pub(super) fn reference<B: Backend>(
    [x, weight, bias]: [FloatTensor<B>; 3],
    activation: Activation,
    precision: Precision,
) -> FloatTensor<B> {
    let x = Primitive::<B>(x).activate(activation);
    x.linear(Primitive(weight), Primitive(bias), precision).0
}

#[derive(Clone, Debug)]
struct Linear {
    activation: Activation,
    precision: Precision,
}

impl Linear {
    fn activated<'a>(&self, isa: Isa, x: &'a FlexTensor) -> Activated<'a> {
        Activated {
            isa,
            x: values(x),
            width: rows_and_width(x)[1],
            activation: self.activation,
            dropout: Dropout::NONE,
        }
    }
}

impl Operation<Flex, 3> for Linear {
    type Saved = ();

    fn forward(&self, inputs: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        let [x, weight, bias] = inputs;
        let packer = PackCache(inputs);
        let Mode { isa, precision } = mode(self.precision);
        let [rows, inputs] = rows_and_width(x);
        let bias = values(bias);
        let mut out = uninit_vec(rows * bias.len());
        with_tile!(isa, precision, tile => {
            let panels = packer.panels(tile, &[values(weight)], inputs, false);
            matmul(tile, &self.activated(isa, x), &panels, &mut out, |first, rows| {
                add_bias(isa, first, rows, bias);
            });
        });
        (tensor(out, [rows, bias.len()]), ())
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 3],
        _saved: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let [x, weight, bias] = inputs;
        let packer = PackCache(inputs);
        let Mode { isa, precision } = mode(self.precision);
        let [rows, inputs] = rows_and_width(x);
        let outputs = bias.shape()[0];
        let activated = self.activated(isa, x);
        let d_out = Dense::new(values(&d_out), outputs);
        with_tile!(isa, precision, tile => {
            let d_x = wanted[0].then(|| {
                let mut d_x = uninit_vec(rows * inputs);
                let transposed = packer.panels(tile, &[values(weight)], inputs, true);
                matmul(tile, &d_out, &transposed, &mut d_x, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(inputs).enumerate() {
                        activated.backward(first + i, row);
                    }
                });
                tensor(d_x, [rows, inputs])
            });
            let d_weight = wanted[1]
                .then(|| tensor(weight_gradient(tile, &activated, &d_out, rows), [inputs, outputs]));
            let d_bias = wanted[2].then(|| tensor(row_sums(isa, &d_out, rows), [outputs]));
            [d_x, d_weight, d_bias]
        })
    }
}
