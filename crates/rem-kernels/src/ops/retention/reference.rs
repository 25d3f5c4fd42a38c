//! The retention sublayer in a backend's primitive operations.
//!
//! The paper's chunkwise retention is [`Retention::chunkwise`] (Equation (4)), the states that POP needs are
//! [`Retention::states`] (Equations (6) and (7)), and [`Retention::pop`] puts both streams together (Algorithm 2).

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

use super::{RetentionParameters, RetentionSizes, RetentionTables};
use crate::backend::primitive::Primitive;
use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;
use crate::ops::SublayerMode;

/// The sublayer's outputs, and the state after the last chunk, if there is a chunk.
///
/// # Shapes
/// - `x`: `[rows, width]`, `state`: `[batch, heads, head_dim, head_dim]`
pub(in crate::ops) fn reference<B: Backend>(
    x: FloatTensor<B>,
    p: RetentionParameters<B>,
    tables: RetentionTables<B>,
    state: Option<FloatTensor<B>>,
    sizes: RetentionSizes,
    mode: SublayerMode,
) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
    let (x, of) = (Primitive::<B>(x), Primitive::<B>);
    let width = x.dims()[1];
    let RetentionSizes { batch, heads, .. } = sizes;
    let dim = width / heads;
    let y = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let project = |w, b| all_blocks(y.clone().linear(of(w), of(b), mode.precision), sizes);
    let x = all_blocks(x, sizes);
    let rows = x.dims()[0];
    let q = project(p.query_weight, p.query_bias);
    let k = project(p.key_weight, p.key_bias) / (dim as f64).sqrt();
    let v = project(p.value_weight, p.value_bias);
    let gate = project(p.gate_weight, p.gate_bias).activate(Activation::Silu);

    // A single token takes the recurrent form, which the CPU computes in f32.
    let precision = match (sizes.tokens, sizes.predicted) {
        (1, 0) => Precision::F32,
        _ => mode.precision,
    };
    let retention = Retention {
        sizes,
        dim,
        cos: of(tables.cos),
        sin: of(tables.sin),
        mask: of(tables.mask),
        powers: of(tables.powers),
        precision,
    };
    let state = state.map(|s| of(s).reshape([batch, heads, 1, dim, dim]));
    let (retained, state) = retention.pop([q, k, v], state);

    let normed = retained
        .dropout(mode.dropout.p)
        .reshape([rows, heads, dim])
        .normalize()
        .reshape([rows, width]);
    let out = (normed * gate).linear(of(p.out_weight), of(p.out_bias), mode.precision);
    let y = output_rows(x + out.dropout(mode.dropout.p), sizes).0;
    (y, state.map(|s| s.reshape([batch, heads, dim, dim]).0))
}

/// Retention of all heads.
struct Retention<B: Backend> {
    sizes: RetentionSizes,
    dim: usize,
    cos: Primitive<B>,
    sin: Primitive<B>,
    mask: Primitive<B>,
    powers: Primitive<B>,
    precision: Precision,
}

/// Q, K and V of blocks of equal length: `[batch, heads, blocks, length, head_dim]`.
struct Blocks<B: Backend> {
    q: Primitive<B>,
    k: Primitive<B>,
    v: Primitive<B>,
    count: usize,
    length: usize,
}

impl<B: Backend> Retention<B> {
    /// Equation (4) for blocks and the states before them, none of which is zero:
    /// (Q Kᵀ ⊙ D) V + (Q S) ⊙ ξ
    fn chunkwise(&self, blocks: Blocks<B>, states: Option<Primitive<B>>) -> Primitive<B> {
        let Blocks {
            q, k, v, length, ..
        } = blocks;
        let d = self.mask.clone().narrow(1, 0, length).narrow(2, 0, length);
        let d = d.reshape([1, self.sizes.heads, 1, length, length]);
        let scores = q.clone().matmul(k.transpose(), self.precision) * d;
        let inner = scores.matmul(v, self.precision);
        match states {
            Some(states) => inner + q.matmul(states, self.precision) * self.decay(1, length),
            None => inner,
        }
    }

    /// The state before each block and after the last, `[batch, heads, 1, head_dim, head_dim]` each: Equation (6)
    /// for all blocks in parallel, then Equation (7). With one block this is Equation (5).
    fn states(&self, blocks: &Blocks<B>, start: Option<Primitive<B>>) -> Vec<Option<Primitive<B>>> {
        // ζ: powers of η in falling order
        let zeta = (0..blocks.length).rev().map(|i| self.decay(i, 1)).collect();
        let weighted = blocks.k.clone() * Primitive::cat(zeta, 3);
        let intermediate = weighted
            .transpose()
            .matmul(blocks.v.clone(), self.precision);
        let mut states = vec![start];
        for i in 0..blocks.count {
            let own = intermediate.clone().narrow(2, i, 1);
            states.push(Some(match &states[i] {
                Some(before) => own + before.clone() * self.decay(blocks.length, 1),
                None => own,
            }));
        }
        states
    }

