//! LSTM cells, one and many.

use burn::backend::TensorMetadata;

use super::{FlexTensor, Operation, Remembered, mode, rows_and_width, shaped, tensor, values};
use crate::cpu::layer::{Mode, row_sums, weight_gradient};
use crate::cpu::level::Level;
use crate::cpu::lstm;
use crate::cpu::norm;
use crate::cpu::packed::Packed;
use crate::cpu::product::{Dense, Rows, product};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::{Precision, with_tile};

/// Gates `[rows, 4 * hidden]` and cells `[rows, hidden]` to new hidden values and cells side by side.
#[derive(Clone, Debug)]
pub(crate) struct LstmCell;

/// Two `[rows, width]` side by side.
fn beside(a: &[f32], b: &[f32], width: usize) -> Vec<f32> {
    let pairs = a.chunks_exact(width).zip(b.chunks_exact(width));
    pairs
        .flat_map(|(a, b)| a.iter().chain(b))
        .copied()
        .collect()
}

impl Operation<2> for LstmCell {
    type Kept = ();

    fn forward(&self, [gates, cells]: &[FlexTensor; 2]) -> (FlexTensor, ()) {
        let [rows, width] = rows_and_width(cells);
        let (mut hidden, mut next) = (unfilled(rows * width), unfilled(rows * width));
        lstm::cell(
            Level::of_this_machine(),
            values(gates),
            values(cells),
            width,
            &mut hidden,
            &mut next,
        );
        (tensor(beside(&hidden, &next, width), [rows, 2 * width]), ())
    }

    fn backward(
        &self,
        [gates, cells]: &[FlexTensor; 2],
        _kept: (),
        d_out: FlexTensor,
        _wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let [rows, width] = rows_and_width(cells);
        let half = |which: usize| -> Vec<f32> {
            let rows = values(&d_out).chunks_exact(2 * width);
            rows.flat_map(|row| &row[which * width..][..width])
                .copied()
                .collect()
        };
        let (mut d_gates, mut d_cells) = (unfilled(rows * 4 * width), unfilled(rows * width));
        lstm::cell_back(
            Level::of_this_machine(),
            values(gates),
            values(cells),
            &half(0),
            &half(1),
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

/// Cells one after the other.
#[derive(Clone, Debug)]
pub(crate) struct LstmSequence {
    pub precision: Precision,
}

impl Operation<5> for LstmSequence {
    /// All gates with what the hidden values gave, the cells before each step, the hidden values after each.
    type Kept = (Vec<f32>, Vec<f32>, FlexTensor);

    fn forward(&self, inputs: &[FlexTensor; 5]) -> (FlexTensor, Self::Kept) {
        let [given, weight, bias, hidden, cells] = inputs;
        let [batch, width] = rows_and_width(hidden);
        let steps = given.shape()[0];
        let (size, bias) = (batch * width, values(bias));
        let Mode { level, precision } = mode(self.precision);
        let mut out = unfilled::<f32>(steps * size);
        let mut gates = unfilled::<f32>(steps * 4 * size);
        // With the cells after the last step, which nobody wants.
        let mut all_cells = unfilled::<f32>((steps + 1) * size);
        all_cells[..size].copy_from_slice(values(cells));
        with_tile!(level, precision, tile => {
            let panels = Remembered(inputs).panels(tile, &[values(weight)], width, false);
            for s in 0..steps {
                let (done, rest) = out.split_at_mut(s * size);
                let before = if s == 0 { values(hidden) } else { &done[(s - 1) * size..] };
                let given = &values(given)[s * 4 * size..][..4 * size];
                let gates = &mut gates[s * 4 * size..][..4 * size];
                product(tile, &Dense::new(before, width), &panels, gates, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(4 * width).enumerate() {
                        norm::add(level, row, bias);
                        norm::add(level, row, &given[(first + i) * 4 * width..][..4 * width]);
                    }
                });
                let (before, after) = all_cells.split_at_mut((s + 1) * size);
                lstm::cell(level, gates, &before[s * size..], width, &mut rest[..size], &mut after[..size]);
            }
        });
        let out = tensor(out, [steps, batch, width]);
        (out.clone(), (gates, all_cells, out))
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 5],
        (gates, all_cells, out): Self::Kept,
        d_out: FlexTensor,
        _wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let [_, weight, _, hidden, _] = inputs;
        let [batch, width] = rows_and_width(hidden);
        let size = batch * width;
        let steps = gates.len() / (4 * size);
        let Mode { level, precision } = mode(self.precision);
        let mut d_gates = unfilled::<f32>(gates.len());
        let (mut d_hidden, mut d_cells) = (vec![0f32; size], vec![0f32; size]);
        let mut d_before = vec![0f32; size];
        with_tile!(level, precision, tile => {
            let turned = Remembered(inputs).panels(tile, &[values(weight)], width, true);
            for s in (0..steps).rev() {
                norm::add(level, &mut d_hidden, &values(&d_out)[s * size..][..size]);
                let d_gates = &mut d_gates[s * 4 * size..][..4 * size];
                let (gates, cells) = (&gates[s * 4 * size..][..4 * size], &all_cells[s * size..][..size]);
                lstm::cell_back(level, gates, cells, &d_hidden, &d_cells, width, d_gates, &mut d_before);
                std::mem::swap(&mut d_cells, &mut d_before);
                product(tile, &Dense::new(d_gates, 4 * width), &turned, &mut d_hidden, |_, _| {});
            }
            let rows = steps * batch;
            let before = Before { first: values(hidden), rest: values(&out), width };
            let d_weight = weight_gradient(tile, &before, &Dense::new(&d_gates, 4 * width), rows);
            let d_bias = row_sums(level, &Dense::new(&d_gates, 4 * width), rows);
            let found = [d_gates, d_weight, d_bias, d_hidden, d_cells];
            let mut found = found.into_iter();
            inputs.each_ref().map(|input| shaped(found.next(), input))
        })
    }
}

/// The hidden values before each step.
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
