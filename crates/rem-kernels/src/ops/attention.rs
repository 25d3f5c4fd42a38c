//! The attention sublayer of a Transformer layer: norm, projections, causal attention, projection, residual.
//!
//! [`attention`] runs over whole sequences, [`attention_cached`] over new tokens after those in a key-value cache.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Dispatch, ExtensionType, Flex, TensorMetadata, backend_extension,
};
use burn::tensor::{Slice, Tensor, TensorData};

use super::{SublayerMode, prepend};
use crate::backend::flex::{
    FlexTensor, PackCache, is_f32, mode, rows_and_width, sublayer_gradients, tensor, values,
};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::attention::{CachePlan, LANES, Plan};
use crate::cpu::sublayer::{AttentionSublayer, Linear, Norm};
use crate::cpu::tile::Precision;

/// Parameters of the attention sublayer. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct AttentionParameters<B: Backend> {
    /// Scale of the norm.
    pub gamma: FloatTensor<B>,
    /// Shift of the norm.
    pub beta: FloatTensor<B>,
    /// Weight of the queries.
    pub query_weight: FloatTensor<B>,
    /// Bias of the queries.
    pub query_bias: FloatTensor<B>,
    /// Weight of the keys.
    pub key_weight: FloatTensor<B>,
    /// Bias of the keys.
    pub key_bias: FloatTensor<B>,
    /// Weight of the values.
    pub value_weight: FloatTensor<B>,
    /// Bias of the values.
    pub value_bias: FloatTensor<B>,
    /// Weight of the output projection.
    pub out_weight: FloatTensor<B>,
    /// Bias of the output projection.
    pub out_bias: FloatTensor<B>,
}

impl<B: Backend> AttentionParameters<B> {
    fn into_array(self) -> [FloatTensor<B>; 10] {
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

/// The sizes of an attention. Rows are `batch` sequences of equal length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSizes {
    /// Number of sequences.
    pub batch: usize,
    /// Number of heads.
    pub heads: usize,
}

/// The attention sublayer over whole sequences, from its norm to its residual.
///
/// # Shapes
/// - `x`: `[rows, width]` -> `[rows, width]`
pub fn attention(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::attention(x, parameters, sizes, mode))
}

/// The smallest supported capacity of a cache for this number of tokens.
pub fn cache_capacity(tokens: usize) -> usize {
    tokens.next_multiple_of(LANES)
}

/// As [`attention`] for new tokens after `past` tokens whose keys and values are in the cache. Returns the cache with
/// the new tokens' keys and values. A cache without a second owner is updated in place.
///
/// # Shapes
/// - `cache`: `[batch, heads, 2, capacity, head_dim]`, zeros at first, with a capacity from [`cache_capacity`]. The
///   order of its elements depends on the backend.
pub fn attention_cached(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    cache: Tensor<5>,
    sizes: AttentionSizes,
    past: usize,
    mode: SublayerMode,
) -> (Tensor<2>, Tensor<5>) {
    let (x, cache) = (x.into_dispatch(), cache.into_dispatch());
    let (y, cache) = Dispatch::attention_cached(x, parameters, cache, sizes, past, mode);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(cache))
}

/// [`attention`] and [`attention_cached`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait AttentionOps: Backend {
    /// Whole sequences.
    fn attention(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, sizes, mode)
    }

    /// New tokens after those in a cache; the outputs and the cache afterwards.
    fn attention_cached(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        cache: FloatTensor<Self>,
        sizes: AttentionSizes,
        past: usize,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference_cached::<Self>(x, parameters, cache, sizes, past, mode)
    }
}

impl AttentionOps for Flex {
    fn attention(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, sizes, mode)
    }

    fn attention_cached(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        cache: FloatTensor<Self>,
        sizes: AttentionSizes,
        past: usize,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(&x) {
            return reference_cached::<Self>(x, parameters, cache, sizes, past, mode);
        }
        let inputs: [_; 11] = prepend(x, parameters.into_array());
        Attention { sizes, mode }.forward_cached(inputs, cache, past)
    }
}

/// Imagination runs without gradients; with autodiff it falls back to the reference.
impl<C: CheckpointStrategy> AttentionOps for Autodiff<Flex, C> {
    fn attention(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, sizes, mode)
    }
}

fn train_on_flex<B: Run<Flex>>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    if !is_f32(&x) {
        return reference::<B>(x, parameters, sizes, mode);
    }
    let inputs: [_; 11] = prepend(x, parameters.into_array());
    B::run(Attention { sizes, mode }, inputs)
}

/// `[batch * tokens, width]` -> `[batch, heads, tokens, head_dim]`
fn split<B: Backend>(x: Primitive<B>, sizes: AttentionSizes) -> Primitive<B> {
    let (rows, width) = (x.dims()[0], x.dims()[1]);
    let AttentionSizes { batch, heads } = sizes;
    x.reshape([batch, rows / batch, heads, width / heads])
        .permute(&[0, 2, 1, 3])
}

/// Queries after `past` tokens over the keys and values of all: `[batch, heads, tokens, head_dim]` -> the same.
fn attend<B: Backend>(
    [q, k, v]: [Primitive<B>; 3],
    past: usize,
    dropout: f32,
    precision: Precision,
) -> Primitive<B> {
    let (tokens, dim) = (q.dims()[2], q.dims()[3]);
    let all = past + tokens;
    let hidden = (0..tokens * all).map(|i| {
        let seen = i % all <= past + i / all;
        if seen { 0f32 } else { -1e30 }
    });
    let hidden = TensorData::new(hidden.collect::<Vec<_>>(), [1, 1, tokens, all]);
    let (device, dtype) = (q.0.device(), q.dtype());
    let hidden = Primitive::<B>(B::float_cast(B::float_from_data(hidden, &device), dtype));
    let scores = (q / (dim as f64).sqrt()).matmul(k.transpose(), precision) + hidden;
    let weights = Primitive::<B>(B::softmax(scores.0, 3)).dropout(dropout);
    weights.matmul(v, precision)
}

