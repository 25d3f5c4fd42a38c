//! Tensor notation for a backend's primitive operations. Reference bodies are written in it.

use std::ops::{Add, Div, Mul, Sub};

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{Distribution, FloatDType, Shape, Slice};

use crate::cpu::math::Activation;
use crate::cpu::tile::Precision;

/// A float tensor of any backend, with operators and methods.
pub(crate) struct Primitive<B: Backend>(pub FloatTensor<B>);

impl<B: Backend> Clone for Primitive<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

macro_rules! binary {
    ($trait:ident, $method:ident, $tensors:ident, $scalar:ident) => {
        impl<B: Backend> $trait for Primitive<B> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(B::$tensors(self.0, other.0))
            }
        }
        impl<B: Backend> $trait<f64> for Primitive<B> {
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

impl<B: Backend> Primitive<B> {
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

    /// The last two axes swapped.
    pub fn transpose(self) -> Self {
        let rank = self.dims().len();
        Self(B::float_swap_dims(self.0, rank - 2, rank - 1))
    }

    /// `count` indices of `axis`, starting at `first`.
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

    /// Whether products of this tensor round their factors.
    pub fn rounds_factors(&self, precision: Precision) -> bool {
        precision == Precision::Mixed && self.dtype() == FloatDType::F32
    }

    /// Rounded to bfloat16 but stored as f32, whose products are exact in f32. Gradients pass through unchanged, as if
    /// the tensor was not rounded.
    pub fn rounded(self) -> Self {
        let rounded = Self(B::float_detach(self.clone().through_bf16().0));
        if !B::ad_enabled(&self.0.device()) {
            return rounded;
        }
        // The difference of a number and its rounding is exact in f32, and so is the sum.
        let detached = Self(B::float_detach(self.0.clone()));
        self + (rounded - detached)
    }

    /// Unchanged, but the gradient is rounded to bfloat16: it is a factor of the backward pass's products.
    pub fn with_rounded_gradient(self) -> Self {
        if !B::ad_enabled(&self.0.device()) {
            return self;
        }
        // Casts pass gradients through bfloat16. The value of the difference is zero.
        let value = Self(B::float_detach(self.0.clone()));
        let through = self.through_bf16();
        let zero = through.clone() - Self(B::float_detach(through.0));
        value + zero
    }

    fn through_bf16(self) -> Self {
        let dtype = self.dtype();
        Self(B::float_cast(
            B::float_cast(self.0, FloatDType::BF16),
            dtype,
        ))
    }

    /// The matrix product over the last two axes.
    pub fn matmul(self, other: Self, precision: Precision) -> Self {
        if !self.rounds_factors(precision) {
            return Self(B::float_matmul(self.0, other.0));
        }
        Self(B::float_matmul(self.rounded().0, other.rounded().0)).with_rounded_gradient()
    }

    pub fn activate(self, activation: Activation) -> Self {
        match activation {
            Activation::None => self,
            Activation::Relu => Self(B::relu(self.0)),
            Activation::Silu => self.clone() * self.sigmoid(),
            Activation::Gelu => Self(B::gelu(self.0)),
        }
    }

    /// Normalizes the last axis to mean 0 and variance 1.
    pub fn normalize(self) -> Self {
        let last = self.dims().len() - 1;
        let centered = self.clone() - self.mean(last);
        let variance = centered.clone().square().mean(last);
        centered / (variance + f64::from(crate::cpu::norm::EPSILON)).sqrt()
    }

    pub fn layer_norm(self, gamma: Self, beta: Self) -> Self {
        let width = gamma.dims()[0];
        self.normalize() * gamma.reshape([1, width]) + beta.reshape([1, width])
    }

    /// Pairs of adjacent channels of the last axis rotated (Appendix A.3).
    pub fn rotated(self, cos: Self, sin: Self) -> Self {
        let shape = self.0.shape();
        let channels = shape[shape.num_dims() - 1];
        let rows = shape.num_elements() / channels;
        let pairs = self.clone().reshape([rows, channels / 2, 2]);
        let (even, odd) = (pairs.clone().narrow(2, 0, 1), pairs.narrow(2, 1, 1));
        let swapped = Self::cat(vec![odd * -1.0, even], 2);
        let swapped = Self(B::float_reshape(swapped.0, shape));
        self * cos + swapped * sin
    }

    /// `self · weight + bias`
    pub fn linear(self, weight: Self, bias: Self, precision: Precision) -> Self {
        let outputs = bias.dims()[0];
        self.matmul(weight, precision) + bias.reshape([1, outputs])
    }

    /// Dropout with the device's random generator.
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
