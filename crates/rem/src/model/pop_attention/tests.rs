//! Attention over rotated queries and keys, and prediction tokens that leave no trace.

use super::*;
use crate::config::Config;
use crate::host;
use burn::tensor::Distribution;

const WIDTH: usize = 16;
const K: usize = 3;

fn network() -> PopAttention {
    let set = ["world_model.architecture=pop_attention".to_string()];
    let config = Config::load("debug", &set).unwrap();
    let device = Device::flex();
    device.seed(1);
    PopAttention::new(
        WIDTH,
        K,
        100.0,
        &config.world_model,
        Precision::F32,
        &device,
    )
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

fn difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    (a - b).abs().max().into_scalar()
}

/// ```python
/// import numpy as np
/// q = np.array([[1, 2, 0.5, 0], [0, -1, 1, 1]])
/// k = np.array([[1, 0, -1, 2], [0.5, 1, 0, 1]])
/// v = np.array([[1, 2, 3, 4], [3, 5, 7, 0]])
/// angles = np.outer([0, 1], [1, 0.01])
/// def turn(x):
///     (a, b), cos, sin = (x[:, ::2], x[:, 1::2]), np.cos(angles), np.sin(angles)
///     return np.stack([cos * a - sin * b, sin * a + cos * b], 2).reshape(2, 4)
/// w = np.exp(turn(q) @ turn(k).T / 2) * [[1, 0], [1, 1]]
/// print(w / w.sum(1, keepdims=True) @ v)
/// ```
#[test]
fn rotary_attention_matches_numpy() {
    let device = Device::flex();
    let heads = |x: [[f32; 4]; 2]| Tensor::<2>::from_floats(x, &device).reshape([1, 1, 2, 4]);
    let like = TensorCreationOptions::new(device.clone());
    let rotation = Rotation::new(0..2, 4, 100.0, &like);
    let queries = rotated(
        heads([[1.0, 2.0, 0.5, 0.0], [0.0, -1.0, 1.0, 1.0]]),
        &rotation,
    );
    let keys = rotated(
        heads([[1.0, 0.0, -1.0, 2.0], [0.5, 1.0, 0.0, 1.0]]),
        &rotation,
    );
    let values = heads([[1.0, 2.0, 3.0, 4.0], [3.0, 5.0, 7.0, 0.0]]);
    let y = causal_attention(queries.div_scalar(2.0), keys, values);
    let expected = [
        1.000000, 2.000000, 3.000000, 4.000000, 1.563535, 2.845303, 4.127071, 2.872929,
    ];
    for (found, expected) in host::floats(y).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

/// Outputs do not depend on how a sequence is divided, and predictions do not change what follows.
#[test]
fn the_cache_makes_calls_equal_to_one_pass() {
    let net = network();
    let x = random([2, 12, WIDTH]);
    let (whole, _) = net.forward(x.clone(), &PopAttentionState::empty());
    let (mut state, mut outputs, mut done) = (PopAttentionState::empty(), vec![], 0);
    for tokens in [1, 4, 2, 5] {
        let (y, next) = net.forward(x.clone().narrow(1, done, tokens), &state);
        outputs.push(y);
        (state, done) = (next, done + tokens);
        let length = state.length;
        let [first, second] = [net.predict(&state), net.predict(&state)];
        assert_eq!(difference(first, second), 0.0);
        assert_eq!((state.length, length), (done, done));
    }
    assert!(difference(Tensor::cat(outputs, 1), whole) < 1e-5);
}

/// The training pass predicts each block as imagination does, from what precedes the block alone.
#[test]
fn the_training_pass_equals_imagination() {
    let net = network();
    let (blocks, block_len) = (4, K + 1);
    let x = random([2, blocks * block_len, WIDTH]);
    for first in [0, 2] {
        let (last, predictions) = net.pop(x.clone(), blocks, first, Dropout::NONE);
        let mut state = PopAttentionState::empty();
        for block in 0..blocks {
            if block >= first.max(1) {
                let trained: Tensor<3> =
                    (predictions.clone().narrow(1, block - first, 1)).squeeze_dim(1);
                assert!(difference(trained, net.predict(&state)) < 1e-5);
            }
            let tokens = x.clone().narrow(1, block * block_len, block_len);
            let (output, next) = net.update_state(tokens, &state);
            state = next;
            let trained: Tensor<2> = last.clone().narrow(1, block, 1).squeeze_dim(1);
            assert!(difference(trained, output) < 1e-5);
        }
    }
}

#[test]
fn outputs_depend_on_the_order_of_tokens() {
    let net = network();
    let x = random([1, 2, WIDTH]);
    let swapped = Tensor::cat(
        vec![x.clone().narrow(1, 1, 1), x.clone().narrow(1, 0, 1)],
        1,
    );
    let repeat = |x: Tensor<3>| x.repeat_dim(1, 4);
    let outputs = |x| net.forward(repeat(x), &PopAttentionState::empty()).0;
    let [a, b] = [x, swapped].map(outputs);
    let last = |t: Tensor<3>| t.narrow(1, 7, 1);
    assert!(difference(last(a), last(b)) > 1e-3);
}
