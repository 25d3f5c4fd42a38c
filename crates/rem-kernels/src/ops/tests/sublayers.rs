//! Sublayers.

use burn::backend::Backend;

use super::*;
use crate::backend::flex::FlexTensor;
use crate::cpu::dropout::Dropout;
use crate::ops::SublayerMode;
use crate::ops::attention::{self, AttentionOps, AttentionParameters, AttentionSizes};
use crate::ops::dropout::DropoutOps;
use crate::ops::feed_forward::{self, FeedForwardOps, FeedForwardParameters, Hidden};
use crate::ops::retention::{
    self, InitialState, RetentionOps, RetentionParameters, RetentionSizes, RetentionTables,
};

fn feed_forward_parameters(x: &mut impl Iterator<Item = Tensor>) -> FeedForwardParameters<Ad> {
    let mut next = || x.next().unwrap();
    FeedForwardParameters {
        gamma: next(),
        beta: next(),
        up_weight: next(),
        up_bias: next(),
        down_weight: next(),
        down_bias: next(),
    }
}

#[test]
fn feed_forward_matches_the_reference() {
    for (rows, width, inner) in [(3, 4, 6), (131, 24, 50)] {
        let shapes: [Vec<usize>; 7] = [
            vec![rows, width],
            vec![width],
            vec![width],
            vec![width, inner],
            vec![inner],
            vec![inner, width],
            vec![width],
        ];
        let run = |tuned: bool, precision: Precision, activation| {
            outputs_and_gradients(&shapes, |x| {
                let mut x = x.into_iter();
                let first = x.next().unwrap();
                let p = feed_forward_parameters(&mut x);
                let mode = SublayerMode {
                    dropout: Dropout::NONE,
                    precision,
                };
                let hidden = Hidden {
                    activation,
                    dropout: true,
                };
                if tuned {
                    Ad::feed_forward(first, p, hidden, mode)
                } else {
                    feed_forward::reference::<Ad>(first, p, hidden, mode)
                }
            })
        };
        for activation in [Activation::Silu, Activation::Gelu] {
            let with = |tuned, precision| run(tuned, precision, activation);
            assert_rounds_alike(
                with,
                |_| SAME_FACTORS,
                &format!("feed-forward, {activation:?}"),
            );
            let expected = run(false, Precision::F32, activation);
            for (precision, tolerance) in PRECISIONS {
                assert_close(
                    &run(true, precision, activation),
                    &expected,
                    tolerance,
                    "feed-forward",
                );
            }
        }
    }
}

/// Tables like the model's, with arbitrary angles.
fn tables(sizes: RetentionSizes, dim: usize) -> RetentionTables<Ad> {
    let rows = sizes.tokens + sizes.predicted * sizes.block_tokens;
    let angles: Vec<f32> = (0..rows * dim)
        .map(|i| (i / dim) as f32 / (1 + i % dim / 2) as f32)
        .collect();
    let longest = sizes.chunk.max(sizes.block_tokens);
    let eta = |h: usize| 1.0 - 1.0 / (4.0 + 3.0 * h as f32);
    let powers = (0..sizes.heads).flat_map(|h| (0..=longest).map(move |i| eta(h).powi(i as i32)));
    let mask = (0..sizes.heads).flat_map(|h| {
        (0..longest * longest).map(move |i| match (i / longest).checked_sub(i % longest) {
            Some(power) => eta(h).powi(power as i32),
            None => 0.0,
        })
    });
    let constant = |values: Vec<f32>, shape: &[usize]| {
        Tensor::new(FloatTensor::<Flex>::from_data(TensorData::new(
            values,
            shape.to_vec(),
        )))
    };
    RetentionTables {
        cos: constant(angles.iter().map(|a| a.cos()).collect(), &[rows, dim]),
        sin: constant(angles.iter().map(|a| a.sin()).collect(), &[rows, dim]),
        mask: constant(mask.collect(), &[sizes.heads, longest, longest]),
        powers: constant(powers.collect(), &[sizes.heads, longest + 1]),
    }
}

