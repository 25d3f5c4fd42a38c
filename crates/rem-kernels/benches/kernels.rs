//! Benchmarks of the kernels at the sizes of training: `cargo bench -p rem-kernels`.
//!
//! Matrix products count FLOPs as items, so that items per second are FLOP/s.

use divan::Bencher;
use divan::counter::ItemsCount;
use rem_kernels::cpu::conv::{self, ConvKind, Shape, Stage};
use rem_kernels::cpu::dropout::Dropout;
use rem_kernels::cpu::isa::Isa;
use rem_kernels::cpu::math::Activation;
use rem_kernels::cpu::matmul::{Dense, matmul};
use rem_kernels::cpu::pack::{Packer, Uncached};
use rem_kernels::cpu::retention::{self, Plan, Projections};
use rem_kernels::cpu::rotation::Rotation;
use rem_kernels::cpu::sublayer::weight_gradient;
use rem_kernels::cpu::tile::{Bf16Avx512, F32, Precision};
use rem_kernels::cpu::{attention, cross_entropy, group_norm};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, which the bindings do not define.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() {
    // SAFETY: sets a number that the allocator reads when it frees.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
    divan::main();
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 2_654_435_761) % 2001) as f32 / 1000.0 - 1.0)
        .collect()
}

/// Rows, inputs and outputs: projections and feed-forward of the world model, the same in a dream, one token.
const PRODUCTS: [(usize, usize, usize); 5] = [
    (18592, 256, 512),
    (18592, 256, 1024),
    (18592, 1024, 256),
    (1040, 256, 1024),
    (16, 256, 1024),
];

/// Runs `$body` with `$tile` for f32 and, where the processor has it, bfloat16.
macro_rules! for_precision {
    ($precision:expr, $tile:ident => $body:expr) => {
        match ($precision, Isa::selected()) {
            ("mixed", Isa::Avx512Bf16) => {
                let $tile = Bf16Avx512;
                $body
            }
            (_, isa) => {
                let $tile = F32(isa);
                $body
            }
        }
    };
}

#[divan::bench(args = PRODUCTS, consts = [0, 1])]
fn linear<const MIXED: usize>(bencher: Bencher, (rows, inputs, outputs): (usize, usize, usize)) {
    let (x, w) = (numbers(rows * inputs), numbers(inputs * outputs));
    let mut out = vec![0f32; rows * outputs];
    for_precision!(["f32", "mixed"][MIXED], tile => {
        let panels = Uncached.panels(tile, &[&w], inputs, false);
        bencher.counter(ItemsCount::new(2 * rows * inputs * outputs)).bench_local(|| {
            matmul(tile, &Dense::new(&x, inputs), &panels, &mut out, |_, _| {});
        });
    });
}

#[divan::bench(args = PRODUCTS, consts = [0, 1])]
fn linear_weight_gradient<const MIXED: usize>(
    bencher: Bencher,
    (rows, inputs, outputs): (usize, usize, usize),
) {
    let (x, d) = (numbers(rows * inputs), numbers(rows * outputs));
    for_precision!(["f32", "mixed"][MIXED], tile => {
        bencher.counter(ItemsCount::new(2 * rows * inputs * outputs)).bench_local(|| {
            weight_gradient(tile, &Dense::new(&x, inputs), &Dense::new(&d, outputs), rows)
        });
    });
}

/// Kind, side of the input, channels in and out, for 32 images.
const CONVS: [(ConvKind, usize, usize, usize); 6] = [
    (ConvKind::Same, 64, 3, 32),
    (ConvKind::Down, 64, 32, 64),
    (ConvKind::Same, 32, 64, 64),
    (ConvKind::Same, 8, 256, 256),
    (ConvKind::Up, 32, 64, 32),
    (ConvKind::Same, 64, 32, 3),
];

fn precision(mixed: usize) -> Precision {
    [Precision::F32, Precision::Mixed][mixed]
}

