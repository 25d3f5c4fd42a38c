//! Retention and feed-forward sublayers.

use burn::backend::Backend;

use super::*;
use crate::backend::flex::FlexTensor;
use crate::cpu::dropout::Dropout;
use crate::ops::SublayerMode;
use crate::ops::feed_forward::{self, FeedForwardOps, FeedForwardParameters, Hidden};
use crate::ops::retention::{
    self, InitialState, RetentionOps, RetentionParameters, RetentionSizes, RetentionTables,
};

pub(super) fn feed_forward_parameters(
    x: &mut impl Iterator<Item = Tensor>,
) -> FeedForwardParameters<Ad> {
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
pub(super) fn tables(sizes: RetentionSizes, dim: usize) -> RetentionTables<Ad> {
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

pub(super) fn retention_parameters<B: Backend>(
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

pub(super) fn retention_shapes(rows: usize, width: usize) -> Vec<Vec<usize>> {
    let mut shapes = vec![vec![rows, width], vec![width], vec![width]];
    for _ in 0..5 {
        shapes.extend([vec![width, width], vec![width]]);
    }
    shapes
}

pub(super) const SIZES: [RetentionSizes; 3] = [
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
