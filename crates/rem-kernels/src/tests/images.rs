//! Images, cells, classes.

use super::*;
use crate::cpu::conv::ConvKind;
use crate::extension::{NormConvParameters, plain_norm_conv};
use crate::images;
use crate::plain::{self, Plain};

const KINDS: [ConvKind; 4] = [
    ConvKind::Same,
    ConvKind::Down,
    ConvKind::Up,
    ConvKind::Pointwise,
];

#[test]
fn convolutions_are_the_ordinary_ones() {
    for kind in KINDS {
        let (from, to, side) = (6, 10, kind.side());
        let shapes = [vec![2, 4, 6, from], vec![to, from, side, side], vec![to]];
        for activation in [Activation::None, Activation::Silu] {
            let run = |tuned: bool, precision: Precision| {
                outputs_and_gradients(&shapes, |x| {
                    let [x, w, b]: [Tensor; 3] = x.try_into().unwrap();
                    if tuned {
                        <Ad as Kernels>::conv(x, w, b, activation, kind, precision)
                    } else {
                        images::conv::<Ad>(Plain(x).activate(activation), w, b, kind, precision)
                    }
                })
            };
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
fn convolutions_of_normed_images_are_the_ordinary_ones() {
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
                    <Ad as Kernels>::norm_conv(x, p, groups, kind, precision)
                } else {
                    plain_norm_conv::<Ad>(x, p, groups, kind, precision)
                }
            })
        };
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
fn pooling_and_cells_are_the_ordinary_ones() {
    let pool = |tuned: bool| {
        outputs_and_gradients(&[vec![2, 4, 6, 5]], |x| {
            let [x]: [Tensor; 1] = x.try_into().unwrap();
            if tuned {
                <Ad as Kernels>::max_pool_relu(x)
            } else {
                images::max_pool_relu::<Ad>(x)
            }
        })
    };
    assert_close(&pool(true), &pool(false), 1e-6, "pooling");
    let cell = |tuned: bool| {
        outputs_and_gradients(&[vec![7, 36], vec![7, 9]], |x| {
            let [gates, cells]: [Tensor; 2] = x.try_into().unwrap();
            if tuned {
                <Ad as Kernels>::lstm_cell(gates, cells)
            } else {
                plain::lstm_cell::<Ad>(gates, cells)
            }
        })
    };
    assert_close(&cell(true), &cell(false), 1e-5, "cell");
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
                return plain::lstm_sequence::<Ad>(inputs, precision);
            }
            let [gates, weight, bias, hidden, cells] = inputs;
            <Ad as Kernels>::lstm_sequence(gates, weight, bias, hidden, cells, precision)
        })
    };
    let expected = sequence(false, Precision::F32);
    for (precision, tolerance) in PRECISIONS {
        assert_close(
            &sequence(true, precision),
            &expected,
            tolerance,
            "sequence of cells",
        );
    }
}

#[test]
fn losses_over_classes_and_features_are_the_ordinary_ones() {
    let targets = || FloatTensor::<Flex>::from_data(TensorData::from([3i64, 0, 6, 6, 2]));
    let loss = |tuned: bool| {
        outputs_and_gradients(&[vec![5, 7]], |x| {
            let [logits]: [Tensor; 1] = x.try_into().unwrap();
            if tuned {
                <Ad as Kernels>::cross_entropy(logits, targets())
            } else {
                plain::cross_entropy::<Ad>(logits, targets())
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
                <Ad as Kernels>::feature_distance(a, b, head)
            } else {
                images::feature_distance::<Ad>(a, b, head)
            }
        })
    };
    assert_close(
        &distance(true),
        &distance(false),
        1e-4,
        "distance of features",
    );
}

#[test]
fn draws_and_nearest_codes_are_the_ordinary_ones() {
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
    let tuned = ints(<Flex as Kernels>::sample(flex(&[300, 11], 1), draws()));
    assert_eq!(
        tuned,
        ints(plain::sample::<Flex>(flex(&[300, 11], 1), draws()))
    );
    let tuned = ints(<Flex as Kernels>::nearest(
        flex(&[130, 20], 1),
        flex(&[33, 20], 2),
    ));
    assert_eq!(
        tuned,
        ints(plain::nearest::<Flex>(
            flex(&[130, 20], 1),
            flex(&[33, 20], 2)
        ))
    );
}
