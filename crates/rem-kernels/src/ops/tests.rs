//! CPU bodies against reference bodies: outputs and gradients.

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::TensorData;

use crate::cpu::math::Activation;
use crate::cpu::testing::numbers;
use crate::cpu::tile::Precision;
use crate::ops::linear::{self, LinearOps};

mod attention;
mod dropout;
mod imagination;
mod others;
mod sublayers;

type Ad = Autodiff<Flex, NoCheckpointing>;
type Tensor = FloatTensor<Ad>;

fn leaf(shape: &[usize], seed: u64) -> Tensor {
    let count = shape.iter().product();
    let data = TensorData::new(numbers(count, seed), shape.to_vec());
    Tensor::new(FloatTensor::<Flex>::from_data(data)).require_grad()
}

fn values(x: FloatTensor<Flex>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// The output and the gradients of all inputs, for a fixed random gradient of the output.
fn outputs_and_gradients(
    shapes: &[Vec<usize>],
    run: impl Fn(Vec<Tensor>) -> Tensor,
) -> Vec<Vec<f32>> {
    let inputs: Vec<Tensor> = shapes
        .iter()
        .zip(1..)
        .map(|(s, seed)| leaf(s, seed))
        .collect();
    let out = run(inputs.clone());
    let shape = out.primitive().layout().shape().to_vec();
    let weights = leaf(&shape, 99);
    let mut found = vec![values(out.primitive().clone())];
    use burn::backend::ops::FloatTensorOps;
    let grads = Ad::float_sum(Ad::float_mul(out, weights)).backward();
    found.extend(
        inputs
            .iter()
            .map(|x| values(x.grad(&grads).expect("a gradient"))),
    );
    found
}

fn assert_close(found: &[Vec<f32>], expected: &[Vec<f32>], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        let size = expected.iter().fold(0f32, |m, e| m.max(e.abs())).max(1e-3);
        for (f, e) in found.iter().zip(expected) {
            assert!(
                (f - e).abs() <= tolerance * size,
                "{what}, value {i}: {f} for {e} (size {size})"
            );
        }
    }
}

/// Largest distance of the two bodies in mixed precision, relative to the distance from f32 that rounding causes.
///
/// Both round the same factors and sum in f32. What is left is the order of the sums, which now and then rounds a
/// factor of a later product to the other neighboring bfloat16.
const SAME_FACTORS: f64 = 0.05;

/// Panics unless both bodies agree in mixed precision: for each output and gradient, the norm of their difference is at
/// most `apart` of the norm of the reference's difference from f32.
fn assert_rounds_alike(
    run: impl Fn(bool, Precision) -> Vec<Vec<f32>>,
    apart: impl Fn(usize) -> f64,
    what: &str,
) {
    let [tuned, mixed] = [true, false].map(|tuned| run(tuned, Precision::Mixed));
    let exact = run(false, Precision::F32);
    let norm = |x: &mut dyn Iterator<Item = f32>| {
        let squares = x.map(|x| f64::from(x).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let distance = |a: &[f32], b: &[f32]| norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    let mut rounds = false;
    for (i, ((tuned, mixed), exact)) in tuned.iter().zip(&mixed).zip(&exact).enumerate() {
        let (found, rounding) = (distance(tuned, mixed), distance(mixed, exact));
        let size = norm(&mut exact.iter().copied());
        rounds |= rounding > 1e-4 * size;
        assert!(
            found <= apart(i) * rounding + 1e-5 * size,
            "{what}, value {i}: {found:e} apart, {rounding:e} from f32, size {size:e}"
        );
    }
    assert!(rounds, "{what}: mixed precision rounds nothing");
}

const PRECISIONS: [(Precision, f32); 2] = [(Precision::F32, 2e-5), (Precision::Mixed, 6e-2)];

#[test]
fn linear_matches_the_reference() {
    for (rows, inputs, outputs) in [(1, 3, 2), (37, 20, 33), (700, 65, 40)] {
        let shapes = [vec![rows, inputs], vec![inputs, outputs], vec![outputs]];
        for activation in [
            Activation::None,
            Activation::Relu,
            Activation::Silu,
            Activation::Gelu,
        ] {
            let unpack = |x: Vec<Tensor>| -> [Tensor; 3] { x.try_into().unwrap() };
            let expected = outputs_and_gradients(&shapes, |x| {
                let [x, w, b] = unpack(x);
                linear::reference::<Ad>([x, w, b], activation, Precision::F32)
            });
            let run = |tuned: bool, precision| {
                outputs_and_gradients(&shapes, |x| {
                    let [x, w, b] = unpack(x);
                    if tuned {
                        Ad::linear(x, w, b, activation, precision)
                    } else {
                        linear::reference::<Ad>([x, w, b], activation, precision)
                    }
                })
            };
            assert_rounds_alike(run, |_| SAME_FACTORS, &format!("{activation:?} {rows}"));
            for (precision, tolerance) in PRECISIONS {
                let found = outputs_and_gradients(&shapes, |x| {
                    let [x, w, b] = unpack(x);
                    Ad::linear(x, w, b, activation, precision)
                });
                assert_close(
                    &found,
                    &expected,
                    tolerance,
                    &format!("{activation:?} {rows}"),
                );
            }
        }
    }
}
