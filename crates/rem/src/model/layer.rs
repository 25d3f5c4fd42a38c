//! The layer of all networks: retention or attention, then feed-forward, each from its norm to its residual.

use burn::module::{Initializer, Module};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorCreationOptions};
use rem_kernels::{
    AttentionParameters, AttentionSizes, CachedSizes, Dispatch, Dropout, FeedForwardParameters,
    Hidden, Positions, Precision, RetentionParameters, SublayerMode,
};

use crate::config::{self, Activation};
use crate::model::linear::bias;
use crate::model::retention::Rotation;

/// Table 5.
const NORM_EPSILON: f64 = 1e-6;

/// One layer: retention, Equation (9), or attention, and feed-forward, Equation (10).
#[derive(Module, Debug)]
pub(super) struct Layer {
    norm1: LayerNorm,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    /// Of [`LayerKind::Retention`] only.
    g_proj: Option<Linear>,
    out_proj: Linear,
    norm2: LayerNorm,
    linear1: Linear,
    linear2: Linear,
    heads: usize,
    #[module(skip)]
    kind: LayerKind,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    precision: Precision,
}

/// What a layer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerKind {
    /// Retention with a gate.
    Retention,
    /// Attention, with the dropout and the initial weights of a layer with retention.
    Attention,
    /// Attention as in IRIS: dropout of the attention's weights, none of hidden activations.
    IrisAttention,
}

impl Layer {
    pub(super) fn new(
        kind: LayerKind,
        width: usize,
        config: &config::WorldModel,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let norm = || layer_norm(width, device);
        let projection = || xavier_linear(width, width, device);
        let linear = |inputs, outputs| match kind {
            LayerKind::Retention | LayerKind::Attention => xavier_linear(inputs, outputs, device),
            LayerKind::IrisAttention => LinearConfig::new(inputs, outputs).init(device),
        };
        Self {
            norm1: norm(),
            q_proj: projection(),
            k_proj: projection(),
            v_proj: projection(),
            g_proj: (kind == LayerKind::Retention).then(projection),
            out_proj: projection(),
            norm2: norm(),
            linear1: linear(width, config.feed_forward),
            linear2: linear(config.feed_forward, width),
            heads: config.heads,
            kind,
            activation: config.activation,
            precision,
        }
    }

    pub(super) fn heads(&self) -> usize {
        self.heads
    }

    pub(super) fn mode(&self, dropout: Dropout) -> SublayerMode {
        SublayerMode {
            dropout,
            precision: self.precision,
        }
    }

    /// # Panics
    ///
    /// Panics without retention.
    pub(super) fn retention_parameters(&self) -> RetentionParameters<Dispatch> {
        let gate = self.g_proj.as_ref().expect("a layer with retention");
        let p = self.attention_parameters();
        let (gate_weight, gate_bias) = parameters(gate);
        RetentionParameters {
            gamma: p.gamma,
            beta: p.beta,
            query_weight: p.query_weight,
            query_bias: p.query_bias,
            key_weight: p.key_weight,
            key_bias: p.key_bias,
            value_weight: p.value_weight,
            value_bias: p.value_bias,
            gate_weight,
            gate_bias,
            out_weight: p.out_weight,
            out_bias: p.out_bias,
        }
    }

    fn attention_parameters(&self) -> AttentionParameters<Dispatch> {
        let (gamma, beta) = norm_parameters(&self.norm1);
        let (query_weight, query_bias) = parameters(&self.q_proj);
        let (key_weight, key_bias) = parameters(&self.k_proj);
        let (value_weight, value_bias) = parameters(&self.v_proj);
        let (out_weight, out_bias) = parameters(&self.out_proj);
        AttentionParameters {
            gamma,
            beta,
            query_weight,
            query_bias,
            key_weight,
            key_bias,
            value_weight,
            value_bias,
            out_weight,
            out_bias,
        }
    }

