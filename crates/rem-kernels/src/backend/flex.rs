//! The CPU backend: from tensors to the slices that [`crate::cpu`] works on, and back.

mod pack_cache;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Flex, TensorMetadata, get_or_init_device_settings};
use burn::tensor::{DType, TensorData};

use super::KernelBackend;
use crate::cpu::isa::Isa;
use crate::cpu::sublayer::{LinearGradient, Mode, NormGradient};
use crate::cpu::tile::Precision;

pub(crate) use pack_cache::PackCache;

/// A tensor of the CPU backend.
pub(crate) type FlexTensor = FloatTensor<Flex>;

impl KernelBackend for Flex {
    fn into_kernel_layout(tensor: FlexTensor) -> FlexTensor {
        tensor.to_contiguous()
    }
}

/// Implements an extension trait for Flex and for its autodiff by the same methods, which run operations through
/// [`Run<Flex>`](super::Run).
macro_rules! impl_for_flex {
    ($ops:ident { $($methods:tt)* }) => {
        impl $ops for burn::backend::Flex { $($methods)* }
        impl<C> $ops for burn::backend::Autodiff<burn::backend::Flex, C>
        where
            C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
        {
            $($methods)*
        }
    };
}
pub(crate) use impl_for_flex;

/// Whether the CPU kernels support the tensor's type.
pub(crate) fn is_f32(tensor: &impl TensorMetadata) -> bool {
    tensor.dtype() == DType::F32
}

/// The selected instruction set with a precision.
pub(crate) fn mode(precision: Precision) -> Mode {
    Mode {
        isa: Isa::selected(),
        precision,
    }
}

/// The values of a contiguous f32 tensor.
pub(crate) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor
        .as_slice()
        .expect("inputs are contiguous f32 tensors")
}

/// A tensor of values in row-major order.
pub(crate) fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// The shape of a matrix.
pub(crate) fn rows_and_width(x: &FlexTensor) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}

/// The values of an integer tensor.
pub(crate) fn integers(tensor: &IntTensor<Flex>) -> Vec<i64> {
    let tensor = tensor.to_contiguous();
    match tensor.dtype() {
        DType::I64 => tensor.as_slice::<i64>().expect("contiguous").to_vec(),
        DType::I32 => tensor
            .as_slice::<i32>()
            .expect("contiguous")
            .iter()
            .map(|i| i64::from(*i))
            .collect(),
        other => panic!("integer tensors of type {other:?} are not supported"),
    }
}

/// A vector of integers in the device's default integer type.
pub(crate) fn integer_tensor(values: Vec<i64>, like: &FlexTensor) -> IntTensor<Flex> {
    let count = values.len();
    let settings = get_or_init_device_settings::<Flex>(&like.device());
    let data = TensorData::new(values, [count]).convert_dtype(settings.int_dtype.into());
    FlexTensor::from_data(data)
}

/// A gradient in the shape of its input.
pub(crate) fn shaped(gradient: Option<Vec<f32>>, like: &FlexTensor) -> Option<FlexTensor> {
    gradient.map(|g| FlexTensor::from_data(TensorData::new(g, like.shape())))
}

/// The gradients of a sublayer's inputs in their order: x, norm, linear layers.
pub(crate) fn sublayer_gradients<const L: usize, const N: usize>(
    inputs: &[FlexTensor; N],
    x: Vec<f32>,
    norm: NormGradient,
    linears: [LinearGradient; L],
) -> [Option<FlexTensor>; N] {
    let norm = [x, norm.gamma, norm.beta];
    let linears = linears.into_iter().flat_map(|l| [l.weight, l.bias]);
    let mut gradients = norm.into_iter().chain(linears);
    inputs
        .each_ref()
        .map(|input| shaped(gradients.next(), input))
}
