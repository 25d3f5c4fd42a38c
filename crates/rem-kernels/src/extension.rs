//! The backend extension: every operation has a body of ordinary operations, which is what a device without
//! a tuned one runs.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, ExtensionType, Flex, backend_extension};

use crate::attention::{self, AttentionParameters, AttentionSizes};
use crate::cpu::conv::ConvKind;
use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;
use crate::flex;
use crate::images;
use crate::plain::{self, Plain, is_f32};
use crate::retnet::{
    self, FeedForwardParameters, HalfMode, RetentionParameters, RetentionSizes, RetentionTables,
};

/// A state that may not be there yet.
#[derive(ExtensionType)]
pub enum State<B: Backend> {
    Empty,
    /// `[batch, heads, head_dim, head_dim]`
    Known(FloatTensor<B>),
}

impl<B: Backend> State<B> {
    fn known(self) -> Option<FloatTensor<B>> {
        match self {
            Self::Empty => None,
            Self::Known(state) => Some(state),
        }
    }
}

/// Parameters of a group norm and the convolution after it.
#[derive(ExtensionType)]
pub struct NormConvParameters<B: Backend> {
    pub gamma: FloatTensor<B>,
    pub beta: FloatTensor<B>,
    pub weight: FloatTensor<B>,
    pub bias: FloatTensor<B>,
}

/// The operations.
#[backend_extension(Flex, Cube: cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    feature = "metal",
    feature = "rocm"
)), Autodiff)]
pub trait Kernels: Backend {
    /// `activation(x) · weight + bias`: `[rows, inputs]` -> `[rows, outputs]`.
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        plain_linear::<Self>(x, weight, bias, activation, precision)
    }

    /// A convolution of activated images: `[n, h, w, c]` -> the same with other sizes.
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        images::conv::<Self>(Plain(x).activate(activation), weight, bias, kind, precision)
    }

    /// A convolution of SiLU of a group norm of images.
    fn norm_conv(
        x: FloatTensor<Self>,
        #[extension_type] parameters: NormConvParameters<Self>,
        groups: usize,
        kind: ConvKind,
        precision: Precision,
    ) -> FloatTensor<Self> {
        plain_norm_conv::<Self>(x, parameters, groups, kind, precision)
    }

    /// The largest of each 2x2 window of ReLU(x): `[n, h, w, c]` -> `[n, h / 2, w / 2, c]`.
    fn max_pool_relu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        images::max_pool_relu::<Self>(x)
    }

    /// The mean squared difference of unit features, weighted by channel: two `[n, h, w, c]` before their
    /// ReLU, `[c]` -> `[n]`. Only `b` may need a gradient.
    fn feature_distance(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        head: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        images::feature_distance::<Self>(a, b, head)
    }

    /// Cross-entropy of each row: `[rows, classes]`, `[rows]` -> `[rows]`.
    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        plain::cross_entropy::<Self>(logits, targets)
    }

    /// A class for each row by a uniform draw in [0, 1): `[rows, classes]`, `[rows]` -> `[rows]`.
    fn sample(logits: FloatTensor<Self>, draws: FloatTensor<Self>) -> IntTensor<Self> {
        plain::sample::<Self>(logits, draws)
    }

    /// The nearest code of each row: `[rows, width]`, `[codes, width]` -> `[rows]`.
    fn nearest(rows: FloatTensor<Self>, codes: FloatTensor<Self>) -> IntTensor<Self> {
        plain::nearest::<Self>(rows, codes)
    }

    /// The pointwise part of an LSTM cell, gates in the order input, forget, cell, output:
    /// `[rows, 4 * hidden]`, `[rows, hidden]` -> hidden values and cells side by side, `[rows, 2 * hidden]`.
    fn lstm_cell(gates: FloatTensor<Self>, cells: FloatTensor<Self>) -> FloatTensor<Self> {
        plain::lstm_cell::<Self>(gates, cells)
    }

    /// LSTM cells one after the other: `[steps, rows, 4 * hidden]` gates from the inputs, weight and bias of
    /// the hidden values, and the state before -> the hidden values after each, `[steps, rows, hidden]`.
    fn lstm_sequence(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        cells: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        plain::lstm_sequence::<Self>([gates, weight, bias, hidden, cells], precision)
    }

    /// A layer's feed-forward half: `[rows, width]` -> the same.
    fn feed_forward(
        x: FloatTensor<Self>,
        #[extension_type] parameters: FeedForwardParameters<Self>,
        activation: Activation,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        retnet::feed_forward::<Self>(x, parameters, activation, mode)
    }

    /// The attention half of a Transformer's layer over whole sequences: `[rows, width]` -> the same.
    fn attention(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        sizes: AttentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        attention::attention::<Self>(x, parameters, sizes, mode)
    }

    /// The same for new tokens after those in a cache; gives the outputs and the cache afterwards.
    fn attention_read(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        cache: FloatTensor<Self>,
        sizes: AttentionSizes,
        past: usize,
        mode: HalfMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        attention::attention_read::<Self>(x, parameters, cache, sizes, past, mode)
    }

    /// A layer's retention half from the very start of trajectories, with POP's prediction blocks.
    fn retention(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        retnet::retention::<Self>(x, parameters, tables, None, sizes, mode).0
    }

    /// A layer's retention half that goes on from a state; gives the outputs and the state afterwards.
    fn retention_fold(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        #[extension_type] state: State<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        plain_fold::<Self>(x, parameters, tables, state, sizes, mode)
    }

    /// A layer's retention half for prediction tokens, which leave the state as it is.
    fn retention_peek(
        x: FloatTensor<Self>,
        #[extension_type] parameters: RetentionParameters<Self>,
        #[extension_type] tables: RetentionTables<Self>,
        state: FloatTensor<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        retnet::retention::<Self>(x, parameters, tables, Some(state), sizes, mode).0
    }
}

