//! Activations, gated products, and their derivatives, element by element.

use rayon::prelude::*;

use super::LANES;
use super::math::{exp, normal, sigmoid};
use super::parallel::Parallel;
use super::simd::{SHARE, Task, run, share, share_in_place};
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

/// `y[i] = f(gate[i]) x[i]`
struct Gate<'a, C>(C, &'a [f32], &'a [f32], &'a mut [f32]);

impl<C: Curve> Task for Gate<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(curve, gate, x, y) = self;
        let ((gates, gate_rest), (xs, x_rest)) = (gate.as_chunks::<LANES>(), x.as_chunks::<LANES>());
        let (ys, y_rest) = y.as_chunks_mut::<LANES>();
        for ((gate, x), y) in gates.iter().zip(xs).zip(ys) {
            for ((gate, x), y) in gate.iter().zip(x).zip(y) {
                *y = curve.value(*gate) * *x;
            }
        }
        for ((gate, x), y) in gate_rest.iter().zip(x_rest).zip(y_rest) {
            *y = curve.value(*gate) * *x;
        }
    }
}

/// `x[i] *= f(gate[i])`, where nothing else needs `x`.
struct GateInPlace<'a, C>(C, &'a [f32], &'a mut [f32]);

impl<C: Curve> Task for GateInPlace<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(curve, gate, x) = self;
        each_of_two!(gate, x, curve.value(*gate) * *x);
    }
}

/// The backward pass of a gated product. `y` is the gradient of the result and becomes that of the gate.
struct GateBackward<'a, C> {
    curve: C,
    gate: &'a [f32],
    x: &'a [f32],
    y: &'a mut [f32],
    /// The gradient of `x`.
    of_x: &'a mut [f32],
}

impl<C: Curve> GateBackward<'_, C> {
    /// Both gradients at one place. The order of the factors is that of separate operations, whose bits these are.
    #[inline(always)]
    fn each(curve: C, (gate, x): (f32, f32), (y, of_x): (&mut f32, &mut f32)) {
        *of_x = *y * curve.value(gate);
        *y = *y * x * curve.slope(gate);
    }
}

impl<C: Curve> Task for GateBackward<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { curve, gate, x, y, of_x } = self;
        let ((gates, gate_rest), (xs, x_rest)) = (gate.as_chunks::<LANES>(), x.as_chunks::<LANES>());
        let ((ys, y_rest), (of_xs, of_x_rest)) = (y.as_chunks_mut::<LANES>(), of_x.as_chunks_mut::<LANES>());
        for (((gate, x), y), of_x) in gates.iter().zip(xs).zip(ys).zip(of_xs) {
            for (((gate, x), y), of_x) in gate.iter().zip(x).zip(y).zip(of_x) {
                Self::each(curve, (*gate, *x), (y, of_x));
            }
        }
        for (((gate, x), y), of_x) in gate_rest.iter().zip(x_rest).zip(y_rest).zip(of_x_rest) {
            Self::each(curve, (*gate, *x), (y, of_x));
        }
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

/// A gated product of slices of the same length: `y[i] = f(gate[i]) x[i]`.
pub fn gate(activation: Activation, gate: &[f32], x: &[f32], y: &mut [f32]) {
    fn of<C: Curve>(curve: C, gate: &[f32], x: &[f32], y: &mut [f32]) {
        if y.len() <= 2 * SHARE {
            run(Gate(curve, gate, x, y));
        } else {
            let parts = gate.par_chunks(SHARE).zip(x.par_chunks(SHARE)).zip(y.par_chunks_mut(SHARE));
            parts.in_parallel(|((gate, x), y)| run(Gate(curve, gate, x, y)));
        }
    }
    with_curve!(activation, |curve| of(curve, gate, x, y));
}

/// A gated product in place, where nothing else needs `x`: `x[i] *= f(gate[i])`.
pub fn gate_in_place(activation: Activation, gate: &[f32], x: &mut [f32]) {
    fn of<C: Curve>(curve: C, gate: &[f32], x: &mut [f32]) {
        share(gate, x, |gate, x| run(GateInPlace(curve, gate, x)));
    }
    with_curve!(activation, |curve| of(curve, gate, x));
}

/// The backward pass of [`gate`]. `gradient` is that of the result and becomes that of the gate; that of `x` is written to
/// `of_x`.
pub fn gate_backward(
    activation: Activation,
    gate: &[f32],
    x: &[f32],
    gradient: &mut [f32],
    of_x: &mut [f32],
) {
    fn of<C: Curve>(curve: C, gate: &[f32], x: &[f32], y: &mut [f32], of_x: &mut [f32]) {
        if y.len() <= 2 * SHARE {
            run(GateBackward { curve, gate, x, y, of_x });
        } else {
            let given = gate.par_chunks(SHARE).zip(x.par_chunks(SHARE));
            let found = y.par_chunks_mut(SHARE).zip(of_x.par_chunks_mut(SHARE));
            given
                .zip(found)
                .in_parallel(|((gate, x), (y, of_x))| run(GateBackward { curve, gate, x, y, of_x }));
        }
    }
    with_curve!(activation, |curve| of(curve, gate, x, gradient, of_x));
}