fn retention_parameters<B: Backend>(
    x: &mut impl Iterator<Item = FloatTensor<B>>,
) -> RetentionParameters<B> {
    let mut next = || x.next().unwrap();
    RetentionParameters {
        gamma: next(),
        beta: next(),
        query_weight: next(),
        query_bias: next(),
        key_weight: next(),
        key_bias: next(),
        value_weight: next(),
        value_bias: next(),
        gate_weight: next(),
        gate_bias: next(),
        out_weight: next(),
        out_bias: next(),
    }
}

fn retention_shapes(rows: usize, width: usize) -> Vec<Vec<usize>> {
    let mut shapes = vec![vec![rows, width], vec![width], vec![width]];
    for _ in 0..5 {
        shapes.extend([vec![width, width], vec![width]]);
    }
    shapes
}

const SIZES: [RetentionSizes; 3] = [
    RetentionSizes {
        batch: 2,
        heads: 2,
        tokens: 15,
        chunk: 5,
        first_predicted: 1,
        predicted: 2,
        block_tokens: 4,
        shared: false,
        last_only: false,
    },
    RetentionSizes {
        batch: 3,
        heads: 3,
        tokens: 34,
        chunk: 17,
        first_predicted: 0,
        predicted: 2,
        block_tokens: 16,
        shared: false,
        last_only: true,
    },
    RetentionSizes {
        batch: 1,
        heads: 1,
        tokens: 21,
        chunk: 7,
        first_predicted: 0,
        predicted: 0,
        block_tokens: 0,
        shared: false,
        last_only: false,
    },
];

#[test]
fn retention_matches_the_reference() {
    for sizes in SIZES {
        let dim = 6;
        let width = sizes.heads * dim;
        let rows = sizes.batch * (sizes.tokens + sizes.predicted * sizes.block_tokens);
        let run = |tuned: bool, precision: Precision| {
            outputs_and_gradients(&retention_shapes(rows, width), |x| {
                let mut x = x.into_iter();
                let first = x.next().unwrap();
                let p = retention_parameters::<Ad>(&mut x);
                let mode = SublayerMode {
                    dropout: Dropout::NONE,
                    precision,
                };
                if tuned {
                    Ad::retention(first, p, tables(sizes, dim), sizes, mode)
                } else {
                    retention::reference::<Ad>(first, p, tables(sizes, dim), None, sizes, mode).0
                }
            })
        };
        // The gradients through a state are sums of three factors, one of them a power of η. The CPU multiplies it to
        // another factor before the rounding. These gradients reach rows, norm, queries, keys and values.
        let apart = |value: usize| match value {
            1..=9 => 0.8,
            _ => SAME_FACTORS,
        };
        assert_rounds_alike(run, apart, &format!("{sizes:?}"));
        let expected = run(false, Precision::F32);
        assert_close(
            &run(true, Precision::F32),
            &expected,
            1e-4,
            &format!("{sizes:?}"),
        );
        assert_close(
            &run(true, Precision::Mixed),
            &expected,
            0.15,
            &format!("mixed {sizes:?}"),
        );
    }
}

