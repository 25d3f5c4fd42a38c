//! The tuned operations against their bodies of ordinary operations: values and gradients.

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::TensorData;

use crate::cpu::conv::ConvKind;
use crate::cpu::dropout::Dropout;
use crate::cpu::math::Activation;
use crate::cpu::testing::numbers;
use crate::cpu::tile::Precision;
use crate::extension::{Kernels, NormConvParameters, plain_linear, plain_norm_conv};
use crate::images;
use crate::plain::{self, Plain};
use crate::retnet::{self, *};

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

const PRECISIONS: [(Precision, f32); 2] = [(Precision::F32, 2e-5), (Precision::Mixed, 6e-2)];

#[test]
fn linear_is_the_ordinary_one() {
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
                plain_linear::<Ad>(x, w, b, activation, Precision::F32)
            });
            for (precision, tolerance) in PRECISIONS {
                let found = outputs_and_gradients(&shapes, |x| {
                    let [x, w, b] = unpack(x);
                    <Ad as Kernels>::linear(x, w, b, activation, precision)
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
fn the_feed_forward_half_is_the_ordinary_one() {
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
                let mode = HalfMode {
                    dropout: Dropout::NONE,
                    precision,
                };
                if tuned {
                    <Ad as Kernels>::feed_forward(first, p, activation, mode)
                } else {
                    retnet::feed_forward::<Ad>(first, p, activation, mode)
                }
            })
        };
        for activation in [Activation::Silu, Activation::Gelu] {
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

/// Tables of a retention, as the model makes them but for the angles, which are arbitrary.
fn tables(sizes: RetentionSizes, dim: usize) -> RetentionTables<Ad> {
    let turns = sizes.tokens + sizes.predicted * sizes.block_tokens;
    let angles: Vec<f32> = (0..turns * dim)
        .map(|i| (i / dim) as f32 / (1 + i % dim / 2) as f32)
        .collect();
    let longest = sizes.piece.max(sizes.block_tokens);
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
        cos: constant(angles.iter().map(|a| a.cos()).collect(), &[turns, dim]),
        sin: constant(angles.iter().map(|a| a.sin()).collect(), &[turns, dim]),
        mask: constant(mask.collect(), &[sizes.heads, longest, longest]),
        powers: constant(powers.collect(), &[sizes.heads, longest + 1]),
    }
}

fn retention_parameters(x: &mut impl Iterator<Item = Tensor>) -> RetentionParameters<Ad> {
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
        piece: 5,
        first_predicted: 1,
        predicted: 2,
        block_tokens: 4,
        last_only: false,
    },
    RetentionSizes {
        batch: 3,
        heads: 3,
        tokens: 34,
        piece: 17,
        first_predicted: 0,
        predicted: 2,
        block_tokens: 16,
        last_only: true,
    },
    RetentionSizes {
        batch: 1,
        heads: 1,
        tokens: 21,
        piece: 7,
        first_predicted: 0,
        predicted: 0,
        block_tokens: 0,
        last_only: false,
    },
];

#[test]
fn the_retention_half_is_the_ordinary_one() {
    for sizes in SIZES {
        let dim = 6;
        let width = sizes.heads * dim;
        let rows = sizes.batch * (sizes.tokens + sizes.predicted * sizes.block_tokens);
        let run = |tuned: bool, precision: Precision| {
            outputs_and_gradients(&retention_shapes(rows, width), |x| {
                let mut x = x.into_iter();
                let first = x.next().unwrap();
                let p = retention_parameters(&mut x);
                let mode = HalfMode {
                    dropout: Dropout::NONE,
                    precision,
                };
                if tuned {
                    <Ad as Kernels>::retention(first, p, tables(sizes, dim), sizes, mode)
                } else {
                    retnet::retention::<Ad>(first, p, tables(sizes, dim), None, sizes, mode).0
                }
            })
        };
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

#[test]
fn gradients_see_the_dropout_that_the_values_saw() {
    let (rows, width, inner, sizes) = (58, 12, 20, SIZES[0]);
    let rows = rows.min(sizes.batch * (sizes.tokens + sizes.predicted * sizes.block_tokens));
    let mode = HalfMode {
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
    let run = |inputs: Vec<Tensor>| {
        let mut x = inputs.into_iter();
        let first = x.next().unwrap();
        let p = retention_parameters(&mut x);
        let y = <Ad as Kernels>::retention(first, p, tables(sizes, 6), sizes, mode);
        <Ad as Kernels>::feed_forward(y, feed_forward_parameters(&mut x), Activation::Silu, mode)
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