    /// The attention sublayer over whole sequences with `predictions`: `[rows, width]` -> the same.
    pub(super) fn attention(
        &self,
        x: Tensor<2>,
        rotation: Option<&Rotation>,
        batch: usize,
        predictions: rem_kernels::PredictionBlocks,
        dropout: Dropout,
    ) -> Tensor<2> {
        let sizes = AttentionSizes {
            batch,
            heads: self.heads,
            predictions,
            weight_dropout: self.kind == LayerKind::IrisAttention,
        };
        let (p, mode) = (self.attention_parameters(), self.mode(dropout));
        rem_kernels::attention(x, p, positions(rotation), sizes, mode)
    }

    /// The attention sublayer over tokens after those in a cache: `[batch * tokens, width]` -> the same, and the cache
    /// with these tokens.
    pub(super) fn attention_cached(
        &self,
        x: Tensor<2>,
        rotation: Option<&Rotation>,
        cache: Tensor<5>,
        sizes: CachedSizes,
    ) -> (Tensor<2>, Tensor<5>) {
        let (p, mode) = (self.attention_parameters(), self.mode(Dropout::NONE));
        rem_kernels::attention_cached(x, p, positions(rotation), cache, sizes, mode)
    }

    /// As [`Self::attention_cached`] for tokens that leave no trace in the cache.
    pub(super) fn attention_predict(
        &self,
        x: Tensor<2>,
        rotation: Option<&Rotation>,
        cache: Tensor<5>,
        sizes: CachedSizes,
    ) -> Tensor<2> {
        let (p, mode) = (self.attention_parameters(), self.mode(Dropout::NONE));
        rem_kernels::attention_predict(x, p, positions(rotation), cache, sizes, mode)
    }

    /// The feed-forward sublayer with its norm and residual, Equation (10): `[rows, width]` -> the same.
    pub(super) fn feed_forward(&self, x: Tensor<2>, dropout: Dropout) -> Tensor<2> {
        let (gamma, beta) = norm_parameters(&self.norm2);
        let (up_weight, up_bias) = parameters(&self.linear1);
        let (down_weight, down_bias) = parameters(&self.linear2);
        let parameters = FeedForwardParameters {
            gamma,
            beta,
            up_weight,
            up_bias,
            down_weight,
            down_bias,
        };
        let hidden = Hidden {
            activation: match self.activation {
                Activation::Silu => rem_kernels::Activation::Silu,
                Activation::Gelu => rem_kernels::Activation::Gelu,
            },
            dropout: self.kind != LayerKind::IrisAttention,
        };
        rem_kernels::feed_forward(x, parameters, hidden, self.mode(dropout))
    }
}

/// Type and device, without autodiff, of constants that are combined with `x`.
pub(super) fn constants_like<const D: usize>(x: &Tensor<D>) -> TensorCreationOptions {
    TensorCreationOptions::new(x.device().without_autodiff()).with_dtype(x.dtype())
}

pub(super) fn layer_norm(width: usize, device: &Device) -> LayerNorm {
    LayerNormConfig::new(width)
        .with_epsilon(NORM_EPSILON)
        .init(device)
}

/// A linear layer with Xavier-normal weights and zero bias.
fn xavier_linear(inputs: usize, outputs: usize, device: &Device) -> Linear {
    let xavier = Initializer::XavierNormal { gain: 1.0 };
    let linear = LinearConfig::new(inputs, outputs)
        .with_initializer(xavier)
        .init(device);
    Linear {
        bias: Some(Initializer::Zeros.init([outputs], device)),
        ..linear
    }
}

/// A tensor as an argument of the kernels.
type Argument = burn::backend::tensor::FloatTensor<Dispatch>;

/// Scale and shift of a layer norm, `[width]` each.
fn norm_parameters(norm: &LayerNorm) -> (Argument, Argument) {
    let beta = norm.beta.as_ref().expect("a norm with a shift");
    (norm.gamma.val().into_dispatch(), beta.val().into_dispatch())
}

/// Weight and bias.
fn parameters(linear: &Linear) -> (Argument, Argument) {
    (
        linear.weight.val().into_dispatch(),
        bias(linear).into_dispatch(),
    )
}

fn positions(rotation: Option<&Rotation>) -> Positions<Dispatch> {
    match rotation {
        None => Positions::Embedded,
        Some(Rotation { cos, sin }) => Positions::rotary(cos.clone(), sin.clone()),
    }
}
