//! Cross-entropy of logits with class indices.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Int, Shape, Tensor};

use crate::backend::flex::{
    FlexTensor, impl_for_flex, integers, is_f32, rows_and_width, tensor, values,
};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::cross_entropy;
use crate::cpu::isa::Isa;
use crate::cpu::scratch::uninit_vec;

/// The cross-entropy of each row.
///
/// # Shapes
/// - `logits`: `[rows, classes]`, `targets`: `[rows]` -> `[rows]`
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
    Tensor::from_dispatch(Dispatch::cross_entropy(logits, targets))
}

/// [`cross_entropy`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait CrossEntropyOps: Backend {
    /// The cross-entropy of each row.
    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        reference::<Self>(logits, targets)
    }
}

impl_for_flex!(CrossEntropyOps {
    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        if !is_f32(&logits) {
            return reference::<Self>(logits, targets);
        }
        Self::run(CrossEntropy { targets: integers(&targets) }, [logits])
    }
});

pub(super) fn reference<B: Backend>(
    logits: FloatTensor<B>,
    targets: IntTensor<B>,
) -> FloatTensor<B> {
    let rows = logits.shape()[0];
    let targets = B::int_reshape(targets, Shape::from([rows, 1]));
    let chosen = B::float_gather(1, B::log_softmax(logits, 1), targets);
    Primitive::<B>(B::float_neg(chosen)).reshape([rows]).0
}

#[derive(Clone, Debug)]
struct CrossEntropy {
    targets: Vec<i64>,
}

impl Operation<Flex, 1> for CrossEntropy {
    /// The logarithm of each row's sum of exponentials.
    type Saved = Vec<f32>;

    fn forward(&self, [logits]: &[FlexTensor; 1]) -> (FlexTensor, Vec<f32>) {
        let [rows, _] = rows_and_width(logits);
        let (mut losses, mut log_sums) = (uninit_vec(rows), uninit_vec(rows));
        cross_entropy::forward(
            Isa::selected(),
            values(logits),
            &self.targets,
            &mut losses,
            &mut log_sums,
        );
        (tensor(losses, [rows]), log_sums)
    }

    fn backward(
        &self,
        [logits]: &[FlexTensor; 1],
        log_sums: Vec<f32>,
        d_out: FlexTensor,
        _wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let mut d_logits = uninit_vec(values(logits).len());
        cross_entropy::backward(
            Isa::selected(),
            values(logits),
            &self.targets,
            &log_sums,
            values(&d_out),
            &mut d_logits,
        );
        [Some(tensor(d_logits, rows_and_width(logits)))]
    }
}
