//! The attention half of a Transformer's layer as an operation on any device.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType, TensorMetadata};
use burn::tensor::{Slice, TensorData};

use crate::cpu::tile::Precision;
use crate::plain::Plain;
use crate::retnet::HalfMode;

/// Parameters of the attention half. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct AttentionParameters<B: Backend> {
    pub gamma: FloatTensor<B>,
    pub beta: FloatTensor<B>,
    pub query_weight: FloatTensor<B>,
    pub query_bias: FloatTensor<B>,
    pub key_weight: FloatTensor<B>,
    pub key_bias: FloatTensor<B>,
    pub value_weight: FloatTensor<B>,
    pub value_bias: FloatTensor<B>,
    pub out_weight: FloatTensor<B>,
    pub out_bias: FloatTensor<B>,
}

impl<B: Backend> AttentionParameters<B> {
    pub(crate) fn into_array(self) -> [FloatTensor<B>; 10] {
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
            p.out_weight,
            p.out_bias,
        ]
    }
}

/// Rows are `batch` sequences of equal length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSizes {
    pub batch: usize,
    pub heads: usize,
}

/// `[batch * tokens, width]` -> `[batch, heads, tokens, head_dim]`
fn split<B: Backend>(x: Plain<B>, sizes: AttentionSizes) -> Plain<B> {
    let (rows, width) = (x.dims()[0], x.dims()[1]);
    let AttentionSizes { batch, heads } = sizes;
    x.reshape([batch, rows / batch, heads, width / heads])
        .permute(&[0, 2, 1, 3])
}

/// Queries after `past` tokens over the keys and values of all: `[batch, heads, tokens, head_dim]` -> the same.
fn attend<B: Backend>(
    [q, k, v]: [Plain<B>; 3],
    past: usize,
    dropout: f32,
    precision: Precision,
) -> Plain<B> {
    let (tokens, dim) = (q.dims()[2], q.dims()[3]);
    let all = past + tokens;
    let hidden = (0..tokens * all).map(|i| {
        let seen = i % all <= past + i / all;
        if seen { 0f32 } else { -1e30 }
    });
    let hidden = TensorData::new(hidden.collect::<Vec<_>>(), [1, 1, tokens, all]);
    let (device, dtype) = (q.0.device(), q.dtype());
    let hidden = Plain::<B>(B::float_cast(B::float_from_data(hidden, &device), dtype));
    let scores = (q / (dim as f64).sqrt()).times(k.turned(), precision) + hidden;
    let weights = Plain::<B>(B::softmax(scores.0, 3)).dropout(dropout);
    weights.times(v, precision)
}

/// Norm and projections; then `attention` of queries, keys and values; then projection and residual.
fn half<B: Backend>(
    x: FloatTensor<B>,
    p: AttentionParameters<B>,
    sizes: AttentionSizes,
    mode: HalfMode,
    attention: impl FnOnce([Plain<B>; 3]) -> Plain<B>,
) -> FloatTensor<B> {
    let (x, of) = (Plain::<B>(x), Plain::<B>);
    let (rows, width) = (x.dims()[0], x.dims()[1]);
    let y = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let project = |w, b| split(y.clone().linear(of(w), of(b), mode.precision), sizes);
    let attended = attention([
        project(p.query_weight, p.query_bias),
        project(p.key_weight, p.key_bias),
        project(p.value_weight, p.value_bias),
    ]);
    let attended = attended.permute(&[0, 2, 1, 3]).reshape([rows, width]);
    let out = attended.linear(of(p.out_weight), of(p.out_bias), mode.precision);
    (x + out.dropout(mode.dropout.p)).0
}

/// The attention half over whole sequences in ordinary operations.
pub(crate) fn attention<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    sizes: AttentionSizes,
    mode: HalfMode,
) -> FloatTensor<B> {
    half(x, parameters, sizes, mode, |qkv| {
        attend(qkv, 0, mode.dropout.p, mode.precision)
    })
}

/// The attention half of new tokens after `past` kept ones in ordinary operations; with the cache,
/// `[batch, heads, 2, capacity, head_dim]`.
pub(crate) fn attention_read<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    cache: FloatTensor<B>,
    sizes: AttentionSizes,
    past: usize,
    mode: HalfMode,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let mut kept = None;
    let y = half(x, parameters, sizes, mode, |[q, k, v]| {
        let shape = k.dims();
        let [batch, heads, tokens, dim] = [shape[0], shape[1], shape[2], shape[3]];
        let new = [k, v].map(|x| x.reshape([batch, heads, 1, tokens, dim]));
        let place = [
            Slice::full(),
            Slice::full(),
            Slice::full(),
            Slice::from(past..past + tokens),
        ];
        let cache = B::float_slice_assign(cache, &place, Plain::cat(new.into(), 2).0);
        let seen = |which: usize| {
            let all = Plain::<B>(cache.clone()).narrow(2, which, 1);
            let seen = all.narrow(3, 0, past + tokens);
            seen.reshape([batch, heads, past + tokens, dim])
        };
        let attended = attend([q, seen(0), seen(1)], past, 0.0, mode.precision);
        kept = Some(cache);
        attended
    });
    (y, kept.expect("set above"))
}
