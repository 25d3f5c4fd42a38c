//! The attention half of a Transformer's layer.

use burn::backend::TensorMetadata;

use super::layers::gradients;
use super::{FlexTensor, Operation, Remembered, mode, rows_and_width, shaped, tensor, values};
use crate::attention::AttentionSizes;
use crate::cpu::attention::{CachePlan, Plan};
use crate::cpu::layer::{self, AttentionHalf, Norm};
use crate::retnet::HalfMode;

#[derive(Clone, Debug)]
pub(crate) struct Attention {
    pub sizes: AttentionSizes,
    pub mode: HalfMode,
}

impl Attention {
    fn plan(&self, [rows, width]: [usize; 2]) -> Plan {
        let AttentionSizes { batch, heads } = self.sizes;
        Plan {
            batch,
            heads,
            head_dim: width / heads,
            tokens: rows / batch,
            dropout: self.mode.dropout.place(0),
        }
    }

    fn half<'a>(&self, inputs: &'a [FlexTensor; 11]) -> AttentionHalf<'a> {
        let p = inputs.each_ref().map(values);
        let linear = |i: usize| layer::Linear {
            weight: p[i],
            bias: p[i + 1],
        };
        AttentionHalf {
            norm: Norm {
                gamma: p[1],
                beta: p[2],
            },
            query: linear(3),
            key: linear(5),
            value: linear(7),
            out: linear(9),
            dropout: self.mode.dropout.place(1),
        }
    }

    /// New tokens after `past` ones. A cache that nobody else holds is written in place.
    pub fn read(
        &self,
        inputs: [FlexTensor; 11],
        cache: FlexTensor,
        past: usize,
    ) -> (FlexTensor, FlexTensor) {
        let inputs = inputs.map(|x| x.to_contiguous());
        let [rows, width] = rows_and_width(&inputs[0]);
        let AttentionSizes { batch, heads } = self.sizes;
        let plan = CachePlan {
            batch,
            heads,
            head_dim: width / heads,
            tokens: rows / batch,
            past,
            capacity: cache.shape()[3],
        };
        let layout = cache.layout();
        let as_it_lies = layout.is_contiguous() && layout.start_offset() == 0;
        // A contiguous one would only be held twice by this, and then be copied.
        let mut cache = if as_it_lies {
            cache
        } else {
            cache.to_contiguous()
        };
        let out = self.half(&inputs).read(
            mode(self.mode.precision),
            &Remembered(&inputs),
            &plan,
            values(&inputs[0]),
            cache.storage_mut::<f32>(),
        );
        (tensor(out, [rows, width]), cache)
    }
}

impl Operation<11> for Attention {
    /// Queries, keys and values; what was attended to.
    type Kept = [FlexTensor; 2];

    fn forward(&self, inputs: &[FlexTensor; 11]) -> (FlexTensor, Self::Kept) {
        let sizes @ [rows, width] = rows_and_width(&inputs[0]);
        let (out, projections, attended) = self.half(inputs).forward(
            mode(self.mode.precision),
            &Remembered(inputs),
            &self.plan(sizes),
            values(&inputs[0]),
        );
        let kept = [
            tensor(projections, [rows, 3 * width]),
            tensor(attended, sizes),
        ];
        (tensor(out, sizes), kept)
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 11],
        kept: Self::Kept,
        d_out: FlexTensor,
        _wanted: [bool; 11],
    ) -> [Option<FlexTensor>; 11] {
        let [projections, attended] = kept.each_ref().map(values);
        let d = self.half(inputs).backward(
            mode(self.mode.precision),
            &Remembered(inputs),
            &self.plan(rows_and_width(&inputs[0])),
            values(&inputs[0]),
            projections,
            attended,
            values(&d_out),
        );
        let mut found = gradients(vec![d.x], d.norm, d.linears).into_iter();
        inputs.each_ref().map(|x| shaped(found.next(), x))
    }
}
