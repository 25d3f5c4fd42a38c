//! Max pooling of ReLU.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::conv::{TO_BACK, TO_FRONT};
use crate::backend::flex::{FlexTensor, impl_for_flex, is_f32, shaped, tensor, values};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;
use crate::cpu::pool::{self, Images};
use crate::cpu::scratch::uninit_vec;

/// The maximum of each 2x2 window of ReLU(x).
///
/// # Shapes
/// - `x`: `[n, h, w, c]` -> `[n, h / 2, w / 2, c]`
pub fn max_pool_relu(x: Tensor<4>) -> Tensor<4> {
    Tensor::from_dispatch(Dispatch::max_pool_relu(x.into_dispatch()))
}

/// [`max_pool_relu`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait MaxPoolOps: Backend {
    /// The maximum of each 2x2 window of ReLU(x).
    fn max_pool_relu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        reference::<Self>(x)
    }
}

impl_for_flex!(MaxPoolOps {
    fn max_pool_relu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>(x);
        }
        Self::run(MaxPoolRelu, [x])
    }
});

pub(super) fn reference<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let x = Primitive::<B>(x)
        .activate(Activation::Relu)
        .permute(&TO_FRONT)
        .0;
    let pooled = B::max_pool2d(x, [2, 2], [2, 2], [0, 0], [1, 1], false);
    Primitive::<B>(pooled).permute(&TO_BACK).0
}

#[derive(Clone, Debug)]
struct MaxPoolRelu;

fn images(x: &FlexTensor) -> Images {
    let shape = x.shape();
    Images {
        count: shape[0],
        height: shape[1],
        width: shape[2],
        channels: shape[3],
    }
}

impl Operation<Flex, 1> for MaxPoolRelu {
    type Saved = ();

    fn forward(&self, [x]: &[FlexTensor; 1]) -> (FlexTensor, ()) {
        let images = images(x);
        let pooled = [
            images.count,
            images.height / 2,
            images.width / 2,
            images.channels,
        ];
        let mut out = uninit_vec(pooled.iter().product());
        pool::max_pool_relu(Isa::selected(), images, values(x), &mut out);
        (tensor(out, pooled), ())
    }

    fn backward(
        &self,
        [x]: &[FlexTensor; 1],
        _saved: (),
        d_out: FlexTensor,
        _wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let mut d_x = uninit_vec(values(x).len());
        let isa = Isa::selected();
        pool::max_pool_relu_backward(isa, images(x), values(x), values(&d_out), &mut d_x);
        [shaped(Some(d_x), x)]
    }
}
