//! Attention over rotated queries and keys, and prediction tokens that leave no trace.

use super::*;
use crate::config::Config;
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
        // Less than the sequences below, so that the cache grows.
        5,
        &config.world_model,
        100.0,
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

/// Outputs do not depend on how a sequence is divided, and predictions do not change what follows.
#[test]
fn the_cache_makes_calls_equal_to_one_pass() {
    let net = network();
    let x = random([2, 45, WIDTH]);
    let (mut cache, mut done) = (KvCache::empty(), 0);
    for tokens in [1, 4, 2, 5, 33] {
        let (y, next) = net.update_cache(x.clone().narrow(1, done, tokens), cache);
        (cache, done) = (next, done + tokens);
        let (whole, _) = net.update_cache(x.clone().narrow(1, 0, done), KvCache::empty());
        assert!(difference(y, whole) < 1e-5);
        let [first, second] = [net.predict(&cache), net.predict(&cache)];
        assert_eq!(difference(first, second), 0.0);
        assert_eq!(cache.length(), done);
    }
}

/// The training pass predicts each block as imagination does, from what precedes the block alone.
#[test]
fn the_training_pass_equals_imagination() {
    let net = network();
    let (blocks, block_len) = (4, K + 1);
    let x = random([2, blocks * block_len, WIDTH]);
    for first in [0, 2] {
        let (last, predictions) = net.pop(x.clone(), blocks, first, Dropout::NONE);
        let mut state = KvCache::empty();
        for block in 0..blocks {
            if block >= first.max(1) {
                let trained: Tensor<3> =
                    (predictions.clone().narrow(1, block - first, 1)).squeeze_dim(1);
                assert!(difference(trained, net.predict(&state)) < 1e-5);
            }
            let tokens = x.clone().narrow(1, block * block_len, block_len);
            let (output, next) = net.update_cache(tokens, state);
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
    let outputs = |x| net.update_cache(repeat(x), KvCache::empty()).0;
    let [a, b] = [x, swapped].map(outputs);
    assert!(difference(a, b) > 1e-3);
}
