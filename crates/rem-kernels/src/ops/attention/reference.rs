//! The attention sublayer in a backend's primitive operations.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Slice, TensorData};

use super::{AttentionParameters, AttentionSizes, CachedSizes, Positions};
use crate::backend::primitive::Primitive;
use crate::cpu::attention::LANES;
use crate::cpu::tile::Precision;
use crate::ops::SublayerMode;

/// Whole sequences and their prediction blocks.
pub(in crate::ops) fn reference<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    positions: Positions<B>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    let heads = Heads {
        batch: sizes.batch,
        heads: sizes.heads,
    };
    let attention = Attention {
        sizes,
        dropout: if sizes.weight_dropout {
            mode.dropout.p
        } else {
            0.0
        },
        precision: mode.precision,
    };
    sublayer(x, parameters, mode, |qkv| {
        let (tokens, predicted) = (sizes.tokens(qkv[0].dims()[0]), sizes.predicted());
        let rows = sizes.batch * tokens;
        let x = rotated(heads.split(&qkv, 0, tokens), &positions, 0);
        let attended = heads.merge(attention.causal(x.clone(), 0));
        if predicted == 0 {
            return attended;
        }
        let u = rotated(heads.split(&qkv, rows, predicted), &positions, tokens);
        Primitive::cat(vec![attended, heads.merge(attention.predictions(u, x))], 0)
    })
}

/// New tokens after those in a cache; the outputs and the cache with the new tokens.
pub(in crate::ops) fn reference_cached<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    positions: Positions<B>,
    cache: FloatTensor<B>,
    sizes: CachedSizes,
    mode: SublayerMode,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let CachedSizes { batch, heads, past } = sizes;
    let tokens = x.shape()[0] / batch;
    // A few tokens are processed in f32 on the CPU too.
    let precision = match tokens {
        0..LANES => Precision::F32,
        _ => mode.precision,
    };
    let mut updated = None;
    let y = over_cache(x, parameters, positions, sizes, mode, precision, |new| {
        let shape = new[0].dims();
        let new = new.map(|x| x.reshape([batch, heads, 1, tokens, shape[3]]));
        let place = [
            Slice::full(),
            Slice::full(),
            Slice::full(),
            Slice::from(past..past + tokens),
        ];
        let cache = B::float_slice_assign(cache, &place, Primitive::cat(new.into(), 2).0);
        updated = Some(cache.clone());
        cached::<B>(cache, past + tokens)
    });
    (y, updated.expect("set above"))
}

/// Tokens after those in a cache, which does not change.
pub(in crate::ops) fn reference_predict<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    positions: Positions<B>,
    cache: FloatTensor<B>,
    sizes: CachedSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    let precision = mode.precision;
    over_cache(x, parameters, positions, sizes, mode, precision, |new| {
        let past = cached::<B>(cache, sizes.past);
        let mut pairs = past.into_iter().zip(new);
        std::array::from_fn(|_| {
            let (past, new) = pairs.next().expect("keys and values");
            Primitive::cat(vec![past, new], 2)
        })
    })
}

/// The first tokens' keys and values in a cache, `[batch, heads, tokens, head_dim]` each.
fn cached<B: Backend>(cache: FloatTensor<B>, tokens: usize) -> [Primitive<B>; 2] {
    let shape = cache.shape();
    [0, 1].map(|which| {
        let all = Primitive::<B>(cache.clone()).narrow(2, which, 1);
        let seen = all.narrow(3, 0, tokens);
        seen.reshape([shape[0], shape[1], tokens, shape[4]])
    })
}

/// New tokens over keys and values that `with_past` makes of theirs and those before.
fn over_cache<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    positions: Positions<B>,
    sizes: CachedSizes,
    mode: SublayerMode,
    precision: Precision,
    with_past: impl FnOnce([Primitive<B>; 2]) -> [Primitive<B>; 2],
) -> FloatTensor<B> {
    let CachedSizes { batch, heads, past } = sizes;
    let heads = Heads { batch, heads };
    sublayer(x, parameters, mode, |qkv| {
        let tokens = qkv[0].dims()[0] / batch;
        let [q, k, v] = rotated(heads.split(&qkv, 0, tokens), &positions, 0);
        let [k, v] = with_past([k, v]);
        heads.merge(attend([q, k, v], past, 0.0, precision))
    })
}

/// Norm and projections, `attention` of queries, keys and values, projection and residual.
fn sublayer<B: Backend>(
    x: FloatTensor<B>,
    p: AttentionParameters<B>,
    mode: SublayerMode,
    attention: impl FnOnce([Primitive<B>; 3]) -> Primitive<B>,
) -> FloatTensor<B> {
    let (x, of) = (Primitive::<B>(x), Primitive::<B>);
    let y = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let project = |w, b| y.clone().linear(of(w), of(b), mode.precision);
    let attended = attention([
        project(p.query_weight, p.query_bias),
        project(p.key_weight, p.key_bias),
        project(p.value_weight, p.value_bias),
    ]);
    let out = attended.linear(of(p.out_weight), of(p.out_bias), mode.precision);
    (x + out.dropout(mode.dropout.p)).0
}

