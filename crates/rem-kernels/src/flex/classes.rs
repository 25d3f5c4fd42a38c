//! Rows of logits and of latents to classes: losses, draws, nearest codes.

use burn::backend::tensor::IntTensor;
use burn::backend::{Flex, TensorMetadata, get_or_init_device_settings};
use burn::tensor::TensorData;

use super::{FlexTensor, Operation, integers, rows_and_width, tensor, values};
use crate::cpu::level::Level;
use crate::cpu::scratch::unfilled;
use crate::cpu::{cross_entropy, nearest, sampling};

/// Cross-entropy of each row of logits with the class that it should have named.
#[derive(Clone, Debug)]
pub(crate) struct CrossEntropy {
    targets: Vec<i64>,
}

impl CrossEntropy {
    pub fn new(targets: &IntTensor<Flex>) -> Self {
        Self {
            targets: integers(targets),
        }
    }
}

impl Operation<1> for CrossEntropy {
    /// The logarithm of each row's sum of exponentials.
    type Kept = Vec<f32>;

    fn forward(&self, [logits]: &[FlexTensor; 1]) -> (FlexTensor, Vec<f32>) {
        let [rows, _] = rows_and_width(logits);
        let (mut losses, mut log_sums) = (unfilled(rows), unfilled(rows));
        let level = Level::of_this_machine();
        cross_entropy::forward(
            level,
            values(logits),
            &self.targets,
            &mut losses,
            &mut log_sums,
        );
        (tensor(losses, [rows]), log_sums)
    }

    fn backward(
        &self,
        [logits]: &[FlexTensor; 1],
        log_sums: Vec<f32>,
        d_out: FlexTensor,
        _wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let mut d_logits = unfilled(values(logits).len());
        cross_entropy::backward(
            Level::of_this_machine(),
            values(logits),
            &self.targets,
            &log_sums,
            values(&d_out),
            &mut d_logits,
        );
        [Some(tensor(d_logits, rows_and_width(logits)))]
    }
}

/// A tensor of the integers that the device has by default.
fn integer_tensor(values: Vec<i64>, like: &FlexTensor) -> IntTensor<Flex> {
    let count = values.len();
    let settings = get_or_init_device_settings::<Flex>(&like.device());
    let data = TensorData::new(values, [count]).convert_dtype(settings.int_dtype.into());
    FlexTensor::from_data(data)
}

/// A class for each row of logits, by a uniform draw for each.
pub(crate) fn sample(logits: FlexTensor, draws: FlexTensor) -> IntTensor<Flex> {
    let (logits, draws) = (logits.to_contiguous(), draws.to_contiguous());
    let mut drawn = vec![0; draws.shape()[0]];
    sampling::sample(
        Level::of_this_machine(),
        values(&logits),
        values(&draws),
        &mut drawn,
    );
    integer_tensor(drawn, &logits)
}

/// The nearest code of each row.
pub(crate) fn nearest(rows: FlexTensor, codes: FlexTensor) -> IntTensor<Flex> {
    let (rows, codes) = (rows.to_contiguous(), codes.to_contiguous());
    let [count, width] = rows_and_width(&rows);
    let mut found = vec![0; count];
    nearest::nearest(
        Level::of_this_machine(),
        values(&rows),
        values(&codes),
        width,
        &mut found,
    );
    integer_tensor(found, &rows)
}
