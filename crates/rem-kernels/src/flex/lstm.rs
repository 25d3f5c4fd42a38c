//! The pointwise part of an LSTM cell.

use super::{FlexTensor, Operation, rows_and_width, tensor, values};
use crate::cpu::level::Level;
use crate::cpu::lstm;
use crate::cpu::scratch::unfilled;

/// Gates `[rows, 4 * hidden]` and cells `[rows, hidden]` to new hidden values and cells side by side.
#[derive(Clone, Debug)]
pub(crate) struct LstmCell;

/// Two `[rows, width]` side by side.
fn beside(a: &[f32], b: &[f32], width: usize) -> Vec<f32> {
    let pairs = a.chunks_exact(width).zip(b.chunks_exact(width));
    pairs.flat_map(|(a, b)| a.iter().chain(b)).copied().collect()
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
            rows.flat_map(|row| &row[which * width..][..width]).copied().collect()
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
        [Some(tensor(d_gates, [rows, 4 * width])), Some(tensor(d_cells, [rows, width]))]
    }
}
