//! Recurrent, chunkwise (any chunk length), parallel and POP's per-block computations are one function.

use burn::tensor::{Device, Distribution, Int, Tensor};
use rem::config::{Config, DecayRates};
use rem::retention::{Decay, DecayTables, block_states, next_state, outputs};
use rem::retnet::{RetNet, RetNetState};
use rem::world_model::{WorldModel, WorldModelSizes};

const HEADS: usize = 4;
const DIM: usize = 16;
const BATCH: usize = 3;

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

fn tables(tokens: usize) -> DecayTables {
    let decay = Decay::new(DecayRates::LogSpaced, HEADS);
    DecayTables::new(&decay, tokens, &(&Device::flex()).into())
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

/// Retention over pieces of the given lengths, the state handed on.
fn in_pieces(
    x: &[Tensor<4>; 3],
    state: Option<&Tensor<4>>,
    pieces: &[usize],
) -> (Tensor<4>, Tensor<4>) {
    let (mut start, mut state, mut out) = (0, state.cloned(), vec![]);
    for &length in pieces {
        let [q, k, v] = x.each_ref().map(|t| t.clone().narrow(2, start, length));
        let tables = tables(length);
        out.push(outputs(q, k.clone(), v.clone(), state.as_ref(), &tables));
        state = Some(next_state(k, v, state.as_ref(), &tables));
        start += length;
    }
    (Tensor::cat(out, 2), state.unwrap())
}

#[test]
fn retention_in_any_pieces() {
    let tokens = 26;
    let x = [(); 3].map(|()| random([BATCH, HEADS, tokens, DIM]));
    let beginning = random([BATCH, HEADS, DIM, DIM]);
    for state in [None, Some(&beginning)] {
        let (parallel, last) = in_pieces(&x, state, &[tokens]);
        for pieces in [
            vec![1; tokens],
            vec![13, 13],
            vec![5, 5, 5, 5, 5, 1],
            vec![3, 20, 2, 1],
            vec![25, 1],
        ] {
            let (out, end) = in_pieces(&x, state, &pieces);
            assert_agree(&format!("outputs in {pieces:?}"), out, parallel.clone());
            assert_agree(&format!("state after {pieces:?}"), end, last.clone());
        }
    }
}

#[test]
fn states_of_blocks_are_the_states_at_their_borders() {
    let (blocks, len) = (4, 7);
    let [k, v] = [(); 2].map(|()| random([BATCH, HEADS, blocks * len, DIM]));
    let beginning = random([BATCH, HEADS, DIM, DIM]);
    for state in [None, Some(&beginning)] {
        let (mut borders, end) = block_states(k.clone(), v.clone(), state, blocks, &tables(len));
        borders.push(end);
        assert_eq!(borders.len(), blocks + 1);
        for (j, here) in borders.into_iter().enumerate() {
            let expected = match (j, state) {
                (0, None) => Tensor::zeros(here.dims(), &Device::flex()),
                (0, Some(state)) => state.clone(),
                _ => {
                    let upto = |t: &Tensor<4>| t.clone().narrow(2, 0, j * len);
                    next_state(upto(&k), upto(&v), state, &tables(j * len))
                }
            };
            assert_agree(&format!("state before block {j}"), here, expected);
        }
    }
}

fn config(blocks_per_chunk: usize) -> Config {
    let set = [
        "world_model.dropout=0".to_string(),
        format!("world_model.blocks_per_chunk={blocks_per_chunk}"),
    ];
    Config::load("debug", &set).unwrap()
}

#[test]
fn the_network_in_any_pieces() {
    let config = config(3);
    let width = config.tokenizer.embedding;
    let net = RetNet::new(width, &config.world_model, &Device::flex());
    let past = random([BATCH, 9, width]);
    let x = random([BATCH, 20, width]);
    for state in [
        RetNetState::empty(),
        net.forward(past, &RetNetState::empty()).1,
    ] {
        let (parallel, last) = net.forward(x.clone(), &state);
        for pieces in [vec![1; 20], vec![7, 7, 6], vec![19, 1]] {
            let (mut start, mut now, mut out) = (0, state.clone(), vec![]);
            for length in pieces {
                let piece = x.clone().narrow(1, start, length);
                assert_agree(
                    "peeking",
                    net.peek(piece.clone(), &now),
                    net.forward(piece.clone(), &now).0,
                );
                let (y, next) = net.forward(piece, &now);
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

/// What POP predicts in one training pass, for every chunk length, is what imagination predicts step by step.
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
    let c = config(1);
    let weights = rem::weights::collect(&WorldModel::new(&c.world_model, sizes(&c), &device));
    let ints = |shape: [usize; 3], below: usize| -> Tensor<3, Int> {
        Tensor::<3>::random(shape, Distribution::Uniform(0.0, below as f64), &device).int()
    };
    let tokens = ints([BATCH, steps, k], c.tokenizer.vocabulary);
    let action_tokens: Tensor<2, Int> = ints([BATCH, steps, 1], actions).reshape([BATCH, steps]);
    let codes = random([c.tokenizer.vocabulary, c.tokenizer.embedding]);
    for blocks_per_chunk in [1, 2, 3, 7, 10] {
        let c = config(blocks_per_chunk);
        // The same weights for every chunk length.
        let model = WorldModel::new(&c.world_model, sizes(&c), &device);
        let model = rem::weights::apply(model, weights.clone()).unwrap();
        for first in [0, 2] {
            let p = model.predict(&codes, tokens.clone(), action_tokens.clone(), first);
            let mut state = RetNetState::empty();
            for t in 0..steps {
                if t > 0 && t >= first {
                    let ours = p
                        .observations
                        .clone()
                        .narrow(1, t - first, 1)
                        .squeeze_dim(1);
                    assert_agree("observations", ours, model.observation_logits(&state));
                }
                let block = tokens.clone().narrow(1, t, 1);
                let (output, next) =
                    model.fold(&codes, block, action_tokens.clone().narrow(1, t, 1), &state);
                state = next;
                let (reward, end) = model.outcome_logits(output);
                assert_agree(
                    "reward",
                    p.rewards.clone().narrow(1, t, 1).squeeze_dim(1),
                    reward,
                );
                assert_agree("end", p.ends.clone().narrow(1, t, 1).squeeze_dim(1), end);
            }
        }
    }
}
