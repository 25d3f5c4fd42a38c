//! Where sublayers drop activations: compared with plain computations, in both bodies.

use super::attention::{attention_parameters, attention_shapes, causal};
use super::sublayers::{
    SIZES, feed_forward_parameters, retention_parameters, retention_shapes, tables,
};
use super::*;
use crate::backend::flex::FlexTensor;
use crate::cpu::dropout::Dropout;
use crate::ops::SublayerMode;
use crate::ops::attention::{
    self, AttentionOps, AttentionParameters, AttentionSizes, Positions, PredictionBlocks,
};
use crate::ops::dropout::DropoutOps;
use crate::ops::feed_forward::{self, FeedForwardOps, FeedForwardParameters, Hidden};
use crate::ops::retention::{
    self, RetentionOps, RetentionParameters, RetentionSizes, RetentionTables,
};

const P: f32 = 0.4;
const KEEP: f32 = 1.0 - P;
const ROWS: usize = 96;
const MODE: SublayerMode = SublayerMode {
    dropout: Dropout { p: P, seed: 7 },
    precision: Precision::F32,
};

fn constant(shape: &[usize], values: impl Fn(usize) -> f32) -> FlexTensor {
    let data: Vec<f32> = (0..shape.iter().product()).map(values).collect();
    FlexTensor::from_data(TensorData::new(data, shape.to_vec()))
}

fn all(shape: &[usize], value: f32) -> FlexTensor {
    constant(shape, |_| value)
}

fn identity(width: usize) -> FlexTensor {
    constant(&[width, width], |i| f32::from(i % width == i / width))
}

fn input(width: usize) -> FlexTensor {
    let x = numbers(ROWS * width, 3);
    constant(&[ROWS, width], |i| x[i])
}

/// What a sublayer adds to its input, which must survive: `[ROWS, width]`.
fn added(x: FlexTensor, y: FlexTensor) -> Vec<f32> {
    let pairs = values(y).into_iter().zip(values(x));
    pairs.map(|(y, x)| y - x).collect()
}

/// Panics unless about the fraction `P` of elements is dropped.
fn assert_dropped(dropped: usize, of: usize, what: &str) {
    let (dropped, of) = (dropped as f32, of as f32);
    let deviation = (P * KEEP / of).sqrt();
    assert!(
        (dropped / of - P).abs() < 5.0 * deviation,
        "{what}: {dropped} of {of} dropped"
    );
}

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() < 1e-4
}

/// The elements that the dropout of the output keeps, without its scale and the output's bias of 3; checks its rate.
fn kept_outputs(added: &[f32], what: &str) -> Vec<Option<f32>> {
    let outputs = added
        .iter()
        .map(|a| (!close(*a, 0.0)).then(|| a * KEEP - 3.0));
    let outputs: Vec<_> = outputs.collect();
    let dropped = outputs.iter().filter(|o| o.is_none()).count();
    assert_dropped(dropped, added.len(), &format!("{what}, output"));
    outputs
}

#[test]
fn feed_forward_drops_hidden_activations_and_its_output() {
    let width = 16;
    // The hidden activations are silu(2), the output is hidden + 3.
    let parameters = || FeedForwardParameters {
        gamma: all(&[width], 1.0),
        beta: all(&[width], 0.0),
        up_weight: all(&[width, width], 0.0),
        up_bias: all(&[width], 2.0),
        down_weight: identity(width),
        down_bias: all(&[width], 3.0),
    };
    let hidden = 2.0 / (1.0 + (-2f32).exp());
    let x = input(width);
    let sublayer = Hidden {
        activation: Activation::Silu,
        dropout: true,
    };
    for (body, y) in [
        (
            "CPU",
            Flex::feed_forward(x.clone(), parameters(), sublayer, MODE),
        ),
        (
            "reference",
            feed_forward::reference::<Flex>(x.clone(), parameters(), sublayer, MODE),
        ),
    ] {
        let outputs = kept_outputs(&added(x.clone(), y), body);
        let kept: Vec<f32> = outputs.into_iter().flatten().collect();
        let dropped = kept.iter().filter(|h| close(**h, 0.0)).count();
        let scaled = kept.iter().filter(|h| close(**h, hidden / KEEP)).count();
        assert_eq!(dropped + scaled, kept.len(), "{body}");
        assert_dropped(dropped, kept.len(), &format!("{body}, hidden"));
    }
}

