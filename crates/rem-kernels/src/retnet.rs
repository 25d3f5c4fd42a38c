//! The two halves of a RetNet layer as operations on any device.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType};

use crate::cpu::dropout::Dropout;
use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;
use crate::plain::Plain;

/// Parameters of the retention half. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct RetentionParameters<B: Backend> {
    pub gamma: FloatTensor<B>,
    pub beta: FloatTensor<B>,
    pub query_weight: FloatTensor<B>,
    pub query_bias: FloatTensor<B>,
    pub key_weight: FloatTensor<B>,
    pub key_bias: FloatTensor<B>,
    pub value_weight: FloatTensor<B>,
    pub value_bias: FloatTensor<B>,
    pub gate_weight: FloatTensor<B>,
    pub gate_bias: FloatTensor<B>,
    pub out_weight: FloatTensor<B>,
    pub out_bias: FloatTensor<B>,
}

/// What depends on sizes alone.
#[derive(ExtensionType)]
pub struct RetentionTables<B: Backend> {
    /// `[rows of one batch element, head_dim]`: cosine and sine of each row's rotation, those of the
    /// trajectory before those of the prediction blocks
    pub cos: FloatTensor<B>,
    pub sin: FloatTensor<B>,
    /// D: `[heads, longest, longest]`, η^(n-m) on and below the diagonal
    pub mask: FloatTensor<B>,
    /// `[heads, longest + 1]`: η^i
    pub powers: FloatTensor<B>,
}

/// The sizes of a retention; see [`crate::cpu::retention::Plan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionSizes {
    pub batch: usize,
    pub heads: usize,
    /// Rows of each trajectory, in pieces of `piece`.
    pub tokens: usize,
    pub piece: usize,
    pub first_predicted: usize,
    pub predicted: usize,
    pub block_tokens: usize,
    /// Whether of each piece only the last row's output is wanted.
    pub last_only: bool,
}

impl RetentionSizes {
    pub fn pieces(&self) -> usize {
        self.tokens / self.piece.max(1)
    }
}

/// How a half is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfMode {
    pub dropout: Dropout,
    pub precision: Precision,
}

/// Parameters of the feed-forward half.
#[derive(ExtensionType)]
pub struct FeedForwardParameters<B: Backend> {
    pub gamma: FloatTensor<B>,
    pub beta: FloatTensor<B>,
    pub up_weight: FloatTensor<B>,
    pub up_bias: FloatTensor<B>,
    pub down_weight: FloatTensor<B>,
    pub down_bias: FloatTensor<B>,
}

/// The feed-forward half in ordinary operations.
pub(crate) fn feed_forward<B: Backend>(
    x: FloatTensor<B>,
    p: FeedForwardParameters<B>,
    activation: Activation,
    mode: HalfMode,
) -> FloatTensor<B> {
    let (x, of) = (Plain::<B>(x), Plain::<B>);
    let hidden = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let hidden = hidden.linear(of(p.up_weight), of(p.up_bias), mode.precision);
    let hidden = hidden.activate(activation).dropout(mode.dropout.p);
    let out = hidden.linear(of(p.down_weight), of(p.down_bias), mode.precision);
    (x + out.dropout(mode.dropout.p)).0
}

