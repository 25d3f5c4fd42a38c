//! Layers that the RetNet and the Transformer share: layer norm, projections, the feed-forward sublayer.

use burn::module::Initializer;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use rem_kernels::{FeedForwardParameters, SublayerMode};

use crate::config::Activation;
use crate::model::linear::bias;

/// Table 5.
const NORM_EPSILON: f64 = 1e-6;

pub(crate) fn layer_norm(width: usize, device: &Device) -> LayerNorm {
    LayerNormConfig::new(width)
        .with_epsilon(NORM_EPSILON)
        .init(device)
}

/// Scale and shift of a layer norm, `[width]` each.
pub(crate) fn norm_parameters(norm: &LayerNorm) -> (Tensor<1>, Tensor<1>) {
    let beta = norm.beta.as_ref().expect("a norm with a shift");
    (norm.gamma.val(), beta.val())
}

/// A projection `[width]` -> `[width]`: Xavier-normal weights, zero bias.
pub(crate) fn projection(width: usize, device: &Device) -> Linear {
    xavier_linear(width, width, device)
}

/// A linear layer with Xavier-normal weights and zero bias.
pub(crate) fn xavier_linear(inputs: usize, outputs: usize, device: &Device) -> Linear {
    let xavier = Initializer::XavierNormal { gain: 1.0 };
    let linear = LinearConfig::new(inputs, outputs)
        .with_initializer(xavier)
        .init(device);
    Linear {
        bias: Some(Initializer::Zeros.init([outputs], device)),
        ..linear
    }
}

/// The feed-forward sublayer with its norm and residual, Equation (10): `[rows, width]` -> the same.
pub(crate) fn feed_forward(
    x: Tensor<2>,
    norm: &LayerNorm,
    [up, down]: [&Linear; 2],
    hidden: rem_kernels::Hidden,
    mode: SublayerMode,
) -> Tensor<2> {
    let (gamma, beta) = norm_parameters(norm);
    let parameters = FeedForwardParameters {
        gamma: gamma.into_dispatch(),
        beta: beta.into_dispatch(),
        up_weight: up.weight.val().into_dispatch(),
        up_bias: bias(up).into_dispatch(),
        down_weight: down.weight.val().into_dispatch(),
        down_bias: bias(down).into_dispatch(),
    };
    rem_kernels::feed_forward(x, parameters, hidden, mode)
}

/// The kernel's name of an activation.
pub(crate) fn kernel_activation(activation: Activation) -> rem_kernels::Activation {
    match activation {
        Activation::Silu => rem_kernels::Activation::Silu,
        Activation::Gelu => rem_kernels::Activation::Gelu,
    }
}
