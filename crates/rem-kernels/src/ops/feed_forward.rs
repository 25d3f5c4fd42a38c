//! The feed-forward sublayer of a RetNet or Transformer layer (Equation (10)): norm, two linear layers with an
//! activation between them, residual.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, Flex, backend_extension};
use burn::tensor::Tensor;

use super::{SublayerMode, prepend};
use crate::backend::flex::{
    FlexTensor, PackCache, impl_for_flex, is_f32, mode, rows_and_width, sublayer_gradients, tensor,
    values,
};
use crate::backend::primitive::Primitive;
use crate::backend::{Operation, Run};
use crate::cpu::dropout::Dropout;
use crate::cpu::math::Activation;
use crate::cpu::sublayer::{FeedForwardSublayer, Linear, Norm};

/// Parameters of the feed-forward sublayer. Weights are `[inputs, outputs]`.
#[derive(ExtensionType)]
pub struct FeedForwardParameters<B: Backend> {
    /// Scale of the norm.
    pub gamma: FloatTensor<B>,
    /// Shift of the norm.
    pub beta: FloatTensor<B>,
    /// Weight of the first layer, `[width, hidden]`.
    pub up_weight: FloatTensor<B>,
    /// Bias of the first layer.
    pub up_bias: FloatTensor<B>,
    /// Weight of the second layer, `[hidden, width]`.
    pub down_weight: FloatTensor<B>,
    /// Bias of the second layer.
    pub down_bias: FloatTensor<B>,
}

impl<B: Backend> FeedForwardParameters<B> {
    fn into_array(self) -> [FloatTensor<B>; 6] {
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

/// What happens to the hidden units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The activation.
    pub activation: Activation,
    /// Whether dropout applies to them, besides that of the sublayer's output.
    pub dropout: bool,
}

/// The feed-forward sublayer, from its norm to its residual.
///
/// # Shapes
/// - `x`: `[rows, width]` -> `[rows, width]`
pub fn feed_forward(
    x: Tensor<2>,
    parameters: FeedForwardParameters<Dispatch>,
    hidden: Hidden,
    mode: SublayerMode,
) -> Tensor<2> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(Dispatch::feed_forward(x, parameters, hidden, mode))
}

/// [`feed_forward`] on a backend.
#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub trait FeedForwardOps: Backend {
    /// The feed-forward sublayer.
    fn feed_forward(
        x: FloatTensor<Self>,
        #[extension_type] parameters: FeedForwardParameters<Self>,
        hidden: Hidden,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        reference::<Self>(x, parameters, hidden, mode)
    }
}

impl_for_flex!(FeedForwardOps {
    fn feed_forward(
        x: FloatTensor<Self>,
        parameters: FeedForwardParameters<Self>,
        hidden: Hidden,
        mode: SublayerMode,
    ) -> FloatTensor<Self> {
        if !is_f32(&x) {
            return reference::<Self>(x, parameters, hidden, mode);
        }
        let inputs: [_; 7] = prepend(x, parameters.into_array());
        Self::run(FeedForward { hidden, mode }, inputs)
    }
});

pub(super) fn reference<B: Backend>(
    x: FloatTensor<B>,
    p: FeedForwardParameters<B>,
    hidden: Hidden,
    mode: SublayerMode,
) -> FloatTensor<B> {
    let (x, of) = (Primitive::<B>(x), Primitive::<B>);
    let y = x.clone().layer_norm(of(p.gamma), of(p.beta));
    let y = y.linear(of(p.up_weight), of(p.up_bias), mode.precision);
    let mut y = y.activate(hidden.activation);
    if hidden.dropout {
        y = y.dropout(mode.dropout.p);
    }
    let out = y.linear(of(p.down_weight), of(p.down_bias), mode.precision);
    (x + out.dropout(mode.dropout.p)).0
}

#[derive(Clone, Debug)]
struct FeedForward {
    hidden: Hidden,
    mode: SublayerMode,
}

impl FeedForward {
    fn sublayer<'a>(&self, inputs: &'a [FlexTensor; 7]) -> FeedForwardSublayer<'a> {
        let [_, gamma, beta, up, up_bias, down, down_bias] = inputs.each_ref().map(values);
        FeedForwardSublayer {
            norm: Norm { gamma, beta },
            up: Linear {
                weight: up,
                bias: up_bias,
            },
            down: Linear {
                weight: down,
                bias: down_bias,
            },
            activation: self.hidden.activation,
            hidden_dropout: match self.hidden.dropout {
                true => self.mode.dropout.fold_in(0),
                false => Dropout::NONE,
            },
            dropout: self.mode.dropout.fold_in(1),
        }
    }
}

impl Operation<Flex, 7> for FeedForward {
    /// The output of the first linear layer.
    type Saved = FlexTensor;

    fn forward(&self, inputs: &[FlexTensor; 7]) -> (FlexTensor, FlexTensor) {
        let [rows, width] = rows_and_width(&inputs[0]);
        let sublayer = self.sublayer(inputs);
        let (out, hidden) = sublayer.forward(
            mode(self.mode.precision),
            &PackCache(inputs),
            values(&inputs[0]),
        );
        (
            tensor(out, [rows, width]),
            tensor(hidden, [rows, sublayer.up.bias.len()]),
        )
    }

    fn backward(
        &self,
        inputs: &[FlexTensor; 7],
        hidden: FlexTensor,
        d_out: FlexTensor,
        _wanted: [bool; 7],
    ) -> [Option<FlexTensor>; 7] {
        let d = self.sublayer(inputs).backward(
            mode(self.mode.precision),
            &PackCache(inputs),
            values(&inputs[0]),
            values(&hidden),
            values(&d_out),
        );
        sublayer_gradients(inputs, d.x, d.norm, [d.up, d.down])
    }
}
