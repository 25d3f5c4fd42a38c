//! LSTM cells: one step, and whole sequences. Gates are in the order input, forget, cell, output.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use crate::backend::flex::{
    FlexTensor, PackCache, impl_for_flex, is_f32, mode, rows_and_width, shaped, tensor, values,
};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::isa::Isa;
use crate::cpu::lstm;
use crate::cpu::matmul::{Dense, Rows, matmul};
use crate::cpu::norm;
use crate::cpu::pack::Packer;
use crate::cpu::scratch::uninit_vec;
use crate::cpu::sublayer::{Mode, columns, row_sums, weight_gradient};
use crate::cpu::tile::{Precision, with_tile};

/// The pointwise part of an LSTM cell: the new hidden state and the new cell state.
///
/// # Shapes
/// - `gates`: `[rows, 4 * hidden]`, `cells`: `[rows, hidden]` -> two of `[rows, hidden]`
pub fn lstm_cell(gates: Tensor<2>, cells: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let [_, width] = cells.dims();
    let both = Dispatch::lstm_cell(gates.into_dispatch(), cells.into_dispatch());
    let both: Tensor<2> = Tensor::from_dispatch(both);
    (
        both.clone().narrow(1, 0, width),
        both.narrow(1, width, width),
    )
}

/// An LSTM over a sequence, from the inputs' share of the gates.
///
/// # Shapes
/// - `gates`: `[steps, rows, 4 * hidden]`, from the inputs
/// - `weight`, `bias`: `[hidden, 4 * hidden]`, `[4 * hidden]`, from the hidden state to the gates
/// - `hidden`, `cells`: `[rows, hidden]`, before the first step
/// - output: the hidden state after each step, `[steps, rows, hidden]`
pub fn lstm_sequence(
    gates: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    hidden: Tensor<2>,
    cells: Tensor<2>,
    precision: Precision,
) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::lstm_sequence(
        gates.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        hidden.into_dispatch(),
        cells.into_dispatch(),
        precision,
    ))
}

/// [`lstm_cell`] and [`lstm_sequence`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait LstmOps: Backend {
    /// Hidden state and cell state side by side, `[rows, 2 * hidden]`.
    fn lstm_cell(gates: FloatTensor<Self>, cells: FloatTensor<Self>) -> FloatTensor<Self> {
        reference_cell::<Self>(gates, cells)
    }

    /// The hidden state after each step.
    fn lstm_sequence(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        cells: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        reference_sequence::<Self>([gates, weight, bias, hidden, cells], precision)
    }
}

impl_for_flex!(LstmOps {
    fn lstm_cell(gates: FloatTensor<Self>, cells: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_f32(&gates) {
            return reference_cell::<Self>(gates, cells);
        }
        Self::run(LstmCell, [gates, cells])
    }

    fn lstm_sequence(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        cells: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        let inputs = [gates, weight, bias, hidden, cells];
        if !is_f32(&inputs[0]) {
            return reference_sequence::<Self>(inputs, precision);
        }
        Self::run(LstmSequence { precision }, inputs)
    }
});

pub(super) fn reference_cell<B: Backend>(
    gates: FloatTensor<B>,
    cells: FloatTensor<B>,
) -> FloatTensor<B> {
    let (gates, cells) = (Primitive::<B>(gates), Primitive::<B>(cells));
    let width = cells.dims()[1];
    let gate = |i: usize| gates.clone().narrow(1, i * width, width);
    let next = gate(1).sigmoid() * cells + gate(0).sigmoid() * gate(2).tanh();
    let hidden = gate(3).sigmoid() * next.clone().tanh();
    Primitive::cat(vec![hidden, next], 1).0
}

pub(super) fn reference_sequence<B: Backend>(
    [gates, weight, bias, hidden, cells]: [FloatTensor<B>; 5],
    precision: Precision,
) -> FloatTensor<B> {
    let shape = gates.shape();
    let (steps, batch, width) = (shape[0], shape[1], shape[2]);
    let (mut hidden, mut cells) = (Primitive::<B>(hidden), cells);
    let mut all = Vec::with_capacity(steps);
    for s in 0..steps {
        let from_input = Primitive::<B>(gates.clone())
            .narrow(0, s, 1)
            .reshape([batch, width]);
        let weight = Primitive(weight.clone());
        let gates = from_input + hidden.linear(weight, Primitive(bias.clone()), precision);
        let both = Primitive::<B>(reference_cell::<B>(gates.0, cells));
        hidden = both.clone().narrow(1, 0, width / 4);
        cells = both.narrow(1, width / 4, width / 4).0;
        all.push(hidden.clone().reshape([1, batch, width / 4]));
    }
    Primitive::cat(all, 0).0
}

#[derive(Clone, Debug)]
struct LstmCell;

/// Concatenates two `[rows, width]` along the columns.
fn concat_columns(a: &[f32], b: &[f32], width: usize) -> Vec<f32> {
    let mut columns = Vec::with_capacity(a.len() + b.len());
    for (a, b) in a.chunks_exact(width).zip(b.chunks_exact(width)) {
        columns.extend_from_slice(a);
        columns.extend_from_slice(b);
    }
    columns
}

impl Operation<Flex, 2> for LstmCell {
    type Saved = ();

