//! The attention sublayer of a Transformer layer: norm, projections, causal attention with POP's prediction blocks,
//! projection, residual.
//!
//! [`attention`] runs over whole sequences, [`attention_cached`] over new tokens after those in a key-value cache, and
//! [`attention_predict`] over tokens that see a cache and do not change it.

mod reference;
mod types;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::{SublayerMode, prepend};
use crate::backend::flex::{
    FlexTensor, PackCache, is_f32, mode, rows_and_width, sublayer_gradients, tensor, values,
};
use crate::backend::{Operation, Run};
use crate::cpu::attention::{BLOCK, Cache, CachePlan, LANES, Plan};
use crate::cpu::dropout::Dropout;
use crate::cpu::rotation::Rotation;
use crate::cpu::sublayer::{AttentionSublayer, Linear, Norm};
pub(super) use reference::{reference, reference_cached, reference_predict};
pub use types::{AttentionParameters, AttentionSizes, CachedSizes, Positions, PredictionBlocks};

/// The attention sublayer over whole sequences, from its norm to its residual.
///
/// # Shapes
/// - `x`: `[rows, width]`, ordered as [`AttentionSizes`] says -> `[rows, width]`
pub fn attention(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    positions: Positions<Dispatch>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::attention(x, parameters, positions, sizes, mode))
}

/// The smallest supported capacity of a cache for this number of tokens.
pub fn cache_capacity(tokens: usize) -> usize {
    tokens.next_multiple_of(LANES)
}

/// As [`attention`] for new tokens after those whose keys and values are in the cache. Returns the cache with the new
/// tokens' keys and values. A cache without a second owner is updated in place.
///
/// # Shapes
/// - `cache`: `[batch, heads, 2, capacity, head_dim]`, zeros at first, with a capacity from [`cache_capacity`]. The
///   order of its elements depends on the backend. Zeros after the last of the fourth axis add capacity.
pub fn attention_cached(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    positions: Positions<Dispatch>,
    cache: Tensor<5>,
    sizes: CachedSizes,
    mode: SublayerMode,
) -> (Tensor<2>, Tensor<5>) {
    let (x, cache) = (x.into_dispatch(), cache.into_dispatch());
    let (y, cache) = Dispatch::attention_cached(x, parameters, positions, cache, sizes, mode);
    (Tensor::from_dispatch(y), Tensor::from_dispatch(cache))
}

/// As [`attention_cached`] for prediction tokens, which do not change the cache.
pub fn attention_predict(
    x: Tensor<2>,
    parameters: AttentionParameters<Dispatch>,
    positions: Positions<Dispatch>,
    cache: Tensor<5>,
    sizes: CachedSizes,
    mode: SublayerMode,
) -> Tensor<2> {
    let (x, cache) = (x.into_dispatch(), cache.into_dispatch());
    Tensor::from_dispatch(Dispatch::attention_predict(
        x, parameters, positions, cache, sizes, mode,
    ))
}

/// [`attention`], [`attention_cached`] and [`attention_predict`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait AttentionOps: Backend {
    /// Whole sequences.
    fn attention(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        #[extension_type] positions: Positions<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, positions, sizes, mode)
    }

    /// New tokens after those in a cache; the outputs and the cache afterwards.
    fn attention_cached(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        #[extension_type] positions: Positions<Self>,
        cache: FloatTensor<Self>,
        sizes: CachedSizes,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference_cached::<Self>(x, parameters, positions, cache, sizes, mode)
    }

    /// Prediction tokens, which do not change the cache.
    fn attention_predict(
        x: FloatTensor<Self>,
        #[extension_type] parameters: AttentionParameters<Self>,
        #[extension_type] positions: Positions<Self>,
        cache: FloatTensor<Self>,
        sizes: CachedSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference_predict::<Self>(x, parameters, positions, cache, sizes, mode)
    }
}

impl AttentionOps for Flex {
    fn attention(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        positions: Positions<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, positions, sizes, mode)
    }

    fn attention_cached(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        positions: Positions<Self>,
        cache: FloatTensor<Self>,
        sizes: CachedSizes,
        mode: SublayerMode,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(&x) {
            return reference_cached::<Self>(x, parameters, positions, cache, sizes, mode);
        }
        let sublayer = CachedAttention::new(x, parameters, positions, sizes, mode);
        sublayer.update(cache)
    }

    fn attention_predict(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        positions: Positions<Self>,
        cache: FloatTensor<Self>,
        sizes: CachedSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference_predict::<Self>(x, parameters, positions, cache, sizes, mode);
        }
        let sublayer = CachedAttention::new(x, parameters, positions, sizes, mode);
        sublayer.predict(cache)
    }
}

/// Imagination runs without gradients; with autodiff it falls back to the reference.
impl<C: CheckpointStrategy> AttentionOps for Autodiff<Flex, C> {
    fn attention(
        x: FloatTensor<Self>,
        parameters: AttentionParameters<Self>,
        positions: Positions<Self>,
        sizes: AttentionSizes,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        train_on_flex::<Self>(x, parameters, positions, sizes, mode)
    }
}

