//! Recurrent, chunkwise (any chunk length), parallel and POP's per-block computations are one function.

use burn::tensor::{Device, Distribution, Int, Tensor};
use rem::config::Config;
use rem::retnet::{RetNet, RetNetState, Wanted};
use rem::world_model::{WorldModel, WorldModelSizes};
use rem_kernels::{Dropout, Precision};

const BATCH: usize = 3;

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

/// The largest difference, relative to the size of the values.
fn difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    let size: f32 = b.clone().abs().max().into_scalar();
    let worst: f32 = (a - b).abs().max().into_scalar();
    worst / size.max(1.0)
}

fn assert_agree<const D: usize>(what: &str, a: Tensor<D>, b: Tensor<D>) {
    let difference = difference(a, b);
    assert!(difference < 1e-4, "{what}: {difference}");
}

fn config() -> Config {
    Config::load("debug", &["world_model.dropout=0".to_string()]).unwrap()
}

#[test]
fn the_network_in_any_pieces() {
    let config = config();
    let width = config.tokenizer.embedding;
    let net = RetNet::new(width, &config.world_model, Precision::F32, &Device::flex());
    let past = random([BATCH, 9, width]);
    let x = random([BATCH, 20, width]);
    for state in [
        RetNetState::empty(),
        net.forward(past, &RetNetState::empty(), Wanted::All).1,
    ] {
        let (parallel, last) = net.forward(x.clone(), &state, Wanted::All);
        for pieces in [vec![1; 20], vec![7, 7, 6], vec![19, 1]] {
            let (mut start, mut now, mut out) = (0, state.clone(), vec![]);
            for length in pieces {
                let piece = x.clone().narrow(1, start, length);
                assert_agree(
                    "peeking",
                    net.peek(piece.clone(), &now),
                    net.forward(piece.clone(), &now, Wanted::All).0,
                );
                let (last, _) = net.forward(piece.clone(), &now, Wanted::Last);
                let (y, next) = net.forward(piece, &now, Wanted::All);
                assert_agree(
                    "the last output alone",
                    last,
                    y.clone().narrow(1, length - 1, 1),
                );
                out.push(y);
                now = next;
                start += length;
            }
            assert_agree("outputs", Tensor::cat(out, 1), parallel.clone());
            for (a, b) in now.layers().unwrap().iter().zip(last.layers().unwrap()) {
                assert_agree("states", a.clone(), b.clone());
            }
            assert_eq!(now.position(), last.position());
        }
    }
}

/// What POP predicts in one training pass is what imagination predicts step by step.
#[test]
fn training_forward_and_imagination() {
    let (k, steps, actions) = (16, 7, 3);
    let device = Device::flex();
    let sizes = |c: &Config| WorldModelSizes {
        width: c.tokenizer.embedding,
        vocabulary: c.tokenizer.vocabulary,
        tokens_per_obs: k,
        actions,
    };
    let c = config();
    let ints = |shape: [usize; 3], below: usize| -> Tensor<3, Int> {
        Tensor::<3>::random(shape, Distribution::Uniform(0.0, below as f64), &device).int()
    };
    let tokens = ints([BATCH, steps, k], c.tokenizer.vocabulary);
    let action_tokens: Tensor<2, Int> = ints([BATCH, steps, 1], actions).reshape([BATCH, steps]);
    let codes = random([c.tokenizer.vocabulary, c.tokenizer.embedding]);
    let model = WorldModel::new(&c.world_model, sizes(&c), Precision::F32, &device);
    for first in [0, 2] {
        let (all_tokens, all_actions) = (tokens.clone(), action_tokens.clone());
        let p = model.predict(&codes, all_tokens, all_actions, first, Dropout::NONE);
        let mut state = RetNetState::empty();
        for t in 0..steps {
            if t > 0 && t >= first {
                let ours = p.observations.clone().narrow(1, t - first, 1);
                let ours: Tensor<3> = ours.squeeze_dim(1);
                assert_agree("observations", ours, model.observation_logits(&state));
            }
            let block = tokens.clone().narrow(1, t, 1);
            let (output, next) =
                model.fold(&codes, block, action_tokens.clone().narrow(1, t, 1), &state);
            state = next;
            let (reward, end) = model.outcome_logits(output);
            let here = |x: &Tensor<3>| -> Tensor<2> { x.clone().narrow(1, t, 1).squeeze_dim(1) };
            assert_agree("reward", here(&p.rewards), reward);
            assert_agree("end", here(&p.ends), end);
        }
    }
}