fn shape(side: usize, c_in: usize, c_out: usize) -> Shape {
    Shape {
        images: 32,
        height: side,
        width: side,
        c_in,
        c_out,
    }
}

/// FLOPs of the plain convolution, without the taps that upsampling merges.
fn operations(shape: Shape, kind: ConvKind) -> ItemsCount {
    ItemsCount::new(2 * shape.outputs(kind) * shape.c_in * kind.side() * kind.side())
}

#[divan::bench(args = CONVS, consts = [0, 1])]
fn conv_forward<const MIXED: usize>(
    bencher: Bencher,
    (kind, side, from, to): (ConvKind, usize, usize, usize),
) {
    let (shape, isa) = (shape(side, from, to), Isa::selected());
    let (x, w) = (numbers(shape.inputs()), numbers(shape.weights(kind)));
    let mut out = vec![0f32; shape.outputs(kind)];
    let stage = Stage::Activation(Activation::Silu);
    bencher.counter(operations(shape, kind)).bench_local(|| {
        conv::forward(
            isa,
            precision(MIXED),
            shape,
            kind,
            stage,
            &x,
            &w,
            None,
            &mut out,
        );
    });
}

#[divan::bench(args = CONVS, consts = [0, 1])]
fn conv_input_gradient<const MIXED: usize>(
    bencher: Bencher,
    (kind, side, from, to): (ConvKind, usize, usize, usize),
) {
    let (shape, isa) = (shape(side, from, to), Isa::selected());
    let (d, w) = (numbers(shape.outputs(kind)), numbers(shape.weights(kind)));
    let mut d_x = vec![0f32; shape.inputs()];
    bencher.counter(operations(shape, kind)).bench_local(|| {
        conv::input_gradient(isa, precision(MIXED), shape, kind, &w, &d, &mut d_x);
    });
}

#[divan::bench(args = CONVS, consts = [0, 1])]
fn conv_weight_gradient<const MIXED: usize>(
    bencher: Bencher,
    (kind, side, from, to): (ConvKind, usize, usize, usize),
) {
    let (shape, isa) = (shape(side, from, to), Isa::selected());
    let (x, d) = (numbers(shape.inputs()), numbers(shape.outputs(kind)));
    let mut d_w = vec![0f32; shape.weights(kind)];
    let stage = Stage::Activation(Activation::Silu);
    bencher.counter(operations(shape, kind)).bench_local(|| {
        conv::weight_gradient(isa, precision(MIXED), shape, kind, stage, &x, &d, &mut d_w);
    });
}

/// POP over ten blocks of 65 tokens, eight of them predicted, as in a step of the world model.
struct Pop {
    queries: Vec<f32>,
    keys_values: Vec<f32>,
    rotations: Vec<f32>,
    powers: Vec<f32>,
}

impl Pop {
    fn new() -> Self {
        let rows = 16 * (650 + 8 * 64);
        Self {
            queries: numbers(rows * 512),
            keys_values: numbers(rows * 512),
            rotations: numbers((650 + 512) * 64),
            powers: numbers(4 * 66),
        }
    }

    fn plan(&self) -> Plan<'_> {
        Plan {
            batch: 16,
            heads: 4,
            head_dim: 64,
            tokens: 650,
            chunk: 65,
            first_predicted: 2,
            predicted: 8,
            block_tokens: 64,
            shared: false,
            last_only: false,
            powers: &self.powers,
            powers_per_head: 66,
            rotation: self.rotation(),
        }
    }

    fn rotation(&self) -> Rotation<'_> {
        Rotation {
            cos: &self.rotations,
            sin: &self.rotations,
        }
    }

    fn projections(&self) -> Projections<'_> {
        Projections {
            queries: &self.queries,
            keys_values: &self.keys_values,
        }
    }
}

