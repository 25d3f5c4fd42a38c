//! The distance between features of two images: one stage of LPIPS.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use crate::backend::flex::{FlexTensor, impl_for_flex, is_f32, shaped, tensor, values};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::feature_distance;
use crate::cpu::isa::Isa;
use crate::cpu::math::Activation;

/// One stage of LPIPS: ReLU, each pixel's channels scaled to a unit vector, squared differences weighted by `head`,
/// averaged over pixels. Only `b` can have a gradient.
///
/// # Shapes
/// - `a`, `b`: `[n, h, w, c]`, before their ReLU; `head`: `[c]` -> `[n]`
pub fn feature_distance(a: Tensor<4>, b: Tensor<4>, head: Tensor<1>) -> Tensor<1> {
    let (a, b, head) = (a.into_dispatch(), b.into_dispatch(), head.into_dispatch());
    Tensor::from_dispatch(Dispatch::feature_distance(a, b, head))
}

/// [`feature_distance`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait FeatureDistanceOps: Backend {
    /// One stage of LPIPS.
    fn feature_distance(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        head: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        reference::<Self>([a, b, head])
    }
}

impl_for_flex!(FeatureDistanceOps {
    fn feature_distance(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        head: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if !is_f32(&a) {
            return reference::<Self>([a, b, head]);
        }
        Self::run(FeatureDistance, [a, b, head])
    }
});

pub(super) fn reference<B: Backend>([a, b, head]: [FloatTensor<B>; 3]) -> FloatTensor<B> {
    let shape = a.shape();
    let (n, pixels, c) = (shape[0], shape[1] * shape[2], shape[3]);
    let unit = |x: FloatTensor<B>| {
        let x = Primitive::<B>(x)
            .activate(Activation::Relu)
            .reshape([n, pixels, c]);
        // Far below every nonzero sum of squares; keeps the gradient of the square root finite at zero.
        let squares = B::float_clamp_min(x.clone().square().sum(2).0, 1e-20.into());
        x / (Primitive::<B>(squares).sqrt() + 1e-10)
    };
    let difference = (unit(a) - unit(b)).square() * Primitive::<B>(head).reshape([1, 1, c]);
    difference.sum(2).mean(1).reshape([n]).0
}

#[derive(Clone, Debug)]
struct FeatureDistance;

impl Operation<Flex, 3> for FeatureDistance {
    type Saved = ();

    fn forward(&self, [a, b, head]: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        let count = a.shape()[0];
        let mut out = vec![0.0; count];
        feature_distance::forward(
            Isa::selected(),
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
        _saved: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        assert!(
            !wanted[0] && !wanted[2],
            "only the second image's features have a gradient"
        );
        let mut d_b = vec![0.0; values(b).len()];
        feature_distance::backward(
            Isa::selected(),
            values(a),
            values(b),
            values(head),
            values(&d_out),
            &mut d_b,
        );
        [None, shaped(Some(d_b), b), None]
    }
}