/// Shared prediction blocks give the same bits as copies of them, from a state, with and without a trajectory.
#[test]
fn shared_prediction_blocks_equal_copies_of_them() {
    let (batch, heads, dim, k) = (3, 2, 6, 17);
    let width = heads * dim;
    for (tokens, last_only) in [(0, false), (5, false), (5, true)] {
        let copied = RetentionSizes {
            batch,
            heads,
            tokens,
            chunk: tokens,
            first_predicted: usize::from(tokens > 0),
            predicted: 1,
            block_tokens: k,
            shared: false,
            last_only,
        };
        let once = RetentionSizes {
            shared: true,
            ..copied
        };
        let constant = |values: Vec<f32>, shape: &[usize]| {
            FlexTensor::from_data(TensorData::new(values, shape.to_vec()))
        };
        let trajectories = numbers(batch * tokens * width, 1);
        let block = numbers(k * width, 2);
        let state = numbers(batch * heads * dim * dim, 3);
        let run = |tuned: bool, sizes: RetentionSizes, precision: Precision| {
            let blocks = if sizes.shared { 1 } else { batch };
            let rows = [trajectories.clone(), block.repeat(blocks)].concat();
            let count = batch * tokens + blocks * k;
            let mut x = (retention_shapes(count, width).into_iter().enumerate())
                .map(|(i, shape)| constant(numbers(shape.iter().product(), 10 + i as u64), &shape));
            x.next();
            let p = retention_parameters::<Flex>(&mut x);
            let x = constant(rows, &[count, width]);
            let state = constant(state.clone(), &[batch, heads, dim, dim]);
            let t = tables(sizes, dim);
            let t = RetentionTables::<Flex> {
                cos: t.cos.into_primitive(),
                sin: t.sin.into_primitive(),
                mask: t.mask.into_primitive(),
                powers: t.powers.into_primitive(),
            };
            let mode = SublayerMode {
                dropout: Dropout::NONE,
                precision,
            };
            let given = InitialState::Given(state.clone());
            match (tuned, tokens) {
                (false, _) => {
                    values(retention::reference::<Flex>(x, p, t, Some(state), sizes, mode).0)
                }
                (true, 0) => values(Flex::retention_predict(x, p, t, state, sizes, mode)),
                (true, _) => values(Flex::retention_update_state(x, p, t, given, sizes, mode).0),
            }
        };
        for precision in [Precision::F32, Precision::Mixed] {
            let expected = run(true, copied, precision);
            assert_eq!(run(true, once, precision), expected, "{tokens} tokens");
        }
        let expected = run(true, once, Precision::F32);
        for sizes in [copied, once] {
            let reference = run(false, sizes, Precision::F32);
            let what = format!("{sizes:?}");
            assert_close(&[reference], std::slice::from_ref(&expected), 1e-4, &what);
        }
    }
}

fn attention_parameters(x: &mut impl Iterator<Item = Tensor>) -> AttentionParameters<Ad> {
    let mut next = || x.next().unwrap();
    AttentionParameters {
        gamma: next(),
        beta: next(),
        query_weight: next(),
        query_bias: next(),
        key_weight: next(),
        key_bias: next(),
        value_weight: next(),
        value_bias: next(),
        out_weight: next(),
        out_bias: next(),
    }
}

fn attention_shapes(rows: usize, width: usize) -> Vec<Vec<usize>> {
    let mut shapes = vec![vec![rows, width], vec![width], vec![width]];
    for _ in 0..4 {
        shapes.extend([vec![width, width], vec![width]]);
    }
    shapes
}

#[test]
fn attention_matches_the_reference() {
    for (batch, heads, tokens) in [(2, 2, 15), (1, 3, 97), (3, 1, 200)] {
        let width = 6 * heads;
        let sizes = AttentionSizes { batch, heads };
        let run = |tuned: bool, precision: Precision| {
            outputs_and_gradients(&attention_shapes(batch * tokens, width), |x| {
                let mut x = x.into_iter();
                let first = x.next().unwrap();
                let p = attention_parameters(&mut x);
                let mode = SublayerMode {
                    dropout: Dropout::NONE,
                    precision,
                };
                if tuned {
                    Ad::attention(first, p, sizes, mode)
                } else {
                    attention::reference::<Ad>(first, p, sizes, mode)
                }
            })
        };
        // A bias of the keys shifts all scores of a query equally: its gradient is rounding noise.
        const KEY_BIAS: usize = 1 + 6;
        let without_key_bias = |tuned, precision| {
            let mut values = run(tuned, precision);
            values.remove(KEY_BIAS);
            values
        };
        assert_rounds_alike(
            without_key_bias,
            |_| SAME_FACTORS,
            &format!("{sizes:?}, {tokens} tokens"),
        );
        let largest = |x: &[f32]| x.iter().fold(0f32, |m, x| m.max(x.abs()));
        let mut expected = run(false, Precision::F32);
        expected.remove(KEY_BIAS);
        for (precision, tolerance) in PRECISIONS {
            let what = format!("{sizes:?}, {tokens} tokens, {precision:?}");
            let mut found = run(true, precision);
            let (noise, size) = (largest(&found.remove(KEY_BIAS)), largest(&found[6]));
            assert!(noise <= 2.0 * tolerance * size, "{what}: {noise} of {size}");
            assert_close(&found, &expected, 2.0 * tolerance, &what);
        }
    }
}

