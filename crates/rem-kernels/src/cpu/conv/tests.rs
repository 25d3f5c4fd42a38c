//! All kinds against f64.

use super::reference::Reference;
use super::*;
use crate::cpu::group_norm;
use crate::cpu::math::Activation;
use crate::cpu::testing::{close, numbers};

const fn shape(images: usize, height: usize, width: usize, c_in: usize, c_out: usize) -> Shape {
    Shape {
        images,
        height,
        width,
        c_in,
        c_out,
    }
}

const CASES: [(ConvKind, Shape); 17] = [
    (ConvKind::Same, shape(2, 5, 7, 3, 5)),
    (ConvKind::Same, shape(1, 1, 1, 1, 1)),
    (ConvKind::Same, shape(2, 16, 16, 20, 40)),
    (ConvKind::Same, shape(1, 33, 31, 32, 3)),
    (ConvKind::Same, shape(7, 4, 4, 70, 33)),
    // More than one strip of rows to an image, forward and in the weight gradient.
    (ConvKind::Same, shape(1, 160, 34, 66, 17)),
    (ConvKind::Down, shape(2, 6, 10, 3, 5)),
    (ConvKind::Down, shape(3, 2, 2, 4, 4)),
    (ConvKind::Down, shape(2, 16, 16, 20, 40)),
    (ConvKind::Down, shape(1, 160, 34, 66, 17)),
    (ConvKind::Up, shape(2, 3, 4, 5, 6)),
    (ConvKind::Up, shape(3, 1, 1, 8, 3)),
    (ConvKind::Up, shape(2, 8, 8, 40, 20)),
    (ConvKind::Up, shape(1, 100, 33, 50, 17)),
    (ConvKind::Pointwise, shape(2, 5, 7, 3, 5)),
    (ConvKind::Pointwise, shape(2, 16, 16, 20, 40)),
    (ConvKind::Pointwise, shape(1, 9, 11, 64, 65)),
];

/// Twice the tolerance of shorter sums: long sums round at their own magnitude.
const LONG: usize = 4;

fn modes() -> impl Iterator<Item = (Isa, Precision)> {
    Isa::available()
        .flat_map(|isa| [Precision::F32, Precision::Mixed].map(|precision| (isa, precision)))
}

#[test]
fn forward_matches_f64() {
    for (kind, shape) in CASES {
        let x = numbers(shape.inputs(), 1);
        let weight = numbers(shape.weights(kind), 2);
        let bias = numbers(shape.c_out, 3);
        let terms = LONG * kind.side() * kind.side() * shape.c_in;
        for bias in [Some(&bias[..]), None] {
            let expected = Reference { kind, shape }.forward(&x, &weight, bias);
            for (isa, precision) in modes() {
                let mut out = vec![f32::NAN; shape.outputs(kind)];
                let identity = Stage::Identity;
                forward(
                    isa, precision, shape, kind, identity, &x, &weight, bias, &mut out,
                );
                let name = format!("{kind:?} {shape:?} {isa:?} {}", bias.is_some());
                close(&out, &expected, terms, precision, &name);
            }
        }
    }
}

#[test]
fn input_gradients_match_f64() {
    for (kind, shape) in CASES {
        let weight = numbers(shape.weights(kind), 2);
        let d_out = numbers(shape.outputs(kind), 3);
        let expected = Reference { kind, shape }.input_gradient(&weight, &d_out);
        let doubled = if kind == ConvKind::Up { 4 } else { 1 };
        let terms = LONG * doubled * kind.side() * kind.side() * shape.c_out;
        for (isa, precision) in modes() {
            let mut d_staged = vec![f32::NAN; shape.inputs()];
            input_gradient(isa, precision, shape, kind, &weight, &d_out, &mut d_staged);
            let name = format!("{kind:?} {shape:?} {isa:?}");
            close(&d_staged, &expected, terms, precision, &name);
        }
    }
}

#[test]
fn weight_gradients_match_f64() {
    for (kind, shape) in CASES {
        let x = numbers(shape.inputs(), 1);
        let d_out = numbers(shape.outputs(kind), 3);
        let expected = Reference { kind, shape }.weight_gradient(&x, &d_out);
        let terms = LONG * shape.outputs(kind) / shape.c_out;
        for (isa, precision) in modes() {
            let mut d_weight = vec![f32::NAN; shape.weights(kind)];
            let identity = Stage::Identity;
            weight_gradient(
                isa,
                precision,
                shape,
                kind,
                identity,
                &x,
                &d_out,
                &mut d_weight,
            );
            let name = format!("{kind:?} {shape:?} {isa:?}");
            close(&d_weight, &expected, terms, precision, &name);
        }
    }
}

/// A much tighter tolerance than that for bfloat16, which could hide a wrong pair of small weights.
#[test]
fn bf16_instructions_match_rounded_f32() {
    if !Isa::available().any(|isa| isa == Isa::Avx512Bf16) {
        return;
    }
    for (kind, shape) in CASES {
        let x = numbers(shape.inputs(), 1);
        let weight = numbers(shape.weights(kind), 2);
        let d_out = numbers(shape.outputs(kind), 3);
        let run = |isa: Isa| {
            let mut out = vec![0f32; shape.outputs(kind)];
            let mut d_staged = vec![0f32; shape.inputs()];
            let mut d_weight = vec![0f32; shape.weights(kind)];
            forward(
                isa,
                Precision::Mixed,
                shape,
                kind,
                Stage::Identity,
                &x,
                &weight,
                None,
                &mut out,
            );
            input_gradient(
                isa,
                Precision::Mixed,
                shape,
                kind,
                &weight,
                &d_out,
                &mut d_staged,
            );
            let identity = Stage::Identity;
            weight_gradient(
                isa,
                Precision::Mixed,
                shape,
                kind,
                identity,
                &x,
                &d_out,
                &mut d_weight,
            );
            [out, d_staged, d_weight]
        };
        let terms = 36 * shape.c_in.max(shape.c_out).max(shape.height * shape.width);
        for (pairs, rounded) in run(Isa::Avx512Bf16).iter().zip(&run(Isa::Avx512)) {
            close(
                pairs,
                rounded,
                terms,
                Precision::F32,
                &format!("{kind:?} {shape:?}"),
            );
        }
    }
}