#[divan::bench(consts = [0, 1])]
fn retention_forward<const MIXED: usize>(bencher: Bencher) {
    let pop = Pop::new();
    let plan = pop.plan();
    let (mut states, mut out) = (
        vec![0f32; plan.states_len()],
        vec![0f32; plan.outputs() * 256],
    );
    for_precision!(["f32", "mixed"][MIXED], tile => {
        bencher.bench_local(|| {
            retention::forward(tile, &plan, pop.projections(), None, &mut states, false, &mut out);
        });
    });
}

#[divan::bench(consts = [0, 1])]
fn retention_backward<const MIXED: usize>(bencher: Bencher) {
    let pop = Pop::new();
    let plan = pop.plan();
    let (states, d) = (numbers(plan.states_len()), numbers(plan.outputs() * 256));
    let (mut d_q, mut d_kv) = (
        vec![0f32; pop.queries.len()],
        vec![0f32; pop.keys_values.len()],
    );
    for_precision!(["f32", "mixed"][MIXED], tile => {
        bencher.bench_local(|| {
            let p = pop.projections();
            retention::backward(tile, &plan, p, None, &states, &d, &mut d_q, &mut d_kv);
        });
    });
}

/// The sizes of [`Pop`].
fn pop_attention(rotation: Rotation<'_>) -> attention::Plan<'_> {
    attention::Plan {
        batch: 16,
        heads: 4,
        head_dim: 64,
        tokens: 650,
        chunk: 65,
        first_predicted: 2,
        predicted: 8,
        block_tokens: 64,
        rotation: Some(rotation),
        dropout: Dropout::NONE,
    }
}

#[divan::bench(consts = [0, 1])]
fn attention_forward<const MIXED: usize>(bencher: Bencher) {
    let pop = Pop::new();
    let plan = pop_attention(pop.rotation());
    let (rows, mut out) = (
        numbers(plan.rows() * 3 * 256),
        vec![0f32; plan.rows() * 256],
    );
    for_precision!(["f32", "mixed"][MIXED], tile => {
        bencher.bench_local(|| attention::forward(tile, &plan, &rows, &mut out));
    });
}

#[divan::bench(consts = [0, 1])]
fn attention_backward<const MIXED: usize>(bencher: Bencher) {
    let pop = Pop::new();
    let plan = pop_attention(pop.rotation());
    let (rows, d) = (numbers(plan.rows() * 3 * 256), numbers(plan.rows() * 256));
    let mut d_rows = vec![0f32; rows.len()];
    for_precision!(["f32", "mixed"][MIXED], tile => {
        bencher.bench_local(|| attention::backward(tile, &plan, &rows, &d, &mut d_rows));
    });
}

#[divan::bench]
fn cross_entropy_forward_and_backward(bencher: Bencher) {
    let (rows, classes, isa) = (8192, 512, Isa::selected());
    let logits = numbers(rows * classes);
    let targets: Vec<i64> = (0..rows as i64).map(|i| i % classes as i64).collect();
    let (mut losses, mut sums) = (vec![0f32; rows], vec![0f32; rows]);
    let mut d_logits = vec![0f32; rows * classes];
    bencher.bench_local(|| {
        cross_entropy::forward(isa, &logits, &targets, &mut losses, &mut sums);
        cross_entropy::backward(isa, &logits, &targets, &sums, &losses, &mut d_logits);
    });
}

#[divan::bench]
fn group_norm_statistics_and_backward(bencher: Bencher) {
    let (images, pixels, channels, groups) = (32, 64 * 64, 32, 8);
    let isa = Isa::selected();
    let x = numbers(images * pixels * channels);
    let (gamma, beta) = (vec![1f32; channels], vec![0f32; channels]);
    let (mut d_gamma, mut d_beta) = (vec![0f32; channels], vec![0f32; channels]);
    let mut d = x.clone();
    bencher.bench_local(|| {
        let saved = group_norm::statistics(isa, &x, images, pixels, channels, groups);
        group_norm::group_norm_silu_backward(
            isa,
            groups,
            &x,
            &gamma,
            &beta,
            &saved,
            &mut d,
            &mut d_gamma,
            &mut d_beta,
        );
    });
}