fn attention_inputs(
    rows: usize,
    width: usize,
    seed: u64,
) -> (FlexTensor, AttentionParameters<Flex>) {
    let constant = |(i, shape): (usize, Vec<usize>)| {
        // The seed changes the rows, not the parameters.
        let seed = if i == 0 { seed } else { i as u64 };
        let data = numbers(shape.iter().product(), seed);
        FlexTensor::from_data(TensorData::new(data, shape))
    };
    let shapes = attention_shapes(rows, width);
    let mut x = shapes.into_iter().enumerate().map(constant);
    let first = x.next().unwrap();
    let mut next = || x.next().unwrap();
    let parameters = AttentionParameters {
        gamma: next(),
        beta: next(),
        query_weight: next(),
        query_bias: next(),
        key_weight: next(),
        key_bias: next(),
        value_weight: next(),
        value_bias: next(),
        out_weight: next(),
        out_bias: next(),
    };
    (first, parameters)
}

/// A shared cache is copied, an owned one is updated in place. The two bodies order the cache differently.
#[test]
fn cached_attention_matches_the_reference() {
    let (batch, heads, dim) = (2, 2, 6);
    let capacity = crate::cache_capacity(20);
    let sizes = AttentionSizes { batch, heads };
    let mode = SublayerMode {
        dropout: Dropout::NONE,
        precision: Precision::F32,
    };
    let empty = || {
        let shape = [batch, heads, 2, capacity, dim];
        FlexTensor::from_data(TensorData::new(vec![0f32; shape.iter().product()], shape))
    };
    let (mut reference, mut tuned, mut past) = (empty(), empty(), 0);
    let address = tuned.storage::<f32>().as_ptr();
    for tokens in [3, 1, 12, 2] {
        let inputs = || attention_inputs(batch * tokens, heads * dim, 100 + past as u64);
        let (x, p) = inputs();
        let expected = attention::reference_cached::<Flex>(x, p, reference, sizes, past, mode);
        let expected_values = [values(expected.0)];
        reference = expected.1;

        let (held, before) = (tuned.clone(), values(tuned.clone()));
        let (x, p) = inputs();
        let (y, copy) = Flex::attention_cached(x, p, held, sizes, past, mode);
        assert_close(&[values(y)], &expected_values, 2e-5, "shared cache");
        assert_eq!(values(tuned.clone()), before);
        assert_ne!(values(copy), before);

        let (x, p) = inputs();
        let (y, updated) = Flex::attention_cached(x, p, tuned, sizes, past, mode);
        assert_close(&[values(y)], &expected_values, 2e-5, "owned cache");
        assert_eq!(
            updated.storage::<f32>().as_ptr(),
            address,
            "the cache was copied"
        );
        tuned = updated;
        past += tokens;
    }
}

#[test]
fn backward_applies_the_dropout_masks_of_the_forward_pass() {
    for hidden_dropout in [true, false] {
        assert_gradients_with_dropout(hidden_dropout);
    }
}

