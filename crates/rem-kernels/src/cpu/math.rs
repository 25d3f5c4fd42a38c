//! Scalar functions that vectorize in loops. They propagate NaN.

/// e^x, to about 2 units in the last place; 0 and the largest numbers instead of subnormals and infinity.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting this rounds to an integer, and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // Not `clamp`, `max` and `min`: they would turn a NaN into a number.
    let x = if x > 88.0 { 88.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 5e-1;
    let p = p * r * r + r + 1.0;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    p * f32::from_bits(((exponent + 127) << 23) as u32)
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

/// The error function, to 2e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = 1.061_405_4;
    let p = p * t - 1.453_152;
    let p = p * t + 1.421_413_7;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let y = 1.0 - p * t * exp(-a * a);
    if x < 0.0 { -y } else { y }
}

/// An activation function, applied to the input of a linear layer or convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The identity.
    None,
    /// max(x, 0)
    Relu,
    /// x · sigmoid(x)
    Silu,
    /// x · Φ(x), with the exact Φ.
    Gelu,
}

/// x · sigmoid(x)
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

/// The derivative of [`silu`].
#[inline(always)]
pub fn silu_slope(x: f32) -> f32 {
    let s = sigmoid(x);
    s * (1.0 + x * (1.0 - s))
}

/// x · Φ(x)
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The derivative of [`gelu`].
#[inline(always)]
pub fn gelu_slope(x: f32) -> f32 {
    let below = 0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
    below + x * 0.398_942_3 * exp(-0.5 * x * x)
}

/// max(x, 0)
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// The derivative of [`relu`], 0 at 0.
#[inline(always)]
pub fn relu_slope(x: f32) -> f32 {
    if x > 0.0 { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(f: fn(f32) -> f32, exact: fn(f64) -> f64, relative: bool) -> f64 {
        (-8000..=8000)
            .map(|i| i as f32 / 100.0)
            .map(|x| {
                let e = exact(f64::from(x));
                let error = (f64::from(f(x)) - e).abs();
                if relative { error / e.abs() } else { error }
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_match_f64() {
        assert!(worst(exp, f64::exp, true) < 3e-7);
        assert!(worst(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), false) < 2e-7);
        assert!(worst(tanh, f64::tanh, false) < 4e-7);
        // The standard library has no erf: check known values.
        for (x, e) in [
            (0.0, 0.0),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (-2.0, -0.995_322_3),
        ] {
            assert!((erf(x) - e).abs() < 4e-7, "erf({x}) = {}", erf(x));
        }
    }

    #[test]
    fn slopes_match_finite_differences() {
        type Function = fn(f32) -> f32;
        let pairs: [(Function, Function); 2] = [(silu, silu_slope), (gelu, gelu_slope)];
        for (f, slope) in pairs {
            for i in -60..60 {
                let x = i as f32 / 10.0;
                let found = (f(x + 0.01) - f(x - 0.01)) / 0.02;
                assert!(
                    (found - slope(x)).abs() < 2e-4,
                    "at {x}: {found} and {}",
                    slope(x)
                );
            }
        }
    }

    #[test]
    fn nan_propagates() {
        for f in [exp, sigmoid, tanh, silu, gelu, relu] {
            assert!(f(f32::NAN).is_nan());
        }
        assert!(exp(f32::INFINITY) > 1e38 && exp(f32::NEG_INFINITY) < 1e-37);
    }
}
