//! The tuned bodies for Flex: tensors to slices and back, and their place in Burn's autodiff.

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn::tensor::{DType, TensorData};

use crate::cpu::layer::Mode;
use crate::cpu::level::Level;
use crate::cpu::tile::Precision;

mod attention;
mod classes;
mod images;
mod layers;
mod linear;
mod lstm;
mod remembered;

pub(crate) use attention::Attention;
pub(crate) use classes::{CrossEntropy, nearest, sample};
pub(crate) use images::{Conv, FeatureDistance, MaxPoolRelu, NormConv};
pub(crate) use layers::{FeedForward, Retention};
pub(crate) use linear::Linear;
pub(crate) use lstm::{LstmCell, LstmSequence};
use remembered::Remembered;

pub(crate) type FlexTensor = FloatTensor<Flex>;

/// An operation with a backward pass of its own, on contiguous f32 tensors.
pub(crate) trait Operation<const N: usize>: Clone + Debug + Send + 'static {
    /// What the backward pass needs beside the inputs.
    type Kept: Clone + Debug + Send;

    fn forward(&self, inputs: &[FlexTensor; N]) -> (FlexTensor, Self::Kept);

    /// The gradients of the inputs; those that are not `wanted` may be left out.
    fn backward(
        &self,
        inputs: &[FlexTensor; N],
        kept: Self::Kept,
        d_out: FlexTensor,
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N];
}

/// An operation's forward pass.
pub(crate) fn run<const N: usize, O: Operation<N>>(
    operation: O,
    inputs: [FlexTensor; N],
) -> FlexTensor {
    operation.forward(&inputs.map(|x| x.to_contiguous())).0
}

/// An operation as a step of the autodiff graph.
pub(crate) fn run_tracked<C: CheckpointStrategy, const N: usize, O: Operation<N>>(
    operation: O,
    inputs: [FloatTensor<Autodiff<Flex, C>>; N],
) -> FloatTensor<Autodiff<Flex, C>> {
    let nodes = inputs.each_ref().map(|x| x.node());
    let step = Tracked(operation.clone());
    let prepared = step.prepare::<C>(nodes).compute_bound().stateful();
    let inputs = inputs.map(|x| x.into_primitive().to_contiguous());
    let (out, kept) = operation.forward(&inputs);
    match prepared {
        OpsKind::Tracked(prepared) => prepared.finish((inputs, kept), out),
        OpsKind::UnTracked(prepared) => prepared.finish(out),
    }
}

/// An operation on its way back.
#[derive(Clone, Debug)]
struct Tracked<O>(O);

impl<const N: usize, O: Operation<N>> Backward<Flex, N> for Tracked<O> {
    type State = ([FlexTensor; N], O::Kept);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let d_out = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (inputs, kept) = ops.state;
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = self.0.backward(&inputs, kept, d_out, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

fn mode(precision: Precision) -> Mode {
    Mode {
        level: Level::of_this_machine(),
        precision,
    }
}

/// The values of a contiguous f32 tensor.
pub(crate) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor
        .as_slice()
        .expect("inputs are contiguous f32 tensors")
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

fn rows_and_width(x: &FlexTensor) -> [usize; 2] {
    let shape = x.shape();
    [shape[0], shape[1]]
}

/// The values of an integer tensor.
fn integers(tensor: &IntTensor<Flex>) -> Vec<i64> {
    let tensor = tensor.to_contiguous();
    match tensor.dtype() {
        DType::I64 => tensor.as_slice::<i64>().expect("contiguous").to_vec(),
        DType::I32 => tensor
            .as_slice::<i32>()
            .expect("contiguous")
            .iter()
            .map(|i| i64::from(*i))
            .collect(),
        other => panic!("integers of type {other:?} are not known here"),
    }
}

/// A gradient in the shape of its input.
fn shaped(gradient: Option<Vec<f32>>, like: &FlexTensor) -> Option<FlexTensor> {
    gradient.map(|g| FlexTensor::from_data(TensorData::new(g, like.shape())))
}
