//! Linear layers.

use burn::backend::TensorMetadata;

use super::{FlexTensor, Operation, Remembered, mode, rows_and_width, tensor, values};
use crate::cpu::dropout::Dropout;
use crate::cpu::layer::{self, Activated, Mode, row_sums, weight_gradient};
use crate::cpu::level::Level;
use crate::cpu::math::Activation;
use crate::cpu::packed::Packed;
use crate::cpu::product::{Dense, product};
use crate::cpu::scratch::unfilled;
use crate::cpu::tile::{Precision, with_tile};

/// `activation(x) · weight + bias`
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub activation: Activation,
    pub precision: Precision,
}

impl Linear {
    fn activated<'a>(&self, level: Level, x: &'a FlexTensor) -> Activated<'a> {
        Activated {
            level,
            x: values(x),
            width: rows_and_width(x)[1],
            activation: self.activation,
            dropout: Dropout::NONE,
        }
    }
}

impl Operation<3> for Linear {
    type Kept = ();

    fn forward(&self, inputs: &[FlexTensor; 3]) -> (FlexTensor, ()) {
        let [x, weight, bias] = inputs;
        let packed = Remembered(inputs);
        let Mode { level, precision } = mode(self.precision);
        let [rows, inputs] = rows_and_width(x);
        let bias = values(bias);
        let mut out = unfilled(rows * bias.len());
        with_tile!(level, precision, tile => {
            let panels = packed.panels(tile, &[values(weight)], inputs, false);
            product(tile, &self.activated(level, x), &panels, &mut out, |first, rows| {
                layer::add_bias(level, first, rows, bias);
            });
        });
        (tensor(out, [rows, bias.len()]), ())
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 3],
        _kept: (),
        d_out: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let [x, weight, bias] = inputs;
        let packed = Remembered(inputs);
        let Mode { level, precision } = mode(self.precision);
        let [rows, inputs] = rows_and_width(x);
        let outputs = bias.shape()[0];
        let activated = self.activated(level, x);
        let d_out = Dense::new(values(&d_out), outputs);
        with_tile!(level, precision, tile => {
            let d_x = wanted[0].then(|| {
                let mut d_x = unfilled(rows * inputs);
                let turned = packed.panels(tile, &[values(weight)], inputs, true);
                product(tile, &d_out, &turned, &mut d_x, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(inputs).enumerate() {
                        activated.back(first + i, row);
                    }
                });
                tensor(d_x, [rows, inputs])
            });
            let d_weight = wanted[1]
                .then(|| tensor(weight_gradient(tile, &activated, &d_out, rows), [inputs, outputs]));
            let d_bias = wanted[2].then(|| tensor(row_sums(level, &d_out, rows), [outputs]));
            [d_x, d_weight, d_bias]
        })
    }
}
