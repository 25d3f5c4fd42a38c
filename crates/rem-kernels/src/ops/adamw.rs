//! AdamW steps and gradient norms of many parameters at once.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::Tensor;

use crate::backend::flex::{FlexTensor, is_f32, values};
use crate::cpu::adamw::{self, AdamWStep};
use crate::cpu::isa::Isa;

/// A flattened parameter, its gradient and moments, and the constants of its step.
pub struct AdamWInput {
    /// The parameter.
    pub value: Tensor<1>,
    /// Its gradient, before clipping.
    pub gradient: Tensor<1>,
    /// First moment.
    pub first: Tensor<1>,
    /// Second moment.
    pub second: Tensor<1>,
    /// Constants of the step.
    pub step: AdamWStep,
}

/// A parameter and its moments after a step.
pub struct AdamWOutput {
    /// The parameter.
    pub value: Tensor<1>,
    /// First moment.
    pub first: Tensor<1>,
    /// Second moment.
    pub second: Tensor<1>,
}

/// The tensors on Flex, if all of them are there and of type f32.
fn on_flex(tensors: &[&Tensor<1>]) -> Option<Vec<FlexTensor>> {
    let find = |t: &&Tensor<1>| {
        (*t).clone()
            .try_into_primitive::<Flex>()
            .ok()
            .filter(is_f32)
    };
    tensors.iter().map(find).collect()
}

/// The sum of squares of each gradient.
pub fn sums_of_squares(gradients: &[Tensor<1>]) -> Vec<f64> {
    if gradients.is_empty() {
        return Vec::new();
    }
    if let Some(flex) = on_flex(&gradients.iter().collect::<Vec<_>>()) {
        let flex: Vec<FlexTensor> = flex.into_iter().map(|t| t.to_contiguous()).collect();
        let slices: Vec<&[f32]> = flex.iter().map(values).collect();
        return adamw::sums_of_squares(Isa::selected(), &slices);
    }
    // One read of all sums: on a GPU each read waits for the device.
    let sums = gradients.iter().map(|g| g.clone().square().sum()).collect();
    let sums: Vec<f32> = Tensor::cat(sums, 0)
        .try_into_vec_as()
        .expect("the device is readable");
    sums.into_iter().map(f64::from).collect()
}

/// One AdamW step for every parameter.
pub fn adamw(parameters: Vec<AdamWInput>) -> Vec<AdamWOutput> {
    let all = parameters
        .iter()
        .flat_map(|p| [&p.value, &p.gradient, &p.first, &p.second]);
    if on_flex(&all.collect::<Vec<_>>()).is_some() {
        on_flex_in_place(parameters)
    } else {
        parameters.into_iter().map(reference).collect()
    }
}

/// A contiguous tensor that spans its storage, for writing in place. Shared storage is copied on the first write.
fn whole_storage(tensor: Tensor<1>) -> FlexTensor {
    let tensor = tensor
        .try_into_primitive::<Flex>()
        .expect("checked by the caller");
    let whole =
        tensor.is_contiguous() && tensor.storage::<f32>().len() == tensor.shape().num_elements();
    if whole {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

fn on_flex_in_place(parameters: Vec<AdamWInput>) -> Vec<AdamWOutput> {
    let steps: Vec<AdamWStep> = parameters.iter().map(|p| p.step).collect();
    let mut tensors: Vec<[FlexTensor; 4]> = parameters
        .into_iter()
        .map(|p| [p.value, p.gradient, p.first, p.second].map(whole_storage))
        .collect();
    let job = tensors
        .iter_mut()
        .zip(steps)
        .map(
            |([value, gradient, first, second], step)| adamw::Parameter {
                step,
                values: value.storage_mut(),
                gradient: values(gradient),
                first: first.storage_mut(),
                second: second.storage_mut(),
            },
        );
    adamw::update_all(Isa::selected(), job.collect());
    let to_tensor = |t: FlexTensor| Tensor::from_primitive::<Flex>(t);
    let stepped = |[value, _, first, second]: [FlexTensor; 4]| AdamWOutput {
        value: to_tensor(value),
        first: to_tensor(first),
        second: to_tensor(second),
    };
    tensors.into_iter().map(stepped).collect()
}

fn reference(p: AdamWInput) -> AdamWOutput {
    let s = p.step;
    let gradient = p.gradient.mul_scalar(s.gradient_scale);
    let first = p.first.mul_scalar(s.beta_1) + gradient.clone().mul_scalar(1.0 - s.beta_1);
    let second = p.second.mul_scalar(s.beta_2) + gradient.square().mul_scalar(1.0 - s.beta_2);
    let denominator = second
        .clone()
        .sqrt()
        .div_scalar(s.bias_correction_2_sqrt)
        .add_scalar(s.epsilon);
    let moved = (first.clone() / denominator).mul_scalar(s.learning_rate / s.bias_correction_1);
    AdamWOutput {
        value: p.value.mul_scalar(s.decay_factor) - moved,
        first,
        second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::numbers;
    use burn::tensor::Device;

    fn parameters() -> Vec<AdamWInput> {
        let tensor = |seed: u64, count: usize| {
            let values = numbers(count, seed);
            Tensor::<1>::from_floats(&values[..], &Device::flex())
        };
        let parameter = |(i, count): (usize, usize)| AdamWInput {
            value: tensor(1, count),
            gradient: tensor(2, count),
            first: tensor(3, count),
            second: tensor(4, count).abs(),
            step: AdamWStep {
                learning_rate: 0.01 * (i + 1) as f64,
                beta_1: 0.9,
                beta_2: 0.999,
                epsilon: 1e-8,
                bias_correction_1: 0.1,
                bias_correction_2_sqrt: 0.03,
                decay_factor: 0.99,
                gradient_scale: 0.5,
            },
        };
        [5, 1000, 33]
            .into_iter()
            .enumerate()
            .map(parameter)
            .collect()
    }

    #[test]
    fn cpu_steps_match_the_reference() {
        let expected = parameters().into_iter().map(reference);
        for (found, expected) in adamw(parameters()).into_iter().zip(expected) {
            let pairs = [
                (found.value, expected.value),
                (found.first, expected.first),
                (found.second, expected.second),
            ];
            for (found, expected) in pairs {
                let worst: f32 = (found - expected).abs().max().into_scalar();
                assert!(worst < 1e-6, "{worst}");
            }
        }
    }

    #[test]
    fn shared_parameters_are_not_changed_in_place() {
        let parameters = parameters();
        let held = parameters[0].value.clone();
        let before: Vec<f32> = held.clone().try_into_vec_as().unwrap();
        adamw(parameters);
        let after: Vec<f32> = held.try_into_vec_as().unwrap();
        assert_eq!(before, after);
    }

    #[test]
    fn sums_of_squares_match_tensor_operations() {
        let gradients: Vec<Tensor<1>> = parameters().into_iter().map(|p| p.gradient).collect();
        for (sum, gradient) in sums_of_squares(&gradients).iter().zip(gradients) {
            let expected: f32 = gradient.square().sum().into_scalar();
            assert!((sum - f64::from(expected)).abs() < 1e-4 * sum);
        }
    }
}