/// The retention half in ordinary operations, and the state after the last piece, if there is a piece.
/// # Shapes
/// - `x`: `[rows, width]`, `state`: `[batch, heads, head_dim, head_dim]`
pub(crate) fn retention<B: Backend>(
    x: FloatTensor<B>,
    p: RetentionParameters<B>,
    tables: RetentionTables<B>,
    state: Option<FloatTensor<B>>,
    sizes: RetentionSizes,
    mode: HalfMode,
) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
    let (x, of) = (Plain::<B>(x), Plain::<B>);
    let [cos, sin, mask, powers] = [tables.cos, tables.sin, tables.mask, tables.powers].map(of);
    let (rows, width) = (x.dims()[0], x.dims()[1]);
    let RetentionSizes {
        batch,
        heads,
        tokens,
        ..
    } = sizes;
    let (dim, pieces) = (width / heads, sizes.pieces());
    let y = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let project = |w, b| y.clone().linear(of(w), of(b), mode.precision);
    let q = project(p.query_weight, p.query_bias);
    let k = project(p.key_weight, p.key_bias) / (dim as f64).sqrt();
    let v = project(p.value_weight, p.value_bias);
    let gate = project(p.gate_weight, p.gate_bias).activate(Activation::Silu);

    // Rows of a part of every batch element as [batch, heads, blocks, length, head_dim].
    let split = |t: &Plain<B>, first: usize, blocks: usize, length: usize| {
        let t = t.clone().narrow(0, first, batch * blocks * length);
        t.reshape([batch, blocks, length, heads, dim])
            .permute(&[0, 3, 1, 2, 4])
    };
    let turn = |t: Plain<B>, first: usize, blocks: usize, length: usize| {
        let table = |t: &Plain<B>| {
            t.clone()
                .narrow(0, first, blocks * length)
                .reshape([1, 1, blocks, length, dim])
        };
        rotate(
            t,
            table(&cos),
            table(&sin),
            [batch, heads, blocks, length, dim],
        )
    };
    let part = |first: usize, turn_from: usize, blocks: usize, length: usize| {
        let q = turn(split(&q, first, blocks, length), turn_from, blocks, length);
        let k = turn(split(&k, first, blocks, length), turn_from, blocks, length);
        (q, k, split(&v, first, blocks, length))
    };
    let longest = mask.dims()[1];
    let power = |first: usize, count: usize| {
        // [1, heads, 1, count, 1]
        powers
            .clone()
            .narrow(1, first, count)
            .reshape([1, heads, 1, count, 1])
    };
    // A v + ξ ∘ (q S) for blocks with the states before them.
    let outputs =
        |q: Plain<B>, k: Plain<B>, v: Plain<B>, states: Option<Plain<B>>, length: usize| {
            let d = mask.clone().narrow(1, 0, length).narrow(2, 0, length);
            let scores = q.clone().times(k.turned(), mode.precision)
                * d.reshape([1, heads, 1, length, length]);
            let inner = scores.times(v, mode.precision);
            match states {
                Some(states) => inner + q.times(states, mode.precision) * power(1, length),
                None => inner,
            }
        };
    // Back to rows: [batch * blocks * length, width]
    let join = |t: Plain<B>, blocks: usize, length: usize| {
        t.permute(&[0, 2, 3, 1, 4])
            .reshape([batch * blocks * length, width])
    };

    // The states before each piece and after the last; none is nothing seen.
    let mut states: Vec<Option<Plain<B>>> = vec![
        state
            .map(of)
            .map(|s| s.reshape([batch, heads, 1, dim, dim])),
    ];
    let mut parts = Vec::new();
    if pieces > 0 {
        let length = sizes.piece;
        assert!(length <= longest && pieces * length == tokens);
        let (q, k, v) = part(0, 0, pieces, length);
        // ζ: powers in falling order
        let falling: Vec<Plain<B>> = (0..length).rev().map(|i| power(i, 1)).collect();
        let weighted = k.clone() * Plain::cat(falling, 3);
        let pseudo = weighted.turned().times(v.clone(), mode.precision);
        for piece in 0..pieces {
            let own = pseudo.clone().narrow(2, piece, 1);
            states.push(Some(match &states[piece] {
                Some(before) => own + before.clone() * power(length, 1),
                None => own,
            }));
        }
        let before = gather_states(&states[..pieces], || (pseudo.clone().narrow(2, 0, 1)) * 0.0);
        parts.push(join(outputs(q, k, v, before, length), pieces, length));
    }
    if sizes.predicted > 0 {
        let (blocks, length, first) = (sizes.predicted, sizes.block_tokens, sizes.first_predicted);
        assert!(length <= longest);
        let (q, k, v) = part(batch * tokens, tokens, blocks, length);
        let zero = || {
            Plain::cat(
                vec![v.clone().narrow(3, 0, 1).narrow(2, 0, 1) * 0.0; dim],
                3,
            )
        };
        let before = gather_states(&states[first..first + blocks], zero);
        parts.push(join(outputs(q, k, v, before, length), blocks, length));
    }
    let retained = Plain::cat(parts, 0).dropout(mode.dropout.p);
    let normed = retained
        .reshape([rows, heads, dim])
        .unit_variance()
        .reshape([rows, width]);
    let out = (normed * gate).linear(of(p.out_weight), of(p.out_bias), mode.precision);
    let y = wanted_rows(x + out.dropout(mode.dropout.p), sizes).0;
    let last = states.pop().flatten().filter(|_| pieces > 0);
    (y, last.map(|s| s.reshape([batch, heads, dim, dim]).0))
}

/// The rows of the outputs that are wanted.
fn wanted_rows<B: Backend>(y: Plain<B>, sizes: RetentionSizes) -> Plain<B> {
    let RetentionSizes {
        batch,
        tokens,
        piece,
        ..
    } = sizes;
    if !sizes.last_only || sizes.pieces() == 0 {
        return y;
    }
    let (rows, width) = (y.dims()[0], y.dims()[1]);
    let all = batch * tokens;
    let pieces = y
        .clone()
        .narrow(0, 0, all)
        .reshape([all / piece, piece, width]);
    let last = pieces.narrow(1, piece - 1, 1).reshape([all / piece, width]);
    if rows == all {
        return last;
    }
    Plain::cat(vec![last, y.narrow(0, all, rows - all)], 0)
}

/// States `[batch, heads, 1, head_dim, head_dim]` side by side along the third axis; none if there are none.
fn gather_states<B: Backend>(
    states: &[Option<Plain<B>>],
    zero: impl Fn() -> Plain<B>,
) -> Option<Plain<B>> {
    if states.iter().all(Option::is_none) {
        return None;
    }
    let states = states
        .iter()
        .map(|s| s.clone().unwrap_or_else(&zero))
        .collect();
    Some(Plain::cat(states, 2))
}

/// Turns neighbouring channels.
fn rotate<B: Backend>(x: Plain<B>, cos: Plain<B>, sin: Plain<B>, shape: [usize; 5]) -> Plain<B> {
    let [b, h, n, l, d] = shape;
    let pairs = x.clone().reshape([b, h, n, l, d / 2, 2]);
    let (even, odd) = (pairs.clone().narrow(5, 0, 1), pairs.narrow(5, 1, 1));
    let turned = Plain::cat(vec![odd * -1.0, even], 5).reshape([b, h, n, l, d]);
    x * cos + turned * sin
}
