//! Backends: operations with a backward pass of their own, and how autodiff records them.
//!
//! [`flex`] holds the CPU backend's glue between tensors and slices, `cube` the GPU backends. A backend that has
//! no [`Operation`] for a kernel runs its reference body.

#[cfg(feature = "cube")]
mod cube;
pub(crate) mod flex;
pub(crate) mod primitive;

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// A backend that runs an [`Operation`] of its own.
pub(crate) trait KernelBackend: Backend {
    /// The tensor in the memory layout that the backend's operations read.
    fn into_kernel_layout(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        tensor
    }
}

/// An operation on `N` float tensors of backend `B`, with its backward pass.
pub(crate) trait Operation<B: KernelBackend, const N: usize>:
    Clone + Debug + Send + 'static
{
    /// What the backward pass needs besides the inputs.
    type Saved: Clone + Debug + Send + 'static;

    /// The output, and what [`backward`](Self::backward) needs. Inputs are in the backend's kernel layout.
    fn forward(&self, inputs: &[FloatTensor<B>; N]) -> (FloatTensor<B>, Self::Saved);

    /// The gradients of the inputs. Those that are not `wanted` may be `None`.
    fn backward(
        &self,
        inputs: &[FloatTensor<B>; N],
        saved: Self::Saved,
        d_out: FloatTensor<B>,
        wanted: [bool; N],
    ) -> [Option<FloatTensor<B>>; N];
}

/// Runs operations of backend `B`: implemented by `B` itself, which computes the forward pass only, and by its
/// autodiff, which records the operation in the graph.
pub(crate) trait Run<B: KernelBackend>: Backend {
    /// The operation's output.
    fn run<const N: usize>(
        operation: impl Operation<B, N>,
        inputs: [FloatTensor<Self>; N],
    ) -> FloatTensor<Self>;

    /// The tensor on `B`, without its place in the graph.
    fn detach(tensor: FloatTensor<Self>) -> FloatTensor<B>;
}

impl<B: KernelBackend> Run<B> for B {
    fn run<const N: usize>(
        operation: impl Operation<B, N>,
        inputs: [FloatTensor<Self>; N],
    ) -> FloatTensor<Self> {
        operation.forward(&inputs.map(B::into_kernel_layout)).0
    }

    fn detach(tensor: FloatTensor<Self>) -> FloatTensor<B> {
        tensor
    }
}

impl<B: KernelBackend, C: CheckpointStrategy> Run<B> for Autodiff<B, C> {
    fn run<const N: usize>(
        operation: impl Operation<B, N>,
        inputs: [FloatTensor<Self>; N],
    ) -> FloatTensor<Self> {
        let nodes = inputs.each_ref().map(|x| x.node());
        let step = Tracked(operation.clone());
        let prepared = step.prepare::<C>(nodes).compute_bound().stateful();
        let inputs = inputs.map(|x| B::into_kernel_layout(x.into_primitive()));
        let (out, saved) = operation.forward(&inputs);
        match prepared {
            OpsKind::Tracked(prepared) => prepared.finish((inputs, saved), out),
            OpsKind::UnTracked(prepared) => prepared.finish(out),
        }
    }

    fn detach(tensor: FloatTensor<Self>) -> FloatTensor<B> {
        tensor.into_primitive()
    }
}

/// An operation as a step of the autodiff graph.
#[derive(Clone, Debug)]
struct Tracked<O>(O);

impl<B: KernelBackend, const N: usize, O: Operation<B, N>> Backward<B, N> for Tracked<O> {
    type State = ([FloatTensor<B>; N], O::Saved);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let d_out = B::into_kernel_layout(grads.consume::<B>(&ops.node));
        let (inputs, saved) = ops.state;
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let gradients = self.0.backward(&inputs, saved, d_out, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<B>(parent.id, gradient);
            }
        }
    }
}
