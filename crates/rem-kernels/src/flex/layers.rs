//! The two halves of a RetNet layer.

use burn::backend::{Flex, TensorMetadata};

use super::{FlexTensor, Operation, Remembered, mode, rows_and_width, shaped, tensor, values};
use crate::cpu::layer::{
    self, FeedForwardHalf, LinearGradient, Norm, NormGradient, RetentionHalf, RetentionKept,
};
use crate::cpu::math::Activation;
use crate::cpu::retention::Plan;
use crate::retnet::{HalfMode, RetentionSizes, RetentionTables};

/// A layer's feed-forward half.
#[derive(Clone, Debug)]
pub(crate) struct FeedForward {
    pub activation: Activation,
    pub mode: HalfMode,
}

impl FeedForward {
    fn half<'a>(&self, inputs: &'a [FlexTensor; 7]) -> FeedForwardHalf<'a> {
        let [_, gamma, beta, up, up_bias, down, down_bias] = inputs.each_ref().map(values);
        FeedForwardHalf {
            norm: Norm { gamma, beta },
            up: layer::Linear {
                weight: up,
                bias: up_bias,
            },
            down: layer::Linear {
                weight: down,
                bias: down_bias,
            },
            activation: self.activation,
            dropout: self.mode.dropout,
        }
    }
}

impl Operation<7> for FeedForward {
    type Kept = FlexTensor;

    fn forward(&self, inputs: &[FlexTensor; 7]) -> (FlexTensor, FlexTensor) {
        let [rows, width] = rows_and_width(&inputs[0]);
        let half = self.half(inputs);
        let (out, hidden) = half.forward(
            mode(self.mode.precision),
            &Remembered(inputs),
            values(&inputs[0]),
        );
        (
            tensor(out, [rows, width]),
            tensor(hidden, [rows, half.up.bias.len()]),
        )
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 7],
        hidden: FlexTensor,
        d_out: FlexTensor,
        _wanted: [bool; 7],
    ) -> [Option<FlexTensor>; 7] {
        let half = self.half(inputs);
        let mode = mode(self.mode.precision);
        let d = half.backward(
            mode,
            &Remembered(inputs),
            values(&inputs[0]),
            values(&hidden),
            values(&d_out),
        );
        let mut found = gradients(vec![d.x], d.norm, [d.up, d.down]).into_iter();
        inputs.each_ref().map(|x| shaped(found.next(), x))
    }
}

/// Gradients in the order of the inputs: x, norm, linear layers.
pub(super) fn gradients<const L: usize>(
    mut first: Vec<Vec<f32>>,
    norm: NormGradient,
    linears: [LinearGradient; L],
) -> Vec<Vec<f32>> {
    first.extend([norm.gamma, norm.beta]);
    first.extend(linears.into_iter().flat_map(|l| [l.weight, l.bias]));
    first
}

/// A layer's retention half.
#[derive(Clone, Debug)]
pub(crate) struct Retention {
    cos: FlexTensor,
    sin: FlexTensor,
    powers: FlexTensor,
    sizes: RetentionSizes,
    mode: HalfMode,
}

impl Retention {
    pub fn new(tables: RetentionTables<Flex>, sizes: RetentionSizes, mode: HalfMode) -> Self {
        Self {
            cos: tables.cos.to_contiguous(),
            sin: tables.sin.to_contiguous(),
            powers: tables.powers.to_contiguous(),
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
            piece: s.piece,
            first_predicted: s.first_predicted,
            predicted: s.predicted,
            block_tokens: s.block_tokens,
            last_only: s.last_only,
            powers: values(&self.powers),
            powers_per_head: self.powers.shape()[1],
            cos: values(&self.cos),
            sin: values(&self.sin),
        }
    }

    fn half<'a>(&self, inputs: &'a [FlexTensor; 13]) -> RetentionHalf<'a> {
        let p = inputs.each_ref().map(values);
        let linear = |i: usize| layer::Linear {
            weight: p[i],
            bias: p[i + 1],
        };
        RetentionHalf {
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

    fn half_forward(
        &self,
        inputs: &[FlexTensor; 13],
        state: Option<&FlexTensor>,
        whole: bool,
    ) -> (FlexTensor, RetentionKept) {
        let [_, width] = rows_and_width(&inputs[0]);
        let mode = mode(self.mode.precision);
        let start = state.map(values);
        let plan = self.plan(width);
        let (out, kept) = self.half(inputs).forward(
            mode,
            &Remembered(inputs),
            &plan,
            values(&inputs[0]),
            start,
            whole,
        );
        (tensor(out, [plan.outputs(), width]), kept)
    }

    pub fn fold(
        &self,
        inputs: [FlexTensor; 13],
        state: Option<FlexTensor>,
    ) -> (FlexTensor, FlexTensor) {
        let inputs = inputs.map(|x| x.to_contiguous());
        let state = state.map(|s| s.to_contiguous());
        let (out, kept) = self.half_forward(&inputs, state.as_ref(), true);
        let RetentionSizes { batch, heads, .. } = self.sizes;
        let (pieces, dim) = (self.sizes.pieces(), rows_and_width(&inputs[0])[1] / heads);
        let last = match pieces {
            1 => kept.states,
            _ => {
                let len = dim * dim;
                let each = kept.states.chunks_exact(pieces * len);
                each.flat_map(|states| &states[(pieces - 1) * len..])
                    .copied()
                    .collect()
            }
        };
        (out, tensor(last, [batch, heads, dim, dim]))
    }

    pub fn peek(&self, inputs: [FlexTensor; 13], state: FlexTensor) -> FlexTensor {
        let inputs = inputs.map(|x| x.to_contiguous());
        self.half_forward(&inputs, Some(&state.to_contiguous()), false)
            .0
    }
}

impl Operation<13> for Retention {
    /// Queries with gates, keys with values, retained values, states.
    type Kept = [FlexTensor; 4];

    fn forward(&self, inputs: &[FlexTensor; 13]) -> (FlexTensor, Self::Kept) {
        let (out, kept) = self.half_forward(inputs, None, false);
        let flat = |v: Vec<f32>| {
            let len = v.len();
            tensor(v, [len])
        };
        (
            out,
            [kept.queries, kept.keys_values, kept.retained, kept.states].map(flat),
        )
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 13],
        kept: Self::Kept,
        d_out: FlexTensor,
        _wanted: [bool; 13],
    ) -> [Option<FlexTensor>; 13] {
        let plan = self.plan(rows_and_width(&inputs[0])[1]);
        let [queries, keys_values, retained, states] = kept.each_ref().map(values);
        let kept = layer::Kept {
            queries,
            keys_values,
            retained,
            states,
        };
        let mode = mode(self.mode.precision);
        let d = self.half(inputs).backward(
            mode,
            &Remembered(inputs),
            &plan,
            values(&inputs[0]),
            None,
            kept,
            values(&d_out),
        );
        let mut found = gradients(vec![d.x], d.norm, d.linears).into_iter();
        inputs.each_ref().map(|x| shaped(found.next(), x))
    }
}