/// Norm and projections, `attention` of queries, keys and values, projection and residual.
fn reference_sublayer<B: Backend>(
    x: FloatTensor<B>,
    p: AttentionParameters<B>,
    sizes: AttentionSizes,
    mode: SublayerMode,
    attention: impl FnOnce([Primitive<B>; 3]) -> Primitive<B>,
) -> FloatTensor<B> {
    let (x, of) = (Primitive::<B>(x), Primitive::<B>);
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

pub(super) fn reference<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    reference_sublayer(x, parameters, sizes, mode, |qkv| {
        attend(qkv, 0, mode.dropout.p, mode.precision)
    })
}

pub(super) fn reference_cached<B: Backend>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    cache: FloatTensor<B>,
    sizes: AttentionSizes,
    past: usize,
    mode: SublayerMode,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let mut updated = None;
    let y = reference_sublayer(x, parameters, sizes, mode, |[q, k, v]| {
        let shape = k.dims();
        let [batch, heads, tokens, dim] = [shape[0], shape[1], shape[2], shape[3]];
        let new = [k, v].map(|x| x.reshape([batch, heads, 1, tokens, dim]));
        let place = [
            Slice::full(),
            Slice::full(),
            Slice::full(),
            Slice::from(past..past + tokens),
        ];
        let cache = B::float_slice_assign(cache, &place, Primitive::cat(new.into(), 2).0);
        let seen = |which: usize| {
            let all = Primitive::<B>(cache.clone()).narrow(2, which, 1);
            let seen = all.narrow(3, 0, past + tokens);
            seen.reshape([batch, heads, past + tokens, dim])
        };
        // In f32 on the CPU too.
        let attended = attend([q, seen(0), seen(1)], past, 0.0, Precision::F32);
        updated = Some(cache);
        attended
    });
    (y, updated.expect("set above"))
}

#[derive(Clone, Debug)]
struct Attention {
    sizes: AttentionSizes,
    mode: SublayerMode,
}

impl Attention {
    fn plan(&self, [rows, width]: [usize; 2]) -> Plan {
        let AttentionSizes { batch, heads } = self.sizes;
        Plan {
            batch,
            heads,
            head_dim: width / heads,
            tokens: rows / batch,
            dropout: self.mode.dropout.fold_in(0),
        }
    }

    fn sublayer<'a>(&self, inputs: &'a [FlexTensor; 11]) -> AttentionSublayer<'a> {
        let p = inputs.each_ref().map(values);
        let linear = |i: usize| Linear {
            weight: p[i],
            bias: p[i + 1],
        };
        AttentionSublayer {
            norm: Norm {
                gamma: p[1],
                beta: p[2],
            },
            query: linear(3),
            key: linear(5),
            value: linear(7),
            out: linear(9),
            dropout: self.mode.dropout.fold_in(1),
        }
    }

    /// New tokens after `past` tokens in the cache, which is updated in place unless it has a second owner.
    fn forward_cached(
        &self,
        inputs: [FlexTensor; 11],
        cache: FlexTensor,
        past: usize,
    ) -> (FlexTensor, FlexTensor) {
        let inputs = inputs.map(|x| x.to_contiguous());
        let [rows, width] = rows_and_width(&inputs[0]);
        let AttentionSizes { batch, heads } = self.sizes;
        let plan = CachePlan {
            batch,
            heads,
            head_dim: width / heads,
            tokens: rows / batch,
            past,
            capacity: cache.shape()[3],
        };
        let layout = cache.layout();
        // `to_contiguous` of a contiguous tensor adds an owner, so that the write below would copy it.
        let mut cache = if layout.is_contiguous() && layout.start_offset() == 0 {
            cache
        } else {
            cache.to_contiguous()
        };
        let out = self.sublayer(&inputs).forward_cached(
            mode(self.mode.precision),
            &PackCache(&inputs),
            &plan,
            values(&inputs[0]),
            cache.storage_mut::<f32>(),
        );
        (tensor(out, [rows, width]), cache)
    }
}

impl Operation<Flex, 11> for Attention {
    /// Queries, keys and values; the attention's output.
    type Saved = [FlexTensor; 2];

    fn forward(&self, inputs: &[FlexTensor; 11]) -> (FlexTensor, Self::Saved) {
        let sizes @ [rows, width] = rows_and_width(&inputs[0]);
        let (out, projections, attended) = self.sublayer(inputs).forward(
            mode(self.mode.precision),
            &PackCache(inputs),
            &self.plan(sizes),
            values(&inputs[0]),
        );
        let saved = [
            tensor(projections, [rows, 3 * width]),
            tensor(attended, sizes),
        ];
        (tensor(out, sizes), saved)
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 11],
        saved: Self::Saved,
        d_out: FlexTensor,
        _wanted: [bool; 11],
    ) -> [Option<FlexTensor>; 11] {
        let [projections, attended] = saved.each_ref().map(values);
        let d = self.sublayer(inputs).backward(
            mode(self.mode.precision),
            &PackCache(inputs),
            &self.plan(rows_and_width(&inputs[0])),
            values(&inputs[0]),
            projections,
            attended,
            values(&d_out),
        );
        sublayer_gradients(inputs, d.x, d.norm, d.linears)
    }
}