    /// Algorithm 2: retention of the trajectories, and of the prediction blocks from the states between chunks.
    /// Gives rows like those of `q`, `k` and `v`, and the state after the last chunk.
    fn pop(
        &self,
        qkv: [Primitive<B>; 3],
        start: Option<Primitive<B>>,
    ) -> (Primitive<B>, Option<Primitive<B>>) {
        let sizes = self.sizes;
        let mut states = vec![start];
        let mut outputs = Vec::new();
        let chunks = sizes.chunks();
        if chunks > 0 {
            assert_eq!(chunks * sizes.chunk, sizes.tokens);
            let blocks = self.blocks(&qkv, 0, 0, chunks, sizes.chunk);
            states = self.states(&blocks, states.remove(0));
            let before = self.stack_states(&states[..chunks]);
            outputs.push(self.rows(self.chunkwise(blocks, before), chunks, sizes.chunk));
        }
        if sizes.predicted > 0 {
            let (count, length) = (sizes.predicted, sizes.block_tokens);
            let (row, position) = (sizes.batch * sizes.tokens, sizes.tokens);
            let blocks = self.blocks(&qkv, row, position, count, length);
            let before = self.stack_states(&states[sizes.first_predicted..][..count]);
            outputs.push(self.rows(self.chunkwise(blocks, before), count, length));
        }
        let last = states.pop().flatten().filter(|_| chunks > 0);
        (Primitive::cat(outputs, 0), last)
    }

    /// η^i of each head for `count` exponents from `first` on: `[1, heads, 1, count, 1]`.
    fn decay(&self, first: usize, count: usize) -> Primitive<B> {
        let powers = self.powers.clone().narrow(1, first, count);
        powers.reshape([1, self.sizes.heads, 1, count, 1])
    }

    /// The blocks that begin at a row of the projections, with the rotations from `position` on.
    fn blocks(
        &self,
        [q, k, v]: &[Primitive<B>; 3],
        row: usize,
        position: usize,
        count: usize,
        length: usize,
    ) -> Blocks<B> {
        assert!(length <= self.mask.dims()[1]);
        let RetentionSizes { batch, heads, .. } = self.sizes;
        let split = |t: &Primitive<B>| {
            let t = t.clone().narrow(0, row, batch * count * length);
            t.reshape([batch, count, length, heads, self.dim])
                .permute(&[0, 3, 1, 2, 4])
        };
        let table = |t: &Primitive<B>| {
            t.clone()
                .narrow(0, position, count * length)
                .reshape([1, 1, count, length, self.dim])
        };
        let rotated = |t: &Primitive<B>| split(t).rotated(table(&self.cos), table(&self.sin));
        Blocks {
            q: rotated(q),
            k: rotated(k),
            v: split(v),
            count,
            length,
        }
    }

    /// Back to rows: `[batch * blocks * length, width]`.
    fn rows(&self, t: Primitive<B>, blocks: usize, length: usize) -> Primitive<B> {
        let RetentionSizes { batch, heads, .. } = self.sizes;
        t.permute(&[0, 2, 3, 1, 4])
            .reshape([batch * blocks * length, heads * self.dim])
    }

    /// States along the third axis, zeros for those that are missing; `None` if all are missing.
    fn stack_states(&self, states: &[Option<Primitive<B>>]) -> Option<Primitive<B>> {
        if states.iter().all(Option::is_none) {
            return None;
        }
        let RetentionSizes { batch, heads, .. } = self.sizes;
        let zero = || {
            let shape = Shape::from([batch, heads, 1, self.dim, self.dim]);
            let (device, dtype) = (self.powers.0.device(), self.powers.dtype());
            Primitive(B::float_zeros(shape, &device, dtype))
        };
        let states = states.iter().map(|s| s.clone().unwrap_or_else(zero));
        Some(Primitive::cat(states.collect(), 2))
    }
}

/// Rows of all prediction blocks, from those of one if they share it.
fn all_blocks<B: Backend>(x: Primitive<B>, sizes: RetentionSizes) -> Primitive<B> {
    if !sizes.shared {
        return x;
    }
    let (first, width) = (sizes.batch * sizes.tokens, x.dims()[1]);
    let (blocks, length) = (sizes.batch * sizes.predicted, sizes.block_tokens);
    let block = x.clone().narrow(0, first, length);
    let copies = block
        .reshape([1, length, width])
        .expand([blocks, length, width])
        .reshape([blocks * length, width]);
    if first == 0 {
        return copies;
    }
    Primitive::cat(vec![x.narrow(0, 0, first), copies], 0)
}

/// The output rows; with `last_only`, the last of each chunk.
fn output_rows<B: Backend>(y: Primitive<B>, sizes: RetentionSizes) -> Primitive<B> {
    let RetentionSizes {
        batch,
        tokens,
        chunk,
        ..
    } = sizes;
    if !sizes.last_only || sizes.chunks() == 0 {
        return y;
    }
    let (rows, width) = (y.dims()[0], y.dims()[1]);
    let all = batch * tokens;
    let chunks = y
        .clone()
        .narrow(0, 0, all)
        .reshape([all / chunk, chunk, width]);
    let last = chunks.narrow(1, chunk - 1, 1).reshape([all / chunk, width]);
    if rows == all {
        return last;
    }
    Primitive::cat(vec![last, y.narrow(0, all, rows - all)], 0)
}
