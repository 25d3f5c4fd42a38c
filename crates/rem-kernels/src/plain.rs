//! A short notation for a backend's ordinary operations: what the default bodies are written in.

use std::ops::{Add, Div, Mul, Sub};

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata, get_or_init_device_settings};
use burn::tensor::{DType, Distribution, FloatDType, Shape, Slice};

use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;

/// A float tensor of any backend.
pub(crate) struct Plain<B: Backend>(pub FloatTensor<B>);

impl<B: Backend> Clone for Plain<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

macro_rules! binary {
    ($trait:ident, $method:ident, $tensors:ident, $scalar:ident) => {
        impl<B: Backend> $trait for Plain<B> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(B::$tensors(self.0, other.0))
            }
        }
        impl<B: Backend> $trait<f64> for Plain<B> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                Self(B::$scalar(self.0, Scalar::Float(other)))
            }
        }
    };
}
binary!(Add, add, float_add, float_add_scalar);
binary!(Sub, sub, float_sub, float_sub_scalar);
binary!(Mul, mul, float_mul, float_mul_scalar);
binary!(Div, div, float_div, float_div_scalar);

impl<B: Backend> Plain<B> {
    pub fn dims(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    pub fn dtype(&self) -> FloatDType {
        self.0.dtype().into()
    }

    pub fn reshape<const D: usize>(self, shape: [usize; D]) -> Self {
        Self(B::float_reshape(self.0, Shape::from(shape)))
    }

    pub fn permute(self, axes: &[usize]) -> Self {
        Self(B::float_permute(self.0, axes))
    }

    pub fn expand<const D: usize>(self, shape: [usize; D]) -> Self {
        Self(B::float_expand(self.0, Shape::from(shape)))
    }

    pub fn turned(self) -> Self {
        let rank = self.dims().len();
        Self(B::float_swap_dims(self.0, rank - 2, rank - 1))
    }

    /// `count` indices of `axis` from `first` on.
    pub fn narrow(self, axis: usize, first: usize, count: usize) -> Self {
        let mut slices = vec![Slice::full(); axis + 1];
        slices[axis] = Slice::from(first..first + count);
        Self(B::float_slice(self.0, &slices))
    }

    pub fn cat(parts: Vec<Self>, axis: usize) -> Self {
        Self(B::float_cat(parts.into_iter().map(|p| p.0).collect(), axis))
    }

    pub fn mean(self, axis: usize) -> Self {
        Self(B::float_mean_dim(self.0, axis))
    }

    pub fn sum(self, axis: usize) -> Self {
        Self(B::float_sum_dim(self.0, axis))
    }

    pub fn sqrt(self) -> Self {
        Self(B::float_sqrt(self.0))
    }

    pub fn tanh(self) -> Self {
        Self(B::float_tanh(self.0))
    }

    pub fn square(self) -> Self {
        self.clone() * self
    }

    pub fn sigmoid(self) -> Self {
        Self(B::sigmoid(self.0))
    }

    /// A product of matrices over the last two axes.
    pub fn times(self, other: Self, precision: Precision) -> Self {
        let dtype = self.dtype();
        match precision {
            Precision::Mixed if dtype == FloatDType::F32 => {
                let round = |x: Self| B::float_cast(x.0, FloatDType::BF16);
                Self(B::float_cast(
                    B::float_matmul(round(self), round(other)),
                    dtype,
                ))
            }
            _ => Self(B::float_matmul(self.0, other.0)),
        }
    }

    pub fn activate(self, activation: Activation) -> Self {
        match activation {
            Activation::None => self,
            Activation::Relu => Self(B::relu(self.0)),
            Activation::Silu => self.clone() * self.sigmoid(),
            Activation::Gelu => Self(B::gelu(self.0)),
        }
    }

    /// Rows to mean 0 and variance 1 over the last axis.
    pub fn unit_variance(self) -> Self {
        let last = self.dims().len() - 1;
        let centred = self.clone() - self.mean(last);
        let variance = centred.clone().square().mean(last);
        centred / (variance + f64::from(crate::cpu::norm::EPSILON)).sqrt()
    }

    pub fn layer_norm(self, gamma: Self, beta: Self) -> Self {
        let width = gamma.dims()[0];
        self.unit_variance() * gamma.reshape([1, width]) + beta.reshape([1, width])
    }

    /// `self · weight + bias` for rows.
    pub fn linear(self, weight: Self, bias: Self, precision: Precision) -> Self {
        let outputs = bias.dims()[0];
        self.times(weight, precision) + bias.reshape([1, outputs])
    }

    /// Dropout by the device's own generator.
    pub fn dropout(self, p: f32) -> Self {
        if p == 0.0 {
            return self;
        }
        let keep = f64::from(1.0 - p);
        let device = self.0.device();
        let mask = B::float_random(
            self.0.shape(),
            Distribution::Bernoulli(keep),
            &device,
            self.dtype(),
        );
        self * Self(mask) / keep
    }
}

/// Whether the tuned kernels can take it: they know f32 alone.
pub(crate) fn is_f32(tensor: &impl TensorMetadata) -> bool {
    tensor.dtype() == DType::F32
}

/// Cross-entropy of each row.
pub(crate) fn cross_entropy<B: Backend>(
    logits: FloatTensor<B>,
    targets: IntTensor<B>,
) -> FloatTensor<B> {
    let rows = logits.shape()[0];
    let targets = B::int_reshape(targets, Shape::from([rows, 1]));
    let chosen = B::float_gather(1, B::log_softmax(logits, 1), targets);
    Plain::<B>(B::float_neg(chosen)).reshape([rows]).0
}

/// A class for each row, by inverting the cumulative distribution.
pub(crate) fn sample<B: Backend>(logits: FloatTensor<B>, draws: FloatTensor<B>) -> IntTensor<B> {
    let shape = logits.shape();
    let (rows, classes) = (shape[0], shape[1]);
    let settings = get_or_init_device_settings::<B>(&logits.device());
    let cumulative = Plain::<B>(B::float_cumsum(B::softmax(logits, 1), 1));
    // Rounding may leave the last sum beside 1: draw below it, so that no impossible class is taken.
    let whole = cumulative.clone().narrow(1, classes - 1, 1);
    let threshold = (Plain::<B>(draws).reshape([rows, 1]) * whole).expand([rows, classes]);
    let below = B::float_lower_equal(cumulative.0, threshold.0, settings.bool_dtype);
    let count = B::int_sum_dim(B::bool_into_int(below, settings.int_dtype), 1);
    let class = B::int_clamp_max(count, Scalar::Int(classes as i64 - 1));
    B::int_reshape(class, Shape::from([rows]))
}

/// The nearest code of each row: the least |z - e|² without |z|², which is the same for every code.
pub(crate) fn nearest<B: Backend>(rows: FloatTensor<B>, codes: FloatTensor<B>) -> IntTensor<B> {
    let count = rows.shape()[0];
    let settings = get_or_init_device_settings::<B>(&rows.device());
    let (rows, codes) = (Plain::<B>(rows), Plain::<B>(codes));
    let norms = codes.clone().square().sum(1).turned();
    let distance = norms - rows.times(codes.turned(), Precision::F32) * 2.0;
    B::int_reshape(
        B::float_argmin(distance.0, 1, settings.int_dtype),
        Shape::from([count]),
    )
}

/// The pointwise part of an LSTM cell.
pub(crate) fn lstm_cell<B: Backend>(
    gates: FloatTensor<B>,
    cells: FloatTensor<B>,
) -> FloatTensor<B> {
    let (gates, cells) = (Plain::<B>(gates), Plain::<B>(cells));
    let width = cells.dims()[1];
    let gate = |i: usize| gates.clone().narrow(1, i * width, width);
    let next = gate(1).sigmoid() * cells + gate(0).sigmoid() * gate(2).tanh();
    let hidden = gate(3).sigmoid() * next.clone().tanh();
    Plain::cat(vec![hidden, next], 1).0
}

/// LSTM cells one after the other; see [`crate::lstm_sequence`].
pub(crate) fn lstm_sequence<B: Backend>(
    [gates, weight, bias, hidden, cells]: [FloatTensor<B>; 5],
    precision: Precision,
) -> FloatTensor<B> {
    let shape = gates.shape();
    let (steps, batch, width) = (shape[0], shape[1], shape[2]);
    let (mut hidden, mut cells) = (Plain::<B>(hidden), cells);
    let mut all = Vec::with_capacity(steps);
    for s in 0..steps {
        let given = Plain::<B>(gates.clone())
            .narrow(0, s, 1)
            .reshape([batch, width]);
        let weight = Plain(weight.clone());
        let gates = given + hidden.linear(weight, Plain(bias.clone()), precision);
        let both = Plain::<B>(lstm_cell::<B>(gates.0, cells));
        hidden = both.clone().narrow(1, 0, width / 4);
        cells = both.narrow(1, width / 4, width / 4).0;
        all.push(hidden.clone().reshape([1, batch, width / 4]));
    }
    Plain::cat(all, 0).0
}
