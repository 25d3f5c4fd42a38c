//! The perceptual distance matches recorded values, with weights from a formula.

use burn::tensor::{DType, Device, Tensor};
use rem::model::tokenizer::lpips::{Lpips, STAGES};
use rem::model::weights::{self, Array, Arrays};
use rem::run::import;
use rem_kernels::Precision;

use crate::compare::as_a_whole;
use crate::support::{Golden, in_f64};

#[test]
fn lpips_value_and_gradient_match() {
    let fixture = Fixture::load(Precision::F32);
    let (lpips, theirs) = (fixture.lpips(), &fixture.expected["grad_target"].data);
    // With these weights, two inputs of a max-pool are so close that f32 may select the other one, which changes
    // some gradients by a percent. So compare elements in f64 and whole tensors in f32.
    let tolerance = fixture.golden.tolerance;
    let ours = fixture.value_and_gradient(in_f64(lpips.clone()), DType::F64);
    tolerance.check("grad_target in F64", &ours, theirs, tolerance.gradients);
    let ours = fixture.value_and_gradient(lpips, DType::F32);
    as_a_whole("F32: grad_target", &ours, theirs, 5e-3, 0.0);
}

/// Does not compare the gradient: with these weights, errors of 1e-5 already change it by half of its norm.
#[test]
fn lpips_value_matches_in_mixed_precision() {
    let fixture = Fixture::load(Precision::Mixed);
    fixture.value_and_gradient(fixture.lpips(), DType::F32);
}

struct Fixture {
    golden: Golden,
    expected: Arrays,
}

impl Fixture {
    fn load(precision: Precision) -> Self {
        let golden = Golden::load(precision);
        let expected = import::read(&golden.dir.join("lpips/expected.safetensors")).unwrap();
        Self { golden, expected }
    }

    fn lpips(&self) -> Lpips {
        let blank = Lpips::new(self.golden.precision, &Device::flex());
        weights::apply(blank, formula_weights()).unwrap()
    }

    /// Checks the value and its mean. Returns the gradient of the mean with respect to the target.
    fn value_and_gradient(&self, lpips: Lpips, dtype: DType) -> Vec<f32> {
        let tensor = |name: &str| {
            Tensor::<4>::from_data(self.expected[name].to_data(), &Device::flex()).cast(dtype)
        };
        let check = |name: &str, ours: Tensor<1>| {
            let (ours, theirs) = (Array::from_tensor(ours.inner()), &self.expected[name]);
            let (what, tolerance) = (format!("{name} in {dtype:?}"), self.golden.tolerance);
            tolerance.check(&what, &ours.data, &theirs.data, tolerance.values);
        };
        let target = tensor("target").autodiff().require_grad();
        let last = |images: Tensor<4>| images.permute([0, 2, 3, 1]);
        let value = lpips.distance(last(tensor("input")), last(target.clone()));
        check("value", value.clone());
        let mean = value.mean();
        check("mean", mean.clone());
        Array::from_tensor(target.grad(&mean.backward()).unwrap()).data
    }
}

/// Weights from a formula, to avoid a 60 MB file.
fn formula_weights() -> Arrays {
    let mut arrays = Arrays::new();
    let (mut layer, mut from) = (0usize, 3usize);
    for (stage, &(count, width)) in STAGES.iter().enumerate() {
        for conv in 0..count {
            let fan_in = from * 9;
            let scale = (6.0 / fan_in as f64).sqrt();
            let weight = |i: usize| ((0.7 * i as f64 + layer as f64).sin() * scale) as f32;
            let bias = |i: usize| (0.01 * (i as f64 + layer as f64).sin()) as f32;
            let name = |part: &str| format!("stages.{stage}.convs.{conv}.{part}");
            let data = (0..width * fan_in).map(weight).collect();
            arrays.insert(
                name("weight"),
                Array {
                    shape: vec![width, from, 3, 3],
                    data,
                },
            );
            let data = (0..width).map(bias).collect();
            arrays.insert(
                name("bias"),
                Array {
                    shape: vec![width],
                    data,
                },
            );
            layer += 1;
            from = width;
        }
        let head = |i: usize| (0.1 * (i as f64 + stage as f64).sin().abs()) as f32;
        let data = (0..width).map(head).collect();
        arrays.insert(
            format!("heads.{stage}.weight"),
            Array {
                shape: vec![1, width, 1, 1],
                data,
            },
        );
    }
    arrays
}