/// Compares the slope of the output along a direction with the gradient.
fn assert_gradients_with_dropout(hidden_dropout: bool) {
    let (width, inner, sizes) = (12, 20, SIZES[0]);
    let rows = sizes.batch * (sizes.tokens + sizes.predicted * sizes.block_tokens);
    let mode = SublayerMode {
        dropout: Dropout { p: 0.3, seed: 5 },
        precision: Precision::F32,
    };
    let mut shapes = retention_shapes(rows, width);
    shapes.extend([
        vec![width],
        vec![width],
        vec![width, inner],
        vec![inner],
        vec![inner, width],
        vec![width],
    ]);
    // An attention sublayer follows; its first input is the output so far.
    shapes.extend(attention_shapes(rows, width).into_iter().skip(1));
    let run = |inputs: Vec<Tensor>| {
        let mut x = inputs.into_iter();
        let first = x.next().unwrap();
        let p = retention_parameters::<Ad>(&mut x);
        let first = Ad::dropout(first, mode.dropout.fold_in(9));
        let y = Ad::retention(first, p, tables(sizes, 6), sizes, mode);
        let p = feed_forward_parameters(&mut x);
        let hidden = Hidden {
            activation: Activation::Silu,
            dropout: hidden_dropout,
        };
        let y = Ad::feed_forward(y, p, hidden, mode);
        let sizes = AttentionSizes { batch: 1, heads: 2 };
        Ad::attention(y, attention_parameters(&mut x), sizes, mode)
    };
    let found = outputs_and_gradients(&shapes, run);
    let weights = numbers(rows * width, 99);
    let value = |step: f32| {
        let moved = shapes.iter().zip(1..).map(|(shape, seed)| {
            let count = shape.iter().product();
            let direction = numbers(count, 500 + seed);
            let moved = numbers(count, seed)
                .iter()
                .zip(direction)
                .map(|(x, d)| x + step * d)
                .collect();
            Tensor::new(FloatTensor::<Flex>::from_data(TensorData::new::<f32, _>(
                moved,
                shape.to_vec(),
            )))
        });
        let out = values(run(moved.collect()).into_primitive());
        out.iter()
            .zip(&weights)
            .map(|(o, w)| f64::from(*o) * f64::from(*w))
            .sum::<f64>()
    };
    let step = 1e-3;
    let slope = (value(step) - value(-step)) / (2.0 * f64::from(step));
    let along: f64 = found[1..]
        .iter()
        .zip(501..)
        .map(|(g, seed)| {
            let direction = numbers(g.len(), seed);
            g.iter()
                .zip(direction)
                .map(|(g, d)| f64::from(*g) * f64::from(d))
                .sum::<f64>()
        })
        .sum();
    assert!(
        (slope - along).abs() < 2e-2 * slope.abs().max(1.0),
        "{slope} and {along}"
    );
}

/// Without dropout of the hidden units, only whole outputs are dropped: they equal the residual.
#[test]
fn hidden_units_are_dropped_only_if_asked() {
    let (rows, width, inner) = (40, 8, 30);
    let shapes = [
        vec![rows, width],
        vec![width],
        vec![width],
        vec![width, inner],
        vec![inner],
        vec![inner, width],
        vec![width],
    ];
    let run = |hidden_dropout: bool, p: f32| {
        let mut inputs = (shapes.iter().zip(1..)).map(|(shape, seed)| leaf(shape, seed));
        let first = inputs.next().unwrap();
        let parameters = feed_forward_parameters(&mut inputs);
        let mode = SublayerMode {
            dropout: Dropout { p, seed: 5 },
            precision: Precision::F32,
        };
        let hidden = Hidden {
            activation: Activation::Gelu,
            dropout: hidden_dropout,
        };
        let out = Ad::feed_forward(first.clone(), parameters, hidden, mode);
        let [out, x] = [out, first].map(|t| values(t.into_primitive()));
        let added: Vec<f32> = out.iter().zip(&x).map(|(o, x)| o - x).collect();
        added
    };
    let whole = run(true, 0.0);
    // Each element that is kept is the whole one, scaled.
    let kept_whole = |dropped: &[f32]| {
        let pairs = dropped.iter().zip(&whole).filter(|(d, _)| **d != 0.0);
        pairs.clone().count() > 100 && pairs.clone().all(|(d, w)| (d * 0.7 - w).abs() < 1e-4)
    };
    let output_only = run(false, 0.3);
    assert!(output_only.contains(&0.0));
    assert!(kept_whole(&output_only));
    assert!(!kept_whole(&run(true, 0.3)));
}