pub(crate) fn plain_linear<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    activation: Activation,
    precision: Precision,
) -> FloatTensor<B> {
    let x = Plain::<B>(x).activate(activation);
    x.linear(Plain(weight), Plain(bias), precision).0
}

pub(crate) fn plain_norm_conv<B: Backend>(
    x: FloatTensor<B>,
    p: NormConvParameters<B>,
    groups: usize,
    kind: ConvKind,
    precision: Precision,
) -> FloatTensor<B> {
    let x = images::norm_silu::<B>(x, p.gamma, p.beta, groups);
    images::conv::<B>(x, p.weight, p.bias, kind, precision)
}

fn plain_fold<B: Backend>(
    x: FloatTensor<B>,
    parameters: RetentionParameters<B>,
    tables: RetentionTables<B>,
    state: State<B>,
    sizes: RetentionSizes,
    mode: HalfMode,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (y, state) = retnet::retention::<B>(x, parameters, tables, state.known(), sizes, mode);
    (y, state.expect("a fold has at least one piece"))
}

impl<B: Backend> FeedForwardParameters<B> {
    pub(crate) fn into_array(self) -> [FloatTensor<B>; 6] {
        let p = self;
        [
            p.gamma,
            p.beta,
            p.up_weight,
            p.up_bias,
            p.down_weight,
            p.down_bias,
        ]
    }
}

impl<B: Backend> RetentionParameters<B> {
    pub(crate) fn into_array(self) -> [FloatTensor<B>; 12] {
        let p = self;
        [
            p.gamma,
            p.beta,
            p.query_weight,
            p.query_bias,
            p.key_weight,
            p.key_bias,
            p.value_weight,
            p.value_bias,
            p.gate_weight,
            p.gate_bias,
            p.out_weight,
            p.out_bias,
        ]
    }
}

/// `first` and then the others.
fn with_first<T, const N: usize, const M: usize>(first: T, others: [T; N]) -> [T; M] {
    let mut all = std::iter::once(first).chain(others);
    std::array::from_fn(|_| all.next().expect("one more than the others"))
}

/// The tuned bodies that Flex and its autodiff share; `$run` puts an operation to work on its inputs. They know
/// f32 alone.
macro_rules! tuned {
    ($run:expr) => {
        fn linear(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            activation: Activation,
            precision: Precision,
        ) -> FloatTensor<Self> {
            if !is_f32(&x) {
                return plain_linear::<Self>(x, weight, bias, activation, precision);
            }
            $run(
                flex::Linear {
                    activation,
                    precision,
                },
                [x, weight, bias],
            )
        }

        fn conv(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            activation: Activation,
            kind: ConvKind,
            precision: Precision,
        ) -> FloatTensor<Self> {
            if !is_f32(&x) {
                let x = Plain(x).activate(activation);
                return images::conv::<Self>(x, weight, bias, kind, precision);
            }
            $run(
                flex::Conv {
                    activation,
                    kind,
                    precision,
                },
                [x, weight, bias],
            )
        }

        fn norm_conv(
            x: FloatTensor<Self>,
            p: NormConvParameters<Self>,
            groups: usize,
            kind: ConvKind,
            precision: Precision,
        ) -> FloatTensor<Self> {
            if !is_f32(&x) {
                return plain_norm_conv::<Self>(x, p, groups, kind, precision);
            }
            let inputs = [x, p.weight, p.bias, p.gamma, p.beta];
            $run(
                flex::NormConv {
                    groups,
                    kind,
                    precision,
                },
                inputs,
            )
        }

        fn max_pool_relu(x: FloatTensor<Self>) -> FloatTensor<Self> {
            if !is_f32(&x) {
                return images::max_pool_relu::<Self>(x);
            }
            $run(flex::MaxPoolRelu, [x])
        }

        fn feature_distance(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            head: FloatTensor<Self>,
        ) -> FloatTensor<Self> {
            if !is_f32(&a) {
                return images::feature_distance::<Self>(a, b, head);
            }
            $run(flex::FeatureDistance, [a, b, head])
        }

        fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
            if !is_f32(&logits) {
                return plain::cross_entropy::<Self>(logits, targets);
            }
            $run(flex::CrossEntropy::new(&targets), [logits])
        }

        fn lstm_cell(gates: FloatTensor<Self>, cells: FloatTensor<Self>) -> FloatTensor<Self> {
            if !is_f32(&gates) {
                return plain::lstm_cell::<Self>(gates, cells);
            }
            $run(flex::LstmCell, [gates, cells])
        }

        fn lstm_sequence(
            gates: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            hidden: FloatTensor<Self>,
            cells: FloatTensor<Self>,
            precision: Precision,
        ) -> FloatTensor<Self> {
            let inputs = [gates, weight, bias, hidden, cells];
            if !is_f32(&inputs[0]) {
                return plain::lstm_sequence::<Self>(inputs, precision);
            }
            $run(flex::LstmSequence { precision }, inputs)
        }

        fn feed_forward(
            x: FloatTensor<Self>,
            parameters: FeedForwardParameters<Self>,
            activation: Activation,
            mode: HalfMode,
        ) -> FloatTensor<Self> {
            if !is_f32(&x) {
                return retnet::feed_forward::<Self>(x, parameters, activation, mode);
            }
            let inputs: [_; 7] = with_first(x, parameters.into_array());
            $run(flex::FeedForward { activation, mode }, inputs)
        }

        fn attention(
            x: FloatTensor<Self>,
            parameters: AttentionParameters<Self>,
            sizes: AttentionSizes,
            mode: HalfMode,
        ) -> FloatTensor<Self> {
            if !is_f32(&x) {
                return attention::attention::<Self>(x, parameters, sizes, mode);
            }
            let inputs: [_; 11] = with_first(x, parameters.into_array());
            $run(flex::Attention { sizes, mode }, inputs)
        }
    };
}