    fn forward(&self, [gates, cells]: &[FlexTensor; 2]) -> (FlexTensor, ()) {
        let [rows, width] = rows_and_width(cells);
        let (mut hidden, mut next) = (uninit_vec(rows * width), uninit_vec(rows * width));
        lstm::cell(
            Isa::selected(),
            values(gates),
            values(cells),
            width,
            &mut hidden,
            &mut next,
        );
        (
            tensor(concat_columns(&hidden, &next, width), [rows, 2 * width]),
            (),
        )
    }

    fn backward(
        &self,
        [gates, cells]: &[FlexTensor; 2],
        _saved: (),
        d_out: FlexTensor,
        _wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let [rows, width] = rows_and_width(cells);
        let part = |which: usize| columns(values(&d_out), 2 * width, which * width, width);
        let (mut d_gates, mut d_cells) = (uninit_vec(rows * 4 * width), uninit_vec(rows * width));
        lstm::cell_backward(
            Isa::selected(),
            values(gates),
            values(cells),
            &part(0),
            &part(1),
            width,
            &mut d_gates,
            &mut d_cells,
        );
        [
            Some(tensor(d_gates, [rows, 4 * width])),
            Some(tensor(d_cells, [rows, width])),
        ]
    }
}

#[derive(Clone, Debug)]
struct LstmSequence {
    precision: Precision,
}

impl Operation<Flex, 5> for LstmSequence {
    /// The gates of all steps, the cell states before each step, the hidden states after each.
    type Saved = (Vec<f32>, Vec<f32>, FlexTensor);

    fn forward(&self, inputs: &[FlexTensor; 5]) -> (FlexTensor, Self::Saved) {
        let [from_inputs, weight, bias, hidden, cells] = inputs;
        let [batch, width] = rows_and_width(hidden);
        let steps = from_inputs.shape()[0];
        let (size, bias) = (batch * width, values(bias));
        let Mode { isa, precision } = mode(self.precision);
        let mut out = uninit_vec::<f32>(steps * size);
        let mut gates = uninit_vec::<f32>(steps * 4 * size);
        // Includes the cell states after the last step, which are not used.
        let mut all_cells = uninit_vec::<f32>((steps + 1) * size);
        all_cells[..size].copy_from_slice(values(cells));
        with_tile!(isa, precision, tile => {
            let panels = PackCache(inputs).panels(tile, &[values(weight)], width, false);
            for s in 0..steps {
                let (done, rest) = out.split_at_mut(s * size);
                let before = if s == 0 { values(hidden) } else { &done[(s - 1) * size..] };
                let from_input = &values(from_inputs)[s * 4 * size..][..4 * size];
                let gates = &mut gates[s * 4 * size..][..4 * size];
                matmul(tile, &Dense::new(before, width), &panels, gates, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(4 * width).enumerate() {
                        norm::add(isa, row, bias);
                        norm::add(isa, row, &from_input[(first + i) * 4 * width..][..4 * width]);
                    }
                });
                let (before, after) = all_cells.split_at_mut((s + 1) * size);
                lstm::cell(isa, gates, &before[s * size..], width, &mut rest[..size], &mut after[..size]);
            }
        });
        let out = tensor(out, [steps, batch, width]);
        (out.clone(), (gates, all_cells, out))
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 5],
        (gates, all_cells, out): Self::Saved,
        d_out: FlexTensor,
        _wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let [_, weight, _, hidden, _] = inputs;
        let [batch, width] = rows_and_width(hidden);
        let size = batch * width;
        let steps = gates.len() / (4 * size);
        let Mode { isa, precision } = mode(self.precision);
        let mut d_gates = uninit_vec::<f32>(gates.len());
        let (mut d_hidden, mut d_cells) = (vec![0f32; size], vec![0f32; size]);
        let mut d_before = vec![0f32; size];
        with_tile!(isa, precision, tile => {
            let transposed = PackCache(inputs).panels(tile, &[values(weight)], width, true);
            for s in (0..steps).rev() {
                norm::add(isa, &mut d_hidden, &values(&d_out)[s * size..][..size]);
                let d_gates = &mut d_gates[s * 4 * size..][..4 * size];
                let (gates, cells) = (&gates[s * 4 * size..][..4 * size], &all_cells[s * size..][..size]);
                lstm::cell_backward(isa, gates, cells, &d_hidden, &d_cells, width, d_gates, &mut d_before);
                std::mem::swap(&mut d_cells, &mut d_before);
                matmul(tile, &Dense::new(d_gates, 4 * width), &transposed, &mut d_hidden, |_, _| {});
            }
            let rows = steps * batch;
            let before = Before { first: values(hidden), rest: values(&out), width };
            let d_weight = weight_gradient(tile, &before, &Dense::new(&d_gates, 4 * width), rows);
            let d_bias = row_sums(isa, &Dense::new(&d_gates, 4 * width), rows);
            let found = [d_gates, d_weight, d_bias, d_hidden, d_cells];
            let mut found = found.into_iter();
            inputs.each_ref().map(|input| shaped(found.next(), input))
        })
    }
}

/// The hidden states before each step.
struct Before<'a> {
    first: &'a [f32],
    rest: &'a [f32],
    width: usize,
}

impl Rows for Before<'_> {
    fn width(&self) -> usize {
        self.width
    }
    fn row<'a>(&'a self, i: usize, _buffer: &'a mut [f32]) -> &'a [f32] {
        let at = i * self.width;
        match at.checked_sub(self.first.len()) {
            Some(at) => &self.rest[at..][..self.width],
            None => &self.first[at..][..self.width],
        }
    }
}
