//! Sampling from categorical distributions.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Backend, Dispatch, Flex, Scalar, TensorMetadata, backend_extension, get_or_init_device_settings,
};
use burn::tensor::{Int, Shape, Tensor};

use crate::backend::Run;
use crate::backend::flex::{FlexTensor, impl_for_flex, integer_tensor, is_f32, values};
use crate::backend::primitive::Primitive;
use crate::cpu::isa::Isa;
use crate::cpu::sample;

/// A class for each row of logits, from a uniform draw in [0, 1) for each.
///
/// # Shapes
/// - `logits`: `[rows, classes]`, `draws`: `[rows]` -> `[rows]`
pub fn sample(logits: Tensor<2>, draws: Tensor<1>) -> Tensor<1, Int> {
    let (logits, draws) = (logits.into_dispatch(), draws.into_dispatch());
    Tensor::from_dispatch(Dispatch::sample(logits, draws))
}

/// [`sample`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait SampleOps: Backend {
    /// A class for each row of logits.
    fn sample(logits: FloatTensor<Self>, draws: FloatTensor<Self>) -> IntTensor<Self> {
        reference::<Self>(logits, draws)
    }
}

impl_for_flex!(SampleOps {
    fn sample(logits: FloatTensor<Self>, draws: FloatTensor<Self>) -> IntTensor<Self> {
        if !is_f32(&logits) {
            return reference::<Self>(logits, draws);
        }
        on_flex(Self::detach(logits), Self::detach(draws))
    }
});

/// Inverts the cumulative distribution.
pub(super) fn reference<B: Backend>(logits: FloatTensor<B>, draws: FloatTensor<B>) -> IntTensor<B> {
    let shape = logits.shape();
    let (rows, classes) = (shape[0], shape[1]);
    let settings = get_or_init_device_settings::<B>(&logits.device());
    let cumulative = Primitive::<B>(B::float_cumsum(B::softmax(logits, 1), 1));
    // The last sum may differ from 1 by rounding. Scale draws by it, so that impossible classes are never sampled.
    let total = cumulative.clone().narrow(1, classes - 1, 1);
    let threshold = (Primitive::<B>(draws).reshape([rows, 1]) * total).expand([rows, classes]);
    let below = B::float_lower_equal(cumulative.0, threshold.0, settings.bool_dtype);
    let count = B::int_sum_dim(B::bool_into_int(below, settings.int_dtype), 1);
    let class = B::int_clamp_max(count, Scalar::Int(classes as i64 - 1));
    B::int_reshape(class, Shape::from([rows]))
}

fn on_flex(logits: FlexTensor, draws: FlexTensor) -> IntTensor<Flex> {
    let (logits, draws) = (logits.to_contiguous(), draws.to_contiguous());
    let mut classes = vec![0; draws.shape()[0]];
    sample::sample(
        Isa::selected(),
        values(&logits),
        values(&draws),
        &mut classes,
    );
    integer_tensor(classes, &logits)
}