/// Queries and keys rotated, the first by the rotation `first`.
fn rotated<B: Backend>(
    [q, k, v]: [Primitive<B>; 3],
    positions: &Positions<B>,
    first: usize,
) -> [Primitive<B>; 3] {
    let Positions::Rotary { cos, sin } = positions else {
        return [q, k, v];
    };
    let (tokens, dim) = (q.dims()[2], q.dims()[3]);
    let [cos, sin] = [cos, sin].map(|table| {
        let rows = Primitive::<B>(table.clone()).narrow(0, first, tokens);
        rows.reshape([1, 1, tokens, dim])
    });
    let [q, k] = [q, k].map(|x| x.rotated(cos.clone(), sin.clone()));
    [q, k, v]
}

/// How rows of `[batch * tokens, width]` are divided.
#[derive(Clone, Copy)]
struct Heads {
    batch: usize,
    heads: usize,
}

impl Heads {
    /// `batch * tokens` rows from `first` on -> `[batch, heads, tokens, head_dim]`
    fn split<B: Backend>(
        self,
        qkv: &[Primitive<B>; 3],
        first: usize,
        tokens: usize,
    ) -> [Primitive<B>; 3] {
        let Self { batch, heads } = self;
        qkv.each_ref().map(|x| {
            let dim = x.dims()[1] / heads;
            let rows = x.clone().narrow(0, first, batch * tokens);
            rows.reshape([batch, tokens, heads, dim])
                .permute(&[0, 2, 1, 3])
        })
    }

    /// The inverse of [`split`](Self::split).
    fn merge<B: Backend>(self, x: Primitive<B>) -> Primitive<B> {
        let (tokens, dim) = (x.dims()[2], x.dims()[3]);
        x.permute(&[0, 2, 1, 3])
            .reshape([self.batch * tokens, self.heads * dim])
    }
}

/// Queries after `past` tokens over the keys and values of all: `[batch, heads, tokens, head_dim]` -> the same.
fn attend<B: Backend>(
    [q, k, v]: [Primitive<B>; 3],
    past: usize,
    dropout: f32,
    precision: Precision,
) -> Primitive<B> {
    let (tokens, dim) = (q.dims()[2], q.dims()[3]);
    let hidden = hidden([tokens, past + tokens], &q, |query, key| {
        key <= past + query
    });
    let scores = (q / (dim as f64).sqrt()).matmul(k.transpose(), precision) + hidden;
    let weights = Primitive::<B>(B::softmax(scores.0, 3)).dropout(dropout);
    weights.matmul(v, precision)
}

/// Added to scores: 0 where a query sees a key, else a number that vanishes in a softmax. `[1, 1, queries, keys]`
fn hidden<B: Backend>(
    [queries, keys]: [usize; 2],
    like: &Primitive<B>,
    sees: impl Fn(usize, usize) -> bool,
) -> Primitive<B> {
    let score = |i: usize| {
        if sees(i / keys, i % keys) {
            0f32
        } else {
            -1e30
        }
    };
    let scores: Vec<f32> = (0..queries * keys).map(score).collect();
    let scores = B::float_from_data(
        TensorData::new(scores, [1, 1, queries, keys]),
        &like.0.device(),
    );
    Primitive(B::float_cast(scores, like.dtype()))
}

/// Attention over whole sequences.
struct Attention {
    sizes: AttentionSizes,
    dropout: f32,
    precision: Precision,
}

impl Attention {
    fn causal<B: Backend>(&self, qkv: [Primitive<B>; 3], past: usize) -> Primitive<B> {
        attend(qkv, past, self.dropout, self.precision)
    }

    /// Prediction blocks over the tokens of their sequence before them and, causally, over themselves.
    ///
    /// # Shapes
    /// - `u`: `[batch, heads, count * block_tokens, head_dim]` each; `x`: `[batch, heads, tokens, head_dim]` each
    fn predictions<B: Backend>(
        &self,
        [q, k, v]: [Primitive<B>; 3],
        [_, past_keys, past_values]: [Primitive<B>; 3],
    ) -> Primitive<B> {
        let AttentionSizes { batch, heads, .. } = self.sizes;
        let blocks = self.sizes.predictions;
        let (rows, dim, tokens) = (q.dims()[2], q.dims()[3], past_keys.dims()[2]);
        let by_block = |x: Primitive<B>, columns: usize| {
            x.reshape([batch * heads, blocks.count, blocks.tokens, columns])
        };
        let q = q / (dim as f64).sqrt();
        let own = by_block(q.clone(), dim).matmul(by_block(k, dim).transpose(), self.precision);
        let own = own + hidden([blocks.tokens; 2], &q, |query, key| key <= query);
        let own = own.reshape([batch, heads, rows, blocks.tokens]);
        let before =
            |query: usize, key: usize| key < (blocks.first + query / blocks.tokens) * blocks.chunk;
        let before = hidden([rows, tokens], &q, before);
        let past = q.matmul(past_keys.transpose(), self.precision) + before;
        let scores = Primitive::cat(vec![past, own], 3);
        let weights = Primitive::<B>(B::softmax(scores.0, 3)).dropout(self.dropout);
        let past = (weights.clone().narrow(3, 0, tokens)).matmul(past_values, self.precision);
        let own = by_block(weights.narrow(3, tokens, blocks.tokens), blocks.tokens);
        let own = own.matmul(by_block(v, dim), self.precision);
        past + own.reshape([batch, heads, rows, dim])
    }
}
