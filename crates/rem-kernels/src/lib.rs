//! The hot operations of REM, as an extension of Burn's backends.
//!
//! [`cpu`] has the kernels on slices, with the only `unsafe` of the project; [`extension`] names the operations
//! with bodies of ordinary tensor operations for every device; `flex` puts the kernels under them on the CPU.

pub mod attention;
pub mod cpu;
pub mod extension;
mod flex;
mod images;
pub mod memory;
mod optimise;
mod plain;
pub mod retnet;
#[cfg(test)]
mod tests;

use burn::tensor::{Int, Tensor};

pub use attention::{AttentionParameters, AttentionSizes};
pub use burn::backend::Dispatch;
pub use cpu::adamw::Step;
pub use cpu::conv::ConvKind;
pub use cpu::dropout::Dropout;
pub use cpu::level::Level;
pub use cpu::math::Activation;
pub use cpu::tile::Precision;
use extension::{Kernels, NormConvParameters, State};
pub use optimise::{Parameter, Stepped, adamw, sums_of_squares};
pub use retnet::{
    FeedForwardParameters, HalfMode, RetentionParameters, RetentionSizes, RetentionTables,
};

/// `activation(x) · weight + bias`.
/// # Shapes
/// - `x`: `[rows, inputs]`, `weight`: `[inputs, outputs]`, `bias`: `[outputs]` -> `[rows, outputs]`
pub fn linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    activation: Activation,
    precision: Precision,
) -> Tensor<2> {
    let (x, weight, bias) = (
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    );
    Tensor::from_dispatch(Dispatch::linear(x, weight, bias, activation, precision))
}

/// A RetNet layer's feed-forward half, residual included: `[rows, width]` -> the same.
pub fn feed_forward(
    x: Tensor<2>,
    parameters: FeedForwardParameters<Dispatch>,
    activation: Activation,
    mode: HalfMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::feed_forward(x, parameters, activation, mode))
}

/// A RetNet layer's retention half over whole trajectories from their start, residual included.
/// # Shapes
/// - `x`: rows as [`RetentionSizes`] orders them, `[rows, width]` -> `[wanted rows, width]`
pub fn retention(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    sizes: RetentionSizes,
    mode: HalfMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::retention(x, parameters, tables, sizes, mode))
}

/// As [`retention`], going on from a state (`[batch, heads, head_dim, head_dim]`) if there is one, and giving
/// the state afterwards.
pub fn retention_fold(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    state: Option<Tensor<4>>,
    sizes: RetentionSizes,
    mode: HalfMode,
) -> (Tensor<2>, Tensor<4>) {
    let state = match state {
        Some(state) => State::Known(state.into_dispatch()),
        None => State::Empty,
    };
    let (y, state) =
        Dispatch::retention_fold(x.into_dispatch(), parameters, tables, state, sizes, mode);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(state))
}

/// As [`retention`] for one block of prediction tokens that see a state and leave it as it is.
pub fn retention_peek(
    x: Tensor<2>,
    parameters: RetentionParameters<Dispatch>,
    tables: RetentionTables<Dispatch>,
    state: Tensor<4>,
    sizes: RetentionSizes,
    mode: HalfMode,
) -> Tensor<2> {
    let (x, state) = (x.into_dispatch(), state.into_dispatch());
    Tensor::from_dispatch(Dispatch::retention_peek(
        x, parameters, tables, state, sizes, mode,
    ))
}

/// The attention half of a Transformer's layer over whole sequences, residual included.
/// # Shapes
/// - `x`: `batch` sequences below each other, `[rows, width]` -> the same
pub fn attention(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    sizes: AttentionSizes,
    mode: HalfMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::attention(x, parameters, sizes, mode))
}

/// Room for so many tokens or more in the cache of [`attention_read`].
pub fn cache_capacity(tokens: usize) -> usize {
    tokens.next_multiple_of(cpu::attention::LANES)
}

/// As [`attention`] for new tokens after `past` ones whose keys and values are in the cache,
/// `[batch, heads, 2, capacity, head_dim]`, zeros at first; the cache comes back with theirs. One that nobody else
/// holds is written in place. In which order it holds them is its own affair.
pub fn attention_read(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    cache: Tensor<5>,
    sizes: AttentionSizes,
    past: usize,
    mode: HalfMode,
) -> (Tensor<2>, Tensor<5>) {
    let (x, cache) = (x.into_dispatch(), cache.into_dispatch());
    let (y, cache) = Dispatch::attention_read(x, parameters, cache, sizes, past, mode);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(cache))
}

