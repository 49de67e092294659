//! Activations and their derivatives, element by element.

use super::LANES;
use super::math::{exp, normal, sigmoid};
use super::simd::{Task, run, share, share_in_place};
use crate::backend::Activation;

/// A function of one number and its derivative.
trait Curve: Copy + Sync {
    fn value(self, x: f32) -> f32;
    fn slope(self, x: f32) -> f32;
}

/// `x Φ(x)`, where Φ is the distribution function of the standard normal distribution.
#[derive(Clone, Copy)]
struct Gelu;

impl Curve for Gelu {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        x * normal(x).0
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        let (below, density) = normal(x);
        bounded(x, 15.0).mul_add(density, below)
    }
}

/// `x sigmoid(2 y)` with `y = sqrt(2/pi) (x + 0.044715 x³)`, the same as `x/2 (1 + tanh(y))`.
#[derive(Clone, Copy)]
struct GeluTanh;

/// `2 sqrt(2/pi)`: the logistic function of `2 y` is `(1 + tanh(y)) / 2`.
const TWO_ROOT: f32 = 1.595_769;
const CUBIC: f32 = 0.044_715;

impl Curve for GeluTanh {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        x * sigmoid(TWO_ROOT * x * (x * x).mul_add(CUBIC, 1.0))
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        let x = bounded(x, 10.0);
        let square = x * x;
        let inner = TWO_ROOT * square.mul_add(3.0 * CUBIC, 1.0);
        slope_of_product(x * inner, TWO_ROOT * x * square.mul_add(CUBIC, 1.0))
    }
}

/// `x sigmoid(factor x)`
#[derive(Clone, Copy)]
struct Swish {
    factor: f32,
}

impl Curve for Swish {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        x * sigmoid(self.factor * x)
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        let y = bounded(self.factor * x, 87.0);
        slope_of_product(y, y)
    }
}

/// The derivative of `x sigmoid(y)`, `s + x y' s (1 - s)`, from `x y'` and `y`.
#[inline(always)]
fn slope_of_product(xy: f32, y: f32) -> f32 {
    let e = exp(-y);
    let s = 1.0 / (1.0 + e);
    // `1 - s` would lose its digits where `s` is almost 1; `e s` is the same number without that loss.
    (xy * s).mul_add(e * s, s)
}

/// `x` between `-most` and `most`, where the derivatives are 0 and 1 up to 1e-34, so that no infinity is
/// multiplied by zero. NaN stays.
#[inline(always)]
fn bounded(x: f32, most: f32) -> f32 {
    let x = if x > most { most } else { x };
    if x < -most { -most } else { x }
}

/// `y[i] = f(x[i], y[i])` for all `i` of two equally long slices.
// A macro, because a closure need not be compiled with the vector instructions of the function around it.
macro_rules! each_of_two {
    ($x:ident, $y:ident, $value:expr) => {
        // The compiler turns loops over arrays of a constant length into vector instructions.
        let ($x, x_rest) = $x.as_chunks::<LANES>();
        let ($y, y_rest) = $y.as_chunks_mut::<LANES>();
        for ($x, $y) in $x.iter().zip($y) {
            for ($x, $y) in $x.iter().zip($y) {
                *$y = $value;
            }
        }
        for ($x, $y) in x_rest.iter().zip(y_rest) {
            *$y = $value;
        }
    };
}

/// `y[i] = f(x[i])`, where something else still needs the inputs.
struct Values<'a, C>(C, &'a [f32], &'a mut [f32]);

impl<C: Curve> Task for Values<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(curve, x, y) = self;
        each_of_two!(x, y, curve.value(*x));
    }
}

/// `y[i] = f(y[i])`, where nothing else needs the inputs: half as much memory is read and written.
struct InPlace<'a, C>(C, &'a mut [f32]);

impl<C: Curve> Task for InPlace<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(curve, y) = self;
        let (y, rest) = y.as_chunks_mut::<LANES>();
        for y in y {
            for y in y {
                *y = curve.value(*y);
            }
        }
        for y in rest {
            *y = curve.value(*y);
        }
    }
}

/// `y[i] *= f'(x[i])`: `y` is the gradient of the result and becomes that of the input.
struct Slopes<'a, C>(C, &'a [f32], &'a mut [f32]);

impl<C: Curve> Task for Slopes<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(curve, x, y) = self;
        each_of_two!(x, y, *y * curve.slope(*x));
    }
}

/// Calls a function with the curve of an activation.
// A macro, because each curve is a type of its own, for which the loops are compiled.
macro_rules! with_curve {
    ($activation:expr, $f:expr) => {
        match $activation {
            Activation::Gelu => $f(Gelu),
            Activation::GeluTanh => $f(GeluTanh),
            Activation::QuickGelu => $f(Swish { factor: 1.702 }),
            Activation::Silu => $f(Swish { factor: 1.0 }),
        }
    };
}

/// Applies an activation to all numbers: `y[i] = f(x[i])`, for slices of the same length.
pub fn activate(activation: Activation, x: &[f32], y: &mut [f32]) {
    fn of<C: Curve>(curve: C, x: &[f32], y: &mut [f32]) {
        share(x, y, |x, y| run(Values(curve, x, y)));
    }
    with_curve!(activation, |curve| of(curve, x, y));
}

/// Applies an activation to all numbers in place, where nothing else needs them: `y[i] = f(y[i])`.
pub fn activate_in_place(activation: Activation, y: &mut [f32]) {
    fn of<C: Curve>(curve: C, y: &mut [f32]) {
        share_in_place(y, |y| run(InPlace(curve, y)));
    }
    with_curve!(activation, |curve| of(curve, y));
}

/// The backward pass in place: `gradient[i] *= f'(x[i])`.
pub fn activate_backward(activation: Activation, x: &[f32], gradient: &mut [f32]) {
    fn of<C: Curve>(curve: C, x: &[f32], gradient: &mut [f32]) {
        share(x, gradient, |x, y| run(Slopes(curve, x, y)));
    }
    with_curve!(activation, |curve| of(curve, x, gradient));
}
