//! Norms against their plain form, and against double precision.

use burn::nn::{LayerNormConfig, RmsNormConfig};
use trafoc_kernels::{
    add_layer_norm_of, add_rms_norm_of, layer_norm, layer_norm_of, reference, rms_norm, rms_norm_of,
};

use super::fused::SIZES;
use super::kernels::{assert_close, tensor};
use super::*;

#[test]
fn norms_and_their_gradients_are_those_of_the_reference() {
    let device = device().autodiff();
    for [rows, width] in SIZES {
        let x = tensor([2, rows, width], 1, &device).require_grad();
        let weight = tensor([width], 2, &device).require_grad();
        let bias = tensor([width], 3, &device).require_grad();
        let (given, none) = (|| Some(weight.clone()), || None::<Tensor<1>>);
        let cases = [
            (
                layer_norm_of(x.clone(), given(), Some(bias.clone()), 1e-3),
                reference::norms::layer_norm_of(x.clone(), given(), Some(bias.clone()), 1e-3),
            ),
            (
                layer_norm_of(x.clone(), given(), None, 1e-3),
                reference::norms::layer_norm_of(x.clone(), given(), None, 1e-3),
            ),
            (
                layer_norm_of(x.clone(), none(), None, 1e-3),
                reference::norms::layer_norm_of(x.clone(), none(), None, 1e-3),
            ),
            (rms_norm_of(x.clone(), given(), 1e-3), reference::norms::rms_norm_of(x.clone(), given(), 1e-3)),
            (rms_norm_of(x.clone(), none(), 1e-3), reference::norms::rms_norm_of(x.clone(), none(), 1e-3)),
        ];
        for (case, (kernel, plain)) in cases.into_iter().enumerate() {
            let what = format!("norm {case} of {rows} x {width}");
            assert_close(kernel.clone().inner(), plain.clone().inner(), &what);
            let gradients = |y: Tensor<3>| {
                let factors = tensor([2, rows, width], 4, &device);
                let all = (y.clone() * y * factors).sum().backward();
                (x.grad(&all).unwrap(), weight.grad(&all), bias.grad(&all))
            };
            let ((x1, w1, b1), (x2, w2, b2)) = (gradients(kernel), gradients(plain));
            // The gradient of a norm of one number is nearly zero, and most of what is computed is rounding.
            if width > 1 {
                assert_close(x1, x2, &format!("{what}: the gradient of x"));
            }
            assert_eq!((w1.is_some(), b1.is_some()), (w2.is_some(), b2.is_some()), "{what}");
            for (name, a, b) in [("weight", w1, w2), ("bias", b1, b2)] {
                if let (Some(a), Some(b), true) = (a, b, width > 1 || name == "bias") {
                    assert_close(a, b, &format!("{what}: the gradient of the {name}"));
                }
            }
        }
    }
}

