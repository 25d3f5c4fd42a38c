//! The retention sublayer of a RetNet layer (Equation (9)) with POP's prediction blocks: norm, projections,
//! retention, norm over heads with its gate, projection, residual.
//!
//! [`retention`] trains on whole trajectories, [`retention_update_state`] and [`retention_predict`] imagine.

mod reference;
mod types;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::{SublayerMode, prepend};
use crate::backend::flex::{
    FlexTensor, PackCache, is_f32, mode, rows_and_width, sublayer_gradients, tensor, values,
};
use crate::backend::{Operation, Run};
use crate::cpu::retention::Plan;
use crate::cpu::rotation::Rotation;
use crate::cpu::sublayer::{Linear, Norm, RetentionSaved, RetentionSavedRef, RetentionSublayer};
pub(super) use reference::reference;
pub use types::{InitialState, RetentionParameters, RetentionSizes, RetentionTables};

/// The retention sublayer over whole trajectories from their start, with POP's prediction blocks (Algorithm 2).
///
/// # Shapes
/// - `x`: `[rows, width]`, ordered as [`RetentionSizes`] says -> `[output rows, width]`
pub fn retention(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    sizes: RetentionSizes,
    mode: SublayerMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::retention(x, parameters, tables, sizes, mode))
}

/// As [`retention`], from a state (zero if `None`); also gives the state after the last chunk.
///
/// # Shapes
/// - `state`: `[batch, heads, head_dim, head_dim]`
pub fn retention_update_state(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    state: Option<Tensor<4>>,
    sizes: RetentionSizes,
    mode: SublayerMode,
) -> (Tensor<2>, Tensor<4>) {
    let x = x.into_dispatch();
    let state = match state {
        Some(state) => InitialState::Given(state.into_dispatch()),
        None => InitialState::Zero,
    };
    let (y, state) = Dispatch::retention_update_state(x, parameters, tables, state, sizes, mode);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(state))
}

/// As [`retention`] for a block of prediction tokens that sees a state and does not change it.
pub fn retention_predict(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    state: Tensor<4>,
    sizes: RetentionSizes,
    mode: SublayerMode,
) -> Tensor<2> {
    let (x, state) = (x.into_dispatch(), state.into_dispatch());
    Tensor::from_dispatch(Dispatch::retention_predict(
        x, parameters, tables, state, sizes, mode,
    ))
}

/// [`retention`], [`retention_update_state`] and [`retention_predict`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait RetentionOps: Backend {
    /// Whole trajectories from their start.
    fn retention(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, tables, None, sizes, mode).0
    }

    /// From a state; the outputs and the state after the last chunk.
    fn retention_update_state(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        #[extension_type] state: InitialState<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (y, state) = reference::<Self>(x, parameters, tables, state.given(), sizes, mode);
        (y, state.expect("there is at least one chunk"))
    }

    /// Prediction tokens, which do not change the state.
    fn retention_predict(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        state: FloatTensor<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, tables, Some(state), sizes, mode).0
    }
}

impl RetentionOps for Flex {
    fn retention(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, tables, sizes, mode)
    }

    fn retention_update_state(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        state: InitialState<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(&x) {
            let (y, state) = reference::<Self>(x, parameters, tables, state.given(), sizes, mode);
            return (y, state.expect("there is at least one chunk"));
        }
        let inputs: [_; 13] = prepend(x, parameters.into_array());
        Retention::new::<Self>(tables, sizes, mode).update_state(inputs, state.given())
    }

    fn retention_predict(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        state: FloatTensor<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>(x, parameters, tables, Some(state), sizes, mode).0;
        }
        let inputs: [_; 13] = prepend(x, parameters.into_array());
        Retention::new::<Self>(tables, sizes, mode).predict(inputs, state)
    }
}

/// Imagination runs without gradients; with autodiff it falls back to the reference.
impl<C: CheckpointStrategy> RetentionOps for Autodiff<Flex, C> {
    fn retention(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, tables, sizes, mode)
    }
}

fn train_on_flex<B: Run<Flex>>(
    x: FloatTensor<B>,
    parameters: RetentionParameters<B>,
    tables: RetentionTables<B>,
    sizes: RetentionSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    if !is_f32(&x) {
        return reference::<B>(x, parameters, tables, None, sizes, mode).0;
    }
    let inputs: [_; 13] = prepend(x, parameters.into_array());
    B::run(Retention::new::<B>(tables, sizes, mode), inputs)
}

/// The sublayer on the CPU.
#[derive(Clone, Debug)]
struct Retention {
    cos: FlexTensor,
    sin: FlexTensor,
    powers: FlexTensor,
    sizes: RetentionSizes,
    mode: SublayerMode,
}