impl Kernels for Flex {
    tuned!(flex::run);

    fn sample(logits: FloatTensor<Self>, draws: FloatTensor<Self>) -> IntTensor<Self> {
        if !is_f32(&logits) {
            return plain::sample::<Self>(logits, draws);
        }
        flex::sample(logits, draws)
    }

    fn nearest(rows: FloatTensor<Self>, codes: FloatTensor<Self>) -> IntTensor<Self> {
        if !is_f32(&rows) {
            return plain::nearest::<Self>(rows, codes);
        }
        flex::nearest(rows, codes)
    }

    fn retention(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return retnet::retention::<Self>(x, parameters, tables, None, sizes, mode).0;
        }
        let inputs: [_; 13] = with_first(x, parameters.into_array());
        flex::run(flex::Retention::new(tables, sizes, mode), inputs)
    }

    fn attention_read(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        cache: FloatTensor<Self>,
        sizes: AttentionSizes,
        past: usize,
        mode: HalfMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(&x) {
            return attention::attention_read::<Self>(x, parameters, cache, sizes, past, mode);
        }
        let inputs: [_; 11] = with_first(x, parameters.into_array());
        flex::Attention { sizes, mode }.read(inputs, cache, past)
    }

    fn retention_fold(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        state: State<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(&x) {
            return plain_fold::<Self>(x, parameters, tables, state, sizes, mode);
        }
        let inputs: [_; 13] = with_first(x, parameters.into_array());
        flex::Retention::new(tables, sizes, mode).fold(inputs, state.known())
    }

    fn retention_peek(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        state: FloatTensor<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return retnet::retention::<Self>(x, parameters, tables, Some(state), sizes, mode).0;
        }
        let inputs: [_; 13] = with_first(x, parameters.into_array());
        flex::Retention::new(tables, sizes, mode).peek(inputs, state)
    }
}

/// What only inference uses keeps its body of ordinary operations here.
impl<C: CheckpointStrategy> Kernels for Autodiff<Flex, C> {
    tuned!(flex::run_tracked::<C, _, _>);

    fn sample(logits: FloatTensor<Self>, draws: FloatTensor<Self>) -> IntTensor<Self> {
        Flex::sample(logits.into_primitive(), draws.into_primitive())
    }

    fn nearest(rows: FloatTensor<Self>, codes: FloatTensor<Self>) -> IntTensor<Self> {
        Flex::nearest(rows.into_primitive(), codes.into_primitive())
    }

    fn retention(
        x: FloatTensor<Self>,
        parameters: RetentionParameters<Self>,
        tables: RetentionTables<Self>,
        sizes: RetentionSizes,
        mode: HalfMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return retnet::retention::<Self>(x, parameters, tables, None, sizes, mode).0;
        }
        let inputs: [_; 13] = with_first(x, parameters.into_array());
        let tables = RetentionTables {
            cos: tables.cos.into_primitive(),
            sin: tables.sin.into_primitive(),
            mask: tables.mask.into_primitive(),
            powers: tables.powers.into_primitive(),
        };
        flex::run_tracked::<C, _, _>(flex::Retention::new(tables, sizes, mode), inputs)
    }
}

/// The devices of CubeCL run the bodies of ordinary operations.
#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    feature = "metal",
    feature = "rocm"
))]
mod cube {
    use super::{Autodiff, CheckpointStrategy, Kernels};
    use burn::backend::Cube;

    impl Kernels for Cube {}
    impl<C: CheckpointStrategy> Kernels for Autodiff<Cube, C> {}
}