/// With the same bits as a sum and a norm one after the other, forward and backward, whichever of the terms may be overwritten.
#[test]
fn norms_of_residual_sums_have_the_bits_of_sums_and_norms() {
    type Both = (Tensor<3>, Tensor<3>);
    let device = device().autodiff();
    for [rows, width] in SIZES {
        let x = tensor([2, rows, width], 1, &device).require_grad();
        let residual = tensor([2, rows, width], 5, &device).require_grad();
        let weight = tensor([width], 2, &device).require_grad();
        let bias = tensor([width], 3, &device).require_grad();
        let factors = tensor([2, rows, width], 4, &device);
        for (is_layer, has_weight, has_bias) in [
            (true, true, true),
            (true, true, false),
            (true, false, false),
            (false, true, false),
            (false, false, false),
        ] {
            let given = || has_weight.then(|| weight.clone());
            let bias_of = || has_bias.then(|| bias.clone());
            let fused = |x, residual| match is_layer {
                true => add_layer_norm_of(x, residual, given(), bias_of(), 1e-3),
                false => add_rms_norm_of(x, residual, given(), 1e-3),
            };
            let norm = |x| match is_layer {
                true => layer_norm_of(x, given(), bias_of(), 1e-3),
                false => rms_norm_of(x, given(), 1e-3),
            };
            // Copies, since `x` and `residual` are needed again.
            for (owns_x, owns_residual) in [(false, false), (true, false), (false, true), (true, true)] {
                let own = |x: &Tensor<3>, yes: bool| if yes { x.clone() * 1.0 } else { x.clone() };
                let bits = |(y, sum): Both| {
                    let all = (y.clone() * factors.clone() + sum.clone() * y.clone()).sum().backward();
                    let gradients = [x.grad(&all), residual.grad(&all)].map(|x| x.unwrap().into_data());
                    let parameters = [&weight, &bias].map(|x| x.grad(&all).map(Tensor::into_data));
                    (y.inner().into_data(), sum.inner().into_data(), gradients, parameters)
                };
                let a = own(&x, owns_x);
                let b = own(&residual, owns_residual);
                let together = bits(fused(a, b));
                let sum = own(&x, owns_x) + own(&residual, owns_residual);
                let apart = bits((norm(sum.clone()), sum));
                let case = [is_layer, has_weight, has_bias, owns_x, owns_residual];
                assert_eq!(together, apart, "{case:?} of {rows} x {width}");
            }
        }
    }
}

#[test]
fn layers_of_norms_are_those_of_burn() {
    let device = device();
    let x = tensor([3, 4, 24], 1, &device);
    for has_bias in [true, false] {
        let layer = LayerNormConfig::new(24).with_epsilon(1e-3).with_bias(has_bias).init(&device);
        assert_close(layer_norm(&layer, x.clone(), 1e-3), layer.forward(x.clone()), "layer norm");
    }
    let layer = RmsNormConfig::new(24).with_epsilon(1e-3).init(&device);
    assert_close(rms_norm(&layer, x.clone()), layer.forward(x), "RMS norm");
}

/// Means far from zero, large and small numbers: the norm in double precision.
#[test]
fn norms_are_those_of_double_precision() {
    let device = Device::flex();
    let width = 50;
    let mut next = noise(3);
    for (offset, size) in [(0.0, 1.0), (1e4, 1.0), (0.0, 1e18), (0.0, 1e-18), (0.0, 1e-42), (-3e5, 10.0)] {
        let row: Vec<f32> = (0..width).map(|_| (offset + size * (2.0 * next() - 1.0)) as f32).collect();
        let x = Tensor::<2>::from_data(TensorData::new(row.clone(), [1, width]), &device);
        let exact: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let mean = exact.iter().sum::<f64>() / width as f64;
        for (is_layer, y) in [
            (true, layer_norm_of(x.clone(), None, None, 1e-12)),
            (false, rms_norm_of(x.clone(), None, 1e-12)),
        ] {
            let mean = if is_layer { mean } else { 0.0 };
            let square = exact.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let y: Vec<f64> = y.into_data().iter().collect();
            for (x, y) in exact.iter().zip(y) {
                let wanted = (x - mean) / (square + 1e-12).sqrt();
                // The mean is rounded to single precision.
                let bound = 2e-6 * wanted.abs() + 3e-7 + mean.abs() * 4e-7 / (square + 1e-12).sqrt();
                assert!((y - wanted).abs() <= bound, "{offset} {size}: {y}, not {wanted}");
            }
        }
    }
    // What is no number stays in its row.
    for bad in [f32::NAN, f32::INFINITY] {
        let mut numbers = vec![1.0; 3 * width];
        numbers[width + 7] = bad;
        let x = Tensor::<2>::from_data(TensorData::new(numbers, [3, width]), &device);
        for y in [layer_norm_of(x.clone(), None, None, 1e-5), rms_norm_of(x.clone(), None, 1e-5)] {
            let y: Vec<f32> = y.into_data().iter().collect();
            assert!(y[..width].iter().chain(&y[2 * width..]).all(|y| y.is_finite()));
            assert!(y[width + 7].is_nan(), "{bad}: {:?}", &y[width..2 * width]);
        }
    }
}