impl Retention {
    fn new<B: Run<Flex>>(
        tables: RetentionTables<B>,
        sizes: RetentionSizes,
        mode: SublayerMode,
    ) -> Self {
        Self {
            cos: B::detach(tables.cos).to_contiguous(),
            sin: B::detach(tables.sin).to_contiguous(),
            powers: B::detach(tables.powers).to_contiguous(),
            sizes,
            mode,
        }
    }

    fn plan(&self, width: usize) -> Plan<'_> {
        let s = self.sizes;
        Plan {
            batch: s.batch,
            heads: s.heads,
            head_dim: width / s.heads,
            tokens: s.tokens,
            chunk: s.chunk,
            first_predicted: s.first_predicted,
            predicted: s.predicted,
            block_tokens: s.block_tokens,
            shared: s.shared,
            last_only: s.last_only,
            powers: values(&self.powers),
            powers_per_head: self.powers.shape()[1],
            rotation: Rotation {
                cos: values(&self.cos),
                sin: values(&self.sin),
            },
        }
    }

    fn sublayer<'a>(&self, inputs: &'a [FlexTensor; 13]) -> RetentionSublayer<'a> {
        let p = inputs.each_ref().map(values);
        let linear = |i: usize| Linear {
            weight: p[i],
            bias: p[i + 1],
        };
        RetentionSublayer {
            norm: Norm {
                gamma: p[1],
                beta: p[2],
            },
            query: linear(3),
            key: linear(5),
            value: linear(7),
            gate: linear(9),
            out: linear(11),
            dropout: self.mode.dropout,
        }
    }

    /// The outputs from a state, and the intermediate results; with the last state if `last_state`.
    fn forward_from(
        &self,
        inputs: &[FlexTensor; 13],
        state: Option<&FlexTensor>,
        last_state: bool,
    ) -> (FlexTensor, RetentionSaved) {
        let [_, width] = rows_and_width(&inputs[0]);
        let plan = self.plan(width);
        let (out, saved) = self.sublayer(inputs).forward(
            mode(self.mode.precision),
            &PackCache(inputs),
            &plan,
            values(&inputs[0]),
            state.map(values),
            last_state,
        );
        (tensor(out, [plan.outputs(), width]), saved)
    }

    fn update_state(
        &self,
        inputs: [FlexTensor; 13],
        state: Option<FlexTensor>,
    ) -> (FlexTensor, FlexTensor) {
        let inputs = inputs.map(|x| x.to_contiguous());
        let state = state.map(|s| s.to_contiguous());
        let (out, saved) = self.forward_from(&inputs, state.as_ref(), true);
        let RetentionSizes { batch, heads, .. } = self.sizes;
        let (chunks, dim) = (self.sizes.chunks(), rows_and_width(&inputs[0])[1] / heads);
        let last = match chunks {
            1 => saved.states,
            _ => {
                let len = dim * dim;
                let each = saved.states.chunks_exact(chunks * len);
                each.flat_map(|states| &states[(chunks - 1) * len..])
                    .copied()
                    .collect()
            }
        };
        (out, tensor(last, [batch, heads, dim, dim]))
    }

    fn predict(&self, inputs: [FlexTensor; 13], state: FlexTensor) -> FlexTensor {
        let inputs = inputs.map(|x| x.to_contiguous());
        let state = state.to_contiguous();
        self.forward_from(&inputs, Some(&state), false).0
    }
}

impl Operation<Flex, 13> for Retention {
    /// Queries with gates, keys with values, retained values, states.
    type Saved = [FlexTensor; 4];

    fn forward(&self, inputs: &[FlexTensor; 13]) -> (FlexTensor, Self::Saved) {
        let (out, saved) = self.forward_from(inputs, None, false);
        let flat = |v: Vec<f32>| {
            let len = v.len();
            tensor(v, [len])
        };
        let saved = [
            saved.queries,
            saved.keys_values,
            saved.retained,
            saved.states,
        ];
        (out, saved.map(flat))
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 13],
        saved: Self::Saved,
        d_out: FlexTensor,
        _wanted: [bool; 13],
    ) -> [Option<FlexTensor>; 13] {
        let [queries, keys_values, retained, states] = saved.each_ref().map(values);
        let saved = RetentionSavedRef {
            queries,
            keys_values,
            retained,
            states,
        };
        let d = self.sublayer(inputs).backward(
            mode(self.mode.precision),
            &PackCache(inputs),
            &self.plan(rows_and_width(&inputs[0])[1]),
            values(&inputs[0]),
            None,
            saved,
            values(&d_out),
        );
        sublayer_gradients(inputs, d.x, d.norm, d.linears)
    }
}