fn train_on_flex<B: Run<Flex>>(
    x: FloatTensor<B>,
    parameters: AttentionParameters<B>,
    positions: Positions<B>,
    sizes: AttentionSizes,
    mode: SublayerMode,
) -> FloatTensor<B> {
    if !is_f32(&x) {
        return reference::<B>(x, parameters, positions, sizes, mode);
    }
    let inputs: [_; 11] = prepend(x, parameters.into_array());
    let rotation = Tables::new::<B>(positions);
    let operation = Attention {
        rotation,
        sizes,
        mode,
    };
    B::run(operation, inputs)
}

/// Cosines and sines of rotary positions.
#[derive(Clone, Debug)]
struct Tables([FlexTensor; 2]);

impl Tables {
    fn new<B: Run<Flex>>(positions: Positions<B>) -> Option<Self> {
        match positions {
            Positions::Embedded => None,
            Positions::Rotary { cos, sin } => {
                Some(Self([cos, sin].map(|t| B::detach(t).to_contiguous())))
            }
        }
    }

    fn rotation(&self) -> Rotation<'_> {
        let [cos, sin] = self.0.each_ref().map(values);
        Rotation { cos, sin }
    }
}

/// The sublayer of its inputs: x, norm, linear layers.
fn sublayer(inputs: &[FlexTensor; 11], dropout: Dropout) -> AttentionSublayer<'_> {
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
        dropout,
    }
}

/// The sublayer over whole sequences on the CPU.
#[derive(Clone, Debug)]
struct Attention {
    rotation: Option<Tables>,
    sizes: AttentionSizes,
    mode: SublayerMode,
}

impl Attention {
    fn plan(&self, [rows, width]: [usize; 2]) -> Plan<'_> {
        let sizes = self.sizes;
        let blocks = sizes.predictions;
        Plan {
            batch: sizes.batch,
            heads: sizes.heads,
            head_dim: width / sizes.heads,
            tokens: sizes.tokens(rows),
            chunk: match blocks.count {
                0 => BLOCK,
                _ => blocks.chunk,
            },
            first_predicted: blocks.first,
            predicted: blocks.count,
            block_tokens: blocks.tokens,
            rotation: self.rotation.as_ref().map(Tables::rotation),
            dropout: match sizes.weight_dropout {
                true => self.mode.dropout.fold_in(0),
                false => Dropout::NONE,
            },
        }
    }

    fn sublayer<'a>(&self, inputs: &'a [FlexTensor; 11]) -> AttentionSublayer<'a> {
        sublayer(inputs, self.mode.dropout.fold_in(1))
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

/// The sublayer over a cache on the CPU.
struct CachedAttention {
    inputs: [FlexTensor; 11],
    rotation: Option<Tables>,
    sizes: CachedSizes,
    mode: SublayerMode,
}

impl CachedAttention {
    fn new(
        x: FlexTensor,
        parameters: AttentionParameters<Flex>,
        positions: Positions<Flex>,
        sizes: CachedSizes,
        mode: SublayerMode,
    ) -> Self {
        let inputs: [FlexTensor; 11] = prepend(x, parameters.into_array());
        Self {
            inputs: inputs.map(|x| x.to_contiguous()),
            rotation: Tables::new::<Flex>(positions),
            sizes,
            mode,
        }
    }

    fn forward(&self, capacity: usize, cache: Cache) -> FlexTensor {
        let [rows, width] = rows_and_width(&self.inputs[0]);
        let CachedSizes { batch, heads, past } = self.sizes;
        let plan = CachePlan {
            new: Plan {
                batch,
                heads,
                head_dim: width / heads,
                tokens: rows / batch,
                chunk: BLOCK,
                first_predicted: 0,
                predicted: 0,
                block_tokens: 0,
                rotation: self.rotation.as_ref().map(Tables::rotation),
                dropout: Dropout::NONE,
            },
            past,
            capacity,
        };
        let out = sublayer(&self.inputs, Dropout::NONE).forward_cached(
            mode(self.mode.precision),
            &PackCache(&self.inputs),
            &plan,
            values(&self.inputs[0]),
            cache,
        );
        tensor(out, [rows, width])
    }

    /// The outputs and the cache, which is updated in place unless it has a second owner.
    fn update(&self, cache: FlexTensor) -> (FlexTensor, FlexTensor) {
        let layout = cache.layout();
        // `to_contiguous` of a contiguous tensor adds an owner, so that the write below would copy it.
        let mut cache = if layout.is_contiguous() && layout.start_offset() == 0 {
            cache
        } else {
            cache.to_contiguous()
        };
        let capacity = cache.shape()[3];
        let out = self.forward(capacity, Cache::Update(cache.storage_mut::<f32>()));
        (out, cache)
    }

    fn predict(&self, cache: FlexTensor) -> FlexTensor {
        let cache = cache.to_contiguous();
        self.forward(cache.shape()[3], Cache::Read(values(&cache)))
    }
}