/// Panics unless the norm of the difference is within `tolerance` of the norm.
fn assert_norms_close(found: FlexTensor, expected: FlexTensor, tolerance: f32, what: &str) {
    let (found, expected) = (values(found), values(expected));
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    let apart = norm(&mut found.iter().zip(&expected).map(|(a, b)| a - b));
    let size = norm(&mut expected.iter().copied());
    assert!(apart <= tolerance * size, "{what}: {apart} of {size}");
}

/// Blocks, single tokens and predictions from a state, and attention over a cache. Rounding to bfloat16 would be off by
/// about 4e-3.
#[test]
fn imagination_rounds_as_the_reference() {
    let (batch, heads, dim) = (3, 2, 6);
    let width = heads * dim;
    let mode = SublayerMode {
        dropout: Dropout::NONE,
        precision: Precision::Mixed,
    };
    let sizes = |tokens: usize, predicted: usize| RetentionSizes {
        batch,
        heads,
        tokens,
        chunk: tokens.max(1),
        first_predicted: 0,
        predicted,
        block_tokens: 5 * predicted,
        shared: false,
        last_only: false,
    };
    let leaves = |rows: usize| retention_shapes(rows, width).into_iter().zip(1..);
    let inputs = |rows: usize| leaves(rows).map(|(shape, seed)| leaf(&shape, seed));
    let flex = |x: Tensor| x.into_primitive();
    let parameters = || {
        let p = retention_parameters::<Ad>(&mut inputs(1).skip(1));
        RetentionParameters::<Flex> {
            gamma: flex(p.gamma),
            beta: flex(p.beta),
            query_weight: flex(p.query_weight),
            query_bias: flex(p.query_bias),
            key_weight: flex(p.key_weight),
            key_bias: flex(p.key_bias),
            value_weight: flex(p.value_weight),
            value_bias: flex(p.value_bias),
            gate_weight: flex(p.gate_weight),
            gate_bias: flex(p.gate_bias),
            out_weight: flex(p.out_weight),
            out_bias: flex(p.out_bias),
        }
    };
    let state = || flex(leaf(&[batch, heads, dim, dim], 70));
    let flex_tables = |s: RetentionSizes| {
        let t = tables(s, dim);
        RetentionTables::<Flex> {
            cos: flex(t.cos),
            sin: flex(t.sin),
            mask: flex(t.mask),
            powers: flex(t.powers),
        }
    };
    for tokens in [6, 1] {
        let s = sizes(tokens, 0);
        let x = || flex(inputs(batch * tokens).next().unwrap());
        let start = retention::InitialState::Given(state());
        let (y, last) =
            Flex::retention_update_state(x(), parameters(), flex_tables(s), start, s, mode);
        let (expected, expected_last) =
            retention::reference::<Flex>(x(), parameters(), flex_tables(s), Some(state()), s, mode);
        assert_norms_close(y, expected, 3e-4, &format!("{tokens} tokens"));
        let what = format!("the state after {tokens} tokens");
        assert_norms_close(last, expected_last.unwrap(), 3e-4, &what);
    }
    let s = sizes(0, 1);
    let x = || flex(inputs(batch * 5).next().unwrap());
    let y = Flex::retention_predict(x(), parameters(), flex_tables(s), state(), s, mode);
    let expected =
        retention::reference::<Flex>(x(), parameters(), flex_tables(s), Some(state()), s, mode);
    assert_norms_close(y, expected.0, 3e-4, "predictions");

    let sizes = AttentionSizes { batch, heads };
    let cache = || {
        let shape = [batch, heads, 2, crate::cache_capacity(7), dim];
        FlexTensor::from_data(TensorData::new(vec![0f32; shape.iter().product()], shape))
    };
    let (x, p) = attention_inputs(batch * 7, width, 100);
    let (y, _) = Flex::attention_cached(x, p, cache(), sizes, 0, mode);
    let (x, p) = attention_inputs(batch * 7, width, 100);
    let (expected, _) = attention::reference_cached::<Flex>(x, p, cache(), sizes, 0, mode);
    assert_norms_close(y, expected, 3e-4, "attention over a cache");
}
