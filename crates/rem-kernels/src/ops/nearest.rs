//! Vector quantization: the nearest code of each row.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Backend, Dispatch, Flex, TensorMetadata, backend_extension, get_or_init_device_settings,
};
use burn::tensor::{Int, Shape, Tensor};

use crate::backend::Run;
use crate::backend::flex::{
    FlexTensor, impl_for_flex, integer_tensor, is_f32, rows_and_width, values,
};
use crate::backend::primitive::Primitive;
use crate::cpu::isa::Isa;
use crate::cpu::nearest;
use crate::cpu::tile::Precision;

/// The index of the nearest code of each row (Section 2.1), always in f32.
///
/// # Shapes
/// - `rows`: `[rows, width]`, `codes`: `[codes, width]` -> `[rows]`
pub fn nearest(rows: Tensor<2>, codes: Tensor<2>) -> Tensor<1, Int> {
    let (rows, codes) = (rows.into_dispatch(), codes.into_dispatch());
    Tensor::from_dispatch(Dispatch::nearest(rows, codes))
}

/// [`nearest`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait NearestOps: Backend {
    /// The index of the nearest code of each row.
    fn nearest(rows: FloatTensor<Self>, codes: FloatTensor<Self>) -> IntTensor<Self> {
        reference::<Self>(rows, codes)
    }
}

impl_for_flex!(NearestOps {
    fn nearest(rows: FloatTensor<Self>, codes: FloatTensor<Self>) -> IntTensor<Self> {
        if !is_f32(&rows) {
            return reference::<Self>(rows, codes);
        }
        on_flex(Self::detach(rows), Self::detach(codes))
    }
});

/// Minimizes |z - e|² without |z|², which is the same for every code.
pub(super) fn reference<B: Backend>(rows: FloatTensor<B>, codes: FloatTensor<B>) -> IntTensor<B> {
    let count = rows.shape()[0];
    let settings = get_or_init_device_settings::<B>(&rows.device());
    let (rows, codes) = (Primitive::<B>(rows), Primitive::<B>(codes));
    let norms = codes.clone().square().sum(1).transpose();
    let distance = norms - rows.matmul(codes.transpose(), Precision::F32) * 2.0;
    B::int_reshape(
        B::float_argmin(distance.0, 1, settings.int_dtype),
        Shape::from([count]),
    )
}

fn on_flex(rows: FlexTensor, codes: FlexTensor) -> IntTensor<Flex> {
    let (rows, codes) = (rows.to_contiguous(), codes.to_contiguous());
    let [count, width] = rows_and_width(&rows);
    let mut indices = vec![0; count];
    nearest::nearest(
        Isa::selected(),
        values(&rows),
        values(&codes),
        width,
        &mut indices,
    );
    integer_tensor(indices, &rows)
}
