//! Convolutions, pooling, LSTM cells, losses, sampling, nearest codes.

use super::*;
use crate::backend::primitive::Primitive;
use crate::cpu::conv::ConvKind;
use crate::ops::conv::{self, ConvOps};
use crate::ops::cross_entropy::{self, CrossEntropyOps};
use crate::ops::feature_distance::{self, FeatureDistanceOps};
use crate::ops::lstm::{self, LstmOps};
use crate::ops::max_pool::{self, MaxPoolOps};
use crate::ops::nearest::{self, NearestOps};
use crate::ops::norm_conv::{self, NormConvOps, NormConvParameters};
use crate::ops::sample::{self, SampleOps};

const KINDS: [ConvKind; 4] = [
    ConvKind::Same,
    ConvKind::Down,
    ConvKind::Up,
    ConvKind::Pointwise,
];

/// The CPU sums the weights that fall on the same source pixel of an upsampled image before it rounds them.
fn apart(kind: ConvKind) -> impl Fn(usize) -> f64 {
    let apart = match kind {
        ConvKind::Up => 1.5,
        ConvKind::Same | ConvKind::Down | ConvKind::Pointwise => SAME_FACTORS,
    };
    move |_| apart
}

#[test]
fn conv_matches_the_reference() {
    for kind in KINDS {
        let (from, to, side) = (6, 10, kind.side());
        let shapes = [vec![2, 4, 6, from], vec![to, from, side, side], vec![to]];
        for activation in [Activation::None, Activation::Silu] {
            let run = |tuned: bool, precision: Precision| {
                outputs_and_gradients(&shapes, |x| {
                    let [x, w, b]: [Tensor; 3] = x.try_into().unwrap();
                    if tuned {
                        Ad::conv(x, w, b, activation, kind, precision)
                    } else {
                        conv::reference::<Ad>(
                            Primitive(x).activate(activation),
                            w,
                            b,
                            kind,
                            precision,
                        )
                    }
                })
            };
            assert_rounds_alike(run, apart(kind), &format!("{kind:?} {activation:?}"));
            let expected = run(false, Precision::F32);
            for (precision, tolerance) in PRECISIONS {
                assert_close(
                    &run(true, precision),
                    &expected,
                    tolerance,
                    &format!("{kind:?}"),
                );
            }
        }
    }
}

#[test]
fn norm_conv_matches_the_reference() {
    for kind in KINDS {
        let (from, to, side, groups) = (8, 5, kind.side(), 4);
        let weight = vec![to, from, side, side];
        let shapes = [
            vec![3, 6, 4, from],
            weight,
            vec![to],
            vec![from],
            vec![from],
        ];
        let run = |tuned: bool, precision: Precision| {
            outputs_and_gradients(&shapes, |x| {
                let [x, weight, bias, gamma, beta]: [Tensor; 5] = x.try_into().unwrap();
                let p = NormConvParameters {
                    gamma,
                    beta,
                    weight,
                    bias,
                };
                if tuned {
                    Ad::norm_conv(x, p, groups, kind, precision)
                } else {
                    norm_conv::reference::<Ad>(x, p, groups, kind, precision)
                }
            })
        };
        assert_rounds_alike(run, apart(kind), &format!("group norm, {kind:?}"));
        let expected = run(false, Precision::F32);
        assert_close(
            &run(true, Precision::F32),
            &expected,
            1e-4,
            &format!("{kind:?}"),
        );
        assert_close(
            &run(true, Precision::Mixed),
            &expected,
            0.1,
            &format!("{kind:?}"),
        );
    }
}