/// Cross-entropy of each row: `[rows, classes]` logits, `[rows]` classes -> `[rows]`.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
    Tensor::from_dispatch(Dispatch::cross_entropy(logits, targets))
}

/// A class for each row of logits, by a uniform draw in [0, 1) for each: `[rows, classes]`, `[rows]` -> `[rows]`.
pub fn sample(logits: Tensor<2>, draws: Tensor<1>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::sample(
        logits.into_dispatch(),
        draws.into_dispatch(),
    ))
}

/// The nearest code of each row, always in f32: `[rows, width]`, `[codes, width]` -> `[rows]`.
pub fn nearest(rows: Tensor<2>, codes: Tensor<2>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::nearest(
        rows.into_dispatch(),
        codes.into_dispatch(),
    ))
}

/// The pointwise part of an LSTM cell, gates in the order input, forget, cell, output.
/// # Shapes
/// - `gates`: `[rows, 4 * hidden]`, `cells`: `[rows, hidden]` -> hidden values and new cells, like `cells`
pub fn lstm_cell(gates: Tensor<2>, cells: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let [_, width] = cells.dims();
    let both = Dispatch::lstm_cell(gates.into_dispatch(), cells.into_dispatch());
    let both: Tensor<2> = Tensor::from_dispatch(both);
    (
        both.clone().narrow(1, 0, width),
        both.narrow(1, width, width),
    )
}

/// What this machine's processor can do at best with all threads, measured: billions of operations a second.
pub fn peak_gflops(precision: Precision) -> f64 {
    cpu::peak::gflops(Level::of_this_machine(), precision)
}

/// A convolution of activated images.
/// # Shapes
/// - `x`: `[n, h, w, c_in]`, `weight`: `[c_out, c_in, side, side]`, `bias`: `[c_out]` -> `[n, h', w', c_out]`
pub fn conv(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Tensor<1>,
    activation: Activation,
    kind: ConvKind,
    precision: Precision,
) -> Tensor<4> {
    let (x, weight, bias) = (
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    );
    Tensor::from_dispatch(Dispatch::conv(x, weight, bias, activation, kind, precision))
}

/// A group norm's scale and shift, `[c_in]` each.
pub struct GroupNorm {
    pub groups: usize,
    pub gamma: Tensor<1>,
    pub beta: Tensor<1>,
}

/// A convolution of SiLU of a group norm; shapes as in [`conv`].
pub fn norm_conv(
    x: Tensor<4>,
    norm: GroupNorm,
    weight: Tensor<4>,
    bias: Tensor<1>,
    kind: ConvKind,
    precision: Precision,
) -> Tensor<4> {
    let parameters = NormConvParameters {
        gamma: norm.gamma.into_dispatch(),
        beta: norm.beta.into_dispatch(),
        weight: weight.into_dispatch(),
        bias: bias.into_dispatch(),
    };
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::norm_conv(
        x,
        parameters,
        norm.groups,
        kind,
        precision,
    ))
}

/// The largest of each 2x2 window of ReLU(x): `[n, h, w, c]` -> `[n, h / 2, w / 2, c]`.
pub fn max_pool_relu(x: Tensor<4>) -> Tensor<4> {
    Tensor::from_dispatch(Dispatch::max_pool_relu(x.into_dispatch()))
}

/// LPIPS' distance of features before their ReLU, one stage of it: each position's channels made a unit
/// vector, squared differences weighted by `head` (`[c]`) and averaged. Only `b` may need a gradient.
/// # Shapes
/// - `a`, `b`: `[n, h, w, c]` -> `[n]`
pub fn feature_distance(a: Tensor<4>, b: Tensor<4>, head: Tensor<1>) -> Tensor<1> {
    let (a, b, head) = (a.into_dispatch(), b.into_dispatch(), head.into_dispatch());
    Tensor::from_dispatch(Dispatch::feature_distance(a, b, head))
}

/// LSTM cells one after the other, gates in the order input, forget, cell, output.
/// # Shapes
/// - `gates`: what the inputs give, `[steps, rows, 4 * hidden]`; `weight`, `bias`: of the hidden values,
///   `[hidden, 4 * hidden]`, `[4 * hidden]`; `hidden`, `cells`: before the first step, `[rows, hidden]`
/// - result: the hidden values after each step, `[steps, rows, hidden]`
pub fn lstm_sequence(
    gates: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    hidden: Tensor<2>,
    cells: Tensor<2>,
    precision: Precision,
) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::lstm_sequence(
        gates.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        hidden.into_dispatch(),
        cells.into_dispatch(),
        precision,
    ))
}