#[test]
fn padding_is_added_after_the_stage() {
    for (kind, shape) in [
        (ConvKind::Same, shape(2, 5, 7, 6, 5)),
        (ConvKind::Down, shape(2, 6, 4, 6, 5)),
        (ConvKind::Up, shape(3, 3, 5, 20, 7)),
        (ConvKind::Pointwise, shape(2, 5, 7, 6, 5)),
    ] {
        let x: Vec<f32> = numbers(shape.inputs(), 1).iter().map(|x| x + 0.3).collect();
        let (gamma, beta) = (numbers(shape.c_in, 4), numbers(shape.c_in, 5));
        let weight = numbers(shape.weights(kind), 2);
        let d_out = numbers(shape.outputs(kind), 3);
        let (groups, pixels) = (2, shape.height * shape.width);
        for isa in Isa::available() {
            let statistics =
                group_norm::statistics(isa, &x, shape.images, pixels, shape.c_in, groups);
            let stages = [
                Stage::Activation(Activation::None),
                Stage::Activation(Activation::Relu),
                Stage::Activation(Activation::Silu),
                Stage::Activation(Activation::Gelu),
                Stage::GroupNormSilu {
                    groups,
                    gamma: &gamma,
                    beta: &beta,
                    mean_and_scale: &statistics,
                },
            ];
            for stage in stages {
                let staged = reference::staged(shape, stage, &x);
                let expected = Reference { kind, shape }.forward(&staged, &weight, None);
                let expected_gradient = Reference { kind, shape }.weight_gradient(&staged, &d_out);
                for precision in [Precision::F32, Precision::Mixed] {
                    let name = format!("{kind:?} {isa:?} {stage:?}");
                    let mut out = vec![f32::NAN; shape.outputs(kind)];
                    forward(
                        isa, precision, shape, kind, stage, &x, &weight, None, &mut out,
                    );
                    let terms = kind.side() * kind.side() * shape.c_in;
                    close(&out, &expected, terms, precision, &name);
                    let mut d_weight = vec![f32::NAN; shape.weights(kind)];
                    weight_gradient(
                        isa,
                        precision,
                        shape,
                        kind,
                        stage,
                        &x,
                        &d_out,
                        &mut d_weight,
                    );
                    let terms = shape.outputs(kind) / shape.c_out;
                    close(&d_weight, &expected_gradient, terms, precision, &name);
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_thread_count() {
    for (kind, shape) in [
        (ConvKind::Same, shape(1, 40, 24, 40, 48)),
        (ConvKind::Same, shape(9, 8, 8, 64, 48)),
        (ConvKind::Down, shape(5, 24, 24, 30, 40)),
        (ConvKind::Up, shape(3, 12, 10, 40, 20)),
        (ConvKind::Pointwise, shape(3, 24, 24, 40, 40)),
    ] {
        let x = numbers(shape.inputs(), 1);
        let weight = numbers(shape.weights(kind), 2);
        let d_out = numbers(shape.outputs(kind), 3);
        let run = |threads: usize, precision: Precision| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let (isa, stage) = (Isa::selected(), Stage::Activation(Activation::Silu));
            let mut out = vec![0f32; shape.outputs(kind)];
            let mut d_staged = vec![0f32; shape.inputs()];
            let mut d_weight = vec![0f32; shape.weights(kind)];
            pool.install(|| {
                forward(
                    isa, precision, shape, kind, stage, &x, &weight, None, &mut out,
                );
                input_gradient(isa, precision, shape, kind, &weight, &d_out, &mut d_staged);
                weight_gradient(
                    isa,
                    precision,
                    shape,
                    kind,
                    stage,
                    &x,
                    &d_out,
                    &mut d_weight,
                );
            });
            (out, d_staged, d_weight)
        };
        for precision in [Precision::F32, Precision::Mixed] {
            let alone = run(1, precision);
            assert!(
                alone == run(3, precision) && alone == run(16, precision),
                "{kind:?} {shape:?}"
            );
        }
    }
}

#[test]
fn empty_batches_give_zero_gradients() {
    let (kind, shape) = (ConvKind::Same, shape(0, 4, 4, 3, 2));
    let weight = numbers(shape.weights(kind), 2);
    let mut d_weight = vec![f32::NAN; weight.len()];
    for precision in [Precision::F32, Precision::Mixed] {
        let isa = Isa::selected();
        forward(
            isa,
            precision,
            shape,
            kind,
            Stage::Identity,
            &[],
            &weight,
            None,
            &mut [],
        );
        input_gradient(isa, precision, shape, kind, &weight, &[], &mut []);
        weight_gradient(
            isa,
            precision,
            shape,
            kind,
            Stage::Identity,
            &[],
            &[],
            &mut d_weight,
        );
        assert!(d_weight.iter().all(|d| *d == 0.0));
    }
}