#[test]
fn attention_drops_weights_after_the_softmax_and_its_output() {
    let (heads, dim) = (2, 8);
    let width = heads * dim;
    let (batch, tokens) = (8, ROWS / 8);
    // All scores are equal and all values are 1: the sum of n weights of 1 / n, of which some are dropped.
    let parameters = || AttentionParameters {
        gamma: all(&[width], 1.0),
        beta: all(&[width], 0.0),
        query_weight: all(&[width, width], 0.0),
        query_bias: all(&[width], 1.0),
        key_weight: all(&[width, width], 0.0),
        key_bias: all(&[width], 1.0),
        value_weight: all(&[width, width], 0.0),
        value_bias: all(&[width], 1.0),
        out_weight: identity(width),
        out_bias: all(&[width], 3.0),
    };
    let (x, sizes) = (input(width), causal(batch, heads));
    for (body, y) in [
        (
            "CPU",
            Flex::attention(x.clone(), parameters(), Positions::Embedded, sizes, MODE),
        ),
        (
            "reference",
            attention::reference::<Flex>(x.clone(), parameters(), Positions::Embedded, sizes, MODE),
        ),
    ] {
        let outputs = kept_outputs(&added(x.clone(), y), body);
        let (mut dropped, mut weights) = (0, 0);
        for (i, head) in outputs.chunks_exact(dim).enumerate() {
            let seen = (i / heads) % tokens + 1;
            let mut kept = head.iter().flatten();
            let Some(first) = kept.next() else { continue };
            // The channels of a head share their weights.
            assert!(kept.all(|x| close(*x, *first)), "{body}: {head:?}");
            let count = first * KEEP * seen as f32;
            assert!(
                (count - count.round()).abs() < 1e-2,
                "{body}: {count} weights"
            );
            dropped += seen - count.round() as usize;
            weights += seen;
        }
        assert_dropped(dropped, weights, &format!("{body}, weights"));
    }
}

#[test]
fn retention_drops_retained_values_before_their_norm_and_its_output() {
    let (heads, dim) = (2, 6);
    let width = heads * dim;
    let sizes = RetentionSizes {
        batch: 4,
        heads,
        tokens: ROWS / 4,
        chunk: 6,
        first_predicted: 0,
        predicted: 0,
        block_tokens: 0,
        shared: false,
        last_only: false,
    };
    // Queries and keys are constant and not rotated: the retained values are positive multiples of `value`.
    let value = [0.3f32, -1.0, 2.0, 0.9, -0.4, 1.5];
    let gate = 1.0 / (1.0 + (-1f32).exp());
    let parameters = || RetentionParameters {
        gamma: all(&[width], 1.0),
        beta: all(&[width], 0.0),
        query_weight: all(&[width, width], 0.0),
        query_bias: all(&[width], 40.0),
        key_weight: all(&[width, width], 0.0),
        key_bias: all(&[width], 40.0),
        value_weight: all(&[width, width], 0.0),
        value_bias: constant(&[width], |i| value[i % dim]),
        gate_weight: all(&[width, width], 0.0),
        gate_bias: all(&[width], 1.0),
        out_weight: identity(width),
        out_bias: all(&[width], 3.0),
    };
    let eta = |head: usize| 1.0 - 1.0 / (4.0 + head as f32);
    let tables = || RetentionTables {
        cos: all(&[sizes.tokens, dim], 1.0),
        sin: all(&[sizes.tokens, dim], 0.0),
        mask: constant(&[heads, 6, 6], |i| {
            let power = (i / 6 % 6).checked_sub(i % 6);
            power.map_or(0.0, |p| eta(i / 36).powi(p as i32))
        }),
        powers: constant(&[heads, 7], |i| eta(i / 7).powi((i % 7) as i32)),
    };
    // What the norm makes of the values that a mask keeps.
    let normalized = |mask: usize| -> [f32; 6] {
        let kept: [f32; 6] =
            std::array::from_fn(|i| if mask >> i & 1 == 1 { value[i] } else { 0.0 });
        let mean = kept.iter().sum::<f32>() / dim as f32;
        let variance = kept.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / dim as f32;
        kept.map(|x| gate * (x - mean) / variance.sqrt().max(1e-3))
    };
    let (x, masks) = (input(width), 1usize << dim);
    for (body, y) in [
        (
            "CPU",
            Flex::retention(x.clone(), parameters(), tables(), sizes, MODE),
        ),
        (
            "reference",
            retention::reference::<Flex>(x.clone(), parameters(), tables(), None, sizes, MODE).0,
        ),
    ] {
        let outputs = kept_outputs(&added(x.clone(), y), body);
        let (mut dropped, mut certain) = (0, 0);
        for head in outputs.chunks_exact(dim) {
            let fits = |mask: &usize| {
                let pairs = head.iter().zip(normalized(*mask));
                pairs
                    .filter_map(|(h, n)| Some((*h)? - n))
                    .all(|d| d.abs() < 1e-3)
            };
            let found: Vec<usize> = (0..masks).filter(fits).collect();
            assert!(
                !found.is_empty(),
                "{body}: no dropout before the norm gives {head:?}"
            );
            // All six channels are visible: only one mask fits, unless at most one value is left.
            if head.iter().all(Option::is_some) && found.len() == 1 {
                dropped += dim - found[0].count_ones() as usize;
                certain += dim;
            }
        }
        assert!(certain > 0 && dropped > 0, "{body}: {dropped} of {certain}");
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
        // The rows are a sequence of two chunks and a block that is predicted from the first.
        let sizes = AttentionSizes {
            predictions: PredictionBlocks {
                count: 1,
                tokens: rows - 2 * 15,
                first: 1,
                chunk: 15,
            },
            ..causal(1, 2)
        };
        let p = attention_parameters(&mut x);
        Ad::attention(y, p, Positions::Embedded, sizes, mode)
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