#[test]
fn max_pool_and_lstm_match_the_reference() {
    let pool = |tuned: bool| {
        outputs_and_gradients(&[vec![2, 4, 6, 5]], |x| {
            let [x]: [Tensor; 1] = x.try_into().unwrap();
            if tuned {
                Ad::max_pool_relu(x)
            } else {
                max_pool::reference::<Ad>(x)
            }
        })
    };
    assert_close(&pool(true), &pool(false), 1e-6, "max pool");
    let cell = |tuned: bool| {
        outputs_and_gradients(&[vec![7, 36], vec![7, 9]], |x| {
            let [gates, cells]: [Tensor; 2] = x.try_into().unwrap();
            if tuned {
                Ad::lstm_cell(gates, cells)
            } else {
                lstm::reference_cell::<Ad>(gates, cells)
            }
        })
    };
    assert_close(&cell(true), &cell(false), 1e-5, "LSTM cell");
    let shapes = [
        vec![5, 7, 36],
        vec![9, 36],
        vec![36],
        vec![7, 9],
        vec![7, 9],
    ];
    let sequence = |tuned: bool, precision: Precision| {
        outputs_and_gradients(&shapes, |x| {
            let inputs: [Tensor; 5] = x.try_into().unwrap();
            if !tuned {
                return lstm::reference_sequence::<Ad>(inputs, precision);
            }
            let [gates, weight, bias, hidden, cells] = inputs;
            Ad::lstm_sequence(gates, weight, bias, hidden, cells, precision)
        })
    };
    assert_rounds_alike(sequence, |_| SAME_FACTORS, "LSTM sequence");
    let expected = sequence(false, Precision::F32);
    for (precision, tolerance) in PRECISIONS {
        assert_close(
            &sequence(true, precision),
            &expected,
            tolerance,
            "LSTM sequence",
        );
    }
}

#[test]
fn cross_entropy_and_feature_distance_match_the_reference() {
    let targets = || FloatTensor::<Flex>::from_data(TensorData::from([3i64, 0, 6, 6, 2]));
    let loss = |tuned: bool| {
        outputs_and_gradients(&[vec![5, 7]], |x| {
            let [logits]: [Tensor; 1] = x.try_into().unwrap();
            if tuned {
                Ad::cross_entropy(logits, targets())
            } else {
                cross_entropy::reference::<Ad>(logits, targets())
            }
        })
    };
    assert_close(&loss(true), &loss(false), 1e-5, "cross-entropy");
    let constant = |shape: &[usize], seed: u64| {
        let data = TensorData::new(numbers(shape.iter().product(), seed), shape.to_vec());
        Tensor::new(FloatTensor::<Flex>::from_data(data))
    };
    let distance = |tuned: bool| {
        outputs_and_gradients(&[vec![2, 3, 4, 21]], |x| {
            let [b]: [Tensor; 1] = x.try_into().unwrap();
            let (a, head) = (constant(&[2, 3, 4, 21], 50), constant(&[21], 51));
            if tuned {
                Ad::feature_distance(a, b, head)
            } else {
                feature_distance::reference::<Ad>([a, b, head])
            }
        })
    };
    assert_close(&distance(true), &distance(false), 1e-4, "feature distance");
}

#[test]
fn samples_and_nearest_codes_equal_the_reference() {
    let flex = |shape: &[usize], seed: u64| {
        let data = TensorData::new(numbers(shape.iter().product(), seed), shape.to_vec());
        FloatTensor::<Flex>::from_data(data)
    };
    let draws = || {
        let draws: Vec<f32> = numbers(300, 7).iter().map(|x| (x + 1.0) / 2.0).collect();
        FloatTensor::<Flex>::from_data(TensorData::new(draws, [300]))
    };
    let ints =
        |t: FloatTensor<Flex>| -> Vec<i64> { t.into_data().convert::<i64>().try_to_vec().unwrap() };
    let tuned = ints(Flex::sample(flex(&[300, 11], 1), draws()));
    assert_eq!(
        tuned,
        ints(sample::reference::<Flex>(flex(&[300, 11], 1), draws()))
    );
    let tuned = ints(Flex::nearest(flex(&[130, 20], 1), flex(&[33, 20], 2)));
    assert_eq!(
        tuned,
        ints(nearest::reference::<Flex>(
            flex(&[130, 20], 1),
            flex(&[33, 20], 2)
        ))
    );
}
