//! The attention sublayer.

use burn::backend::Backend;

use super::*;
use crate::backend::flex::FlexTensor;
use crate::cpu::dropout::Dropout;
use crate::ops::SublayerMode;
use crate::ops::attention::{
    self, AttentionOps, AttentionParameters, AttentionSizes, CachedSizes, Positions,
    PredictionBlocks,
};

pub(super) fn attention_parameters<B: Backend>(
    x: &mut impl Iterator<Item = FloatTensor<B>>,
) -> AttentionParameters<B> {
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

pub(super) fn attention_shapes(rows: usize, width: usize) -> Vec<Vec<usize>> {
    let mut shapes = vec![vec![rows, width], vec![width], vec![width]];
    for _ in 0..4 {
        shapes.extend([vec![width, width], vec![width]]);
    }
    shapes
}

/// Sequences without prediction blocks.
pub(super) fn causal(batch: usize, heads: usize) -> AttentionSizes {
    AttentionSizes {
        batch,
        heads,
        predictions: PredictionBlocks::NONE,
        weight_dropout: true,
    }
}

/// Rotations from the row `first` on, by arbitrary angles.
pub(super) fn rotary(first: usize, rows: usize, dim: usize) -> Positions<Flex> {
    let angle = |i: usize| (first + i / dim) as f32 / (1 + i % dim / 2) as f32;
    let table = |f: fn(f32) -> f32| {
        let values: Vec<f32> = (0..rows * dim).map(|i| f(angle(i))).collect();
        FlexTensor::from_data(TensorData::new(values, [rows, dim]))
    };
    Positions::Rotary {
        cos: table(f32::cos),
        sin: table(f32::sin),
    }
}

fn with_autodiff(positions: Positions<Flex>) -> Positions<Ad> {
    match positions {
        Positions::Embedded => Positions::Embedded,
        Positions::Rotary { cos, sin } => Positions::Rotary {
            cos: Tensor::new(cos),
            sin: Tensor::new(sin),
        },
    }
}

const DIM: usize = 6;

/// Compares the two bodies over sequences of `tokens` rows, with rotary positions or without.
fn assert_matches_the_reference(sizes: AttentionSizes, tokens: usize, is_rotary: bool) {
    let width = DIM * sizes.heads;
    let rows = tokens + sizes.predictions.count * sizes.predictions.tokens;
    let positions = || match is_rotary {
        true => with_autodiff(rotary(0, rows, DIM)),
        false => Positions::Embedded,
    };
    let run = |tuned: bool, precision: Precision| {
        outputs_and_gradients(&attention_shapes(sizes.batch * rows, width), |x| {
            let mut x = x.into_iter();
            let first = x.next().unwrap();
            let p = attention_parameters::<Ad>(&mut x);
            let mode = SublayerMode {
                dropout: Dropout::NONE,
                precision,
            };
            if tuned {
                Ad::attention(first, p, positions(), sizes, mode)
            } else {
                attention::reference::<Ad>(first, p, positions(), sizes, mode)
            }
        })
    };
    // Without rotation, a bias of the keys shifts all scores of a query equally: its gradient is rounding noise.
    const KEY_BIAS: usize = 1 + 6;
    let without_key_bias = |tuned, precision| {
        let mut values = run(tuned, precision);
        if !is_rotary {
            values.remove(KEY_BIAS);
        }
        values
    };
    let what = format!("{sizes:?}, {tokens} tokens, rotary: {is_rotary}");
    assert_rounds_alike(without_key_bias, |_| SAME_FACTORS, &what);
    let largest = |x: &[f32]| x.iter().fold(0f32, |m, x| m.max(x.abs()));
    let expected = without_key_bias(false, Precision::F32);
    for (precision, tolerance) in PRECISIONS {
        let what = format!("{what}, {precision:?}");
        let mut found = run(true, precision);
        if !is_rotary {
            let (noise, size) = (largest(&found.remove(KEY_BIAS)), largest(&found[6]));
            assert!(noise <= 2.0 * tolerance * size, "{what}: {noise} of {size}");
        }
        assert_close(&found, &expected, 2.0 * tolerance, &what);
    }
}

#[test]
fn attention_matches_the_reference() {
    for (batch, heads, tokens) in [(2, 2, 15), (1, 3, 97), (3, 1, 200)] {
        for is_rotary in [false, true] {
            assert_matches_the_reference(causal(batch, heads), tokens, is_rotary);
        }
    }
}

#[test]
fn attention_with_prediction_blocks_matches_the_reference() {
    let cases = [
        (2, 2, 3, [2, 4, 1, 5]),
        (3, 3, 2, [2, 16, 0, 17]),
        (1, 2, 3, [1, 7, 2, 33]),
    ];
    for (batch, heads, chunks, [count, tokens, first, chunk]) in cases {
        let sizes = AttentionSizes {
            predictions: PredictionBlocks {
                count,
                tokens,
                first,
                chunk,
            },
            ..causal(batch, heads)
        };
        for is_rotary in [false, true] {
            assert_matches_the_reference(sizes, chunks * chunk, is_rotary);
        }
    }
}

pub(super) fn attention_inputs(
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
    (first, attention_parameters(&mut x))
}

/// An empty cache.
pub(super) fn empty_cache(batch: usize, heads: usize, tokens: usize) -> FlexTensor {
    let shape = [batch, heads, 2, crate::cache_capacity(tokens), DIM];
    FlexTensor::from_data(TensorData::new(vec![0f32; shape.iter().product()], shape))
}

/// A shared cache is copied, an owned one is updated in place, and predictions leave it as it is. The two bodies order
/// the cache differently.
#[test]
fn cached_attention_matches_the_reference() {
    let (batch, heads) = (2, 2);
    let mode = SublayerMode {
        dropout: Dropout::NONE,
        precision: Precision::F32,
    };
    for is_rotary in [false, true] {
        let [mut reference, mut tuned] = [0, 1].map(|_| empty_cache(batch, heads, 57));
        let mut past = 0;
        let address = tuned.storage::<f32>().as_ptr();
        for tokens in [3, 1, 12, 20, 2, 19] {
            let sizes = CachedSizes { batch, heads, past };
            let positions = || match is_rotary {
                true => rotary(past, tokens, DIM),
                false => Positions::Embedded,
            };
            let inputs = || attention_inputs(batch * tokens, heads * DIM, 100 + past as u64);
            let (x, p) = inputs();
            let same = reference.clone();
            let predicted =
                attention::reference_predict::<Flex>(x, p, positions(), same, sizes, mode);
            let (x, p) = inputs();
            let expected =
                attention::reference_cached::<Flex>(x, p, positions(), reference, sizes, mode);
            let expected_values = [values(expected.0)];
            assert_close(&[values(predicted)], &expected_values, 2e-5, "reference");
            reference = expected.1;

            let (held, before) = (tuned.clone(), values(tuned.clone()));
            let (x, p) = inputs();
            let y = Flex::attention_predict(x, p, positions(), held.clone(), sizes, mode);
            assert_close(&[values(y)], &expected_values, 2e-5, "prediction");
            let (x, p) = inputs();
            let (y, copy) = Flex::attention_cached(x, p, positions(), held, sizes, mode);
            assert_close(&[values(y)], &expected_values, 2e-5, "shared cache");
            assert_eq!(values(tuned.clone()), before);
            assert_ne!(values(copy), before);

            let (x, p) = inputs();
            let (y, updated) = Flex::attention_cached(x, p, positions(), tuned, sizes, mode);
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
}

/// Zeros after the last token's place leave the tokens where they are.
#[test]
fn a_cache_can_grow() {
    use burn::backend::ops::FloatTensorOps;
    let (batch, heads, mode) = (
        2,
        2,
        SublayerMode {
            dropout: Dropout::NONE,
            precision: Precision::F32,
        },
    );
    let step = |cache: FlexTensor, past: usize, tokens: usize| {
        let (x, p) = attention_inputs(batch * tokens, heads * DIM, past as u64);
        let sizes = CachedSizes { batch, heads, past };
        Flex::attention_cached(x, p, rotary(past, tokens, DIM), cache, sizes, mode)
    };
    let (_, large) = step(empty_cache(batch, heads, 40), 0, 16);
    let (_, small) = step(empty_cache(batch, heads, 16), 0, 16);
    let grown = Flex::float_cat(vec![small, empty_cache(batch, heads, 24)], 3);
    let [found, expected] = [grown, large].map(|cache| values(step(cache, 16, 20).0));
    assert_eq!(found, expected);
}
