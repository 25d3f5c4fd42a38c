//! Dropout on its own, for embeddings. Sublayers apply theirs inside.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::backend::flex::{FlexTensor, impl_for_flex, is_f32, rows_and_width, tensor, values};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::dropout::Dropout;
use crate::cpu::isa::Isa;

/// Drops elements of `x`. The CPU's mask is a function of the seed; other devices draw it from their generator.
///
/// # Shapes
/// - `x`: `[rows, width]` -> the same
pub fn dropout(x: Tensor<2>, dropout: Dropout) -> Tensor<2> {
    if dropout.is_off() {
        return x;
    }
    Tensor::from_dispatch(Dispatch::dropout(x.into_dispatch(), dropout))
}

/// [`dropout`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait DropoutOps: Backend {
    /// Drops elements.
    fn dropout(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        reference::<Self>(x, dropout)
    }
}

impl_for_flex!(DropoutOps {
    fn dropout(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>(x, dropout);
        }
        Self::run(Dropped(dropout), [x])
    }
});

fn reference<B: Backend>(x: FloatTensor<B>, dropout: Dropout) -> FloatTensor<B> {
    Primitive::<B>(x).dropout(dropout.p).0
}

#[derive(Clone, Debug)]
struct Dropped(Dropout);

impl Dropped {
    /// Applies the mask, to values or to their gradient.
    fn apply(&self, x: &FlexTensor) -> FlexTensor {
        let [rows, width] = rows_and_width(x);
        let mut kept = values(x).to_vec();
        self.0.apply_to_rows(Isa::selected(), width, &mut kept);
        tensor(kept, [rows, width])
    }
}

impl Operation<Flex, 1> for Dropped {
    type Saved = ();

    fn forward(&self, [x]: &[FlexTensor; 1]) -> (FlexTensor, ()) {
        (self.apply(x), ())
    }

    fn backward(
        &self,
        _inputs: &[FlexTensor; 1],
        _saved: (),
        d_out: FlexTensor,
        _wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        [Some(self.apply(&d_out))]
    }
}
