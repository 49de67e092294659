//! Linear layers followed by an activation, which is applied within the product.

use trafoc_kernels::{
    Activation, Packed, WeightType, activated_linear_of, gelu, gelu_tanh, linear_of, quick_gelu, silu,
};

use super::kernels::tensor;
use super::*;

const ALL: [Activation; 4] =
    [Activation::Gelu, Activation::GeluTanh, Activation::QuickGelu, Activation::Silu];

fn activate(activation: Activation, x: Tensor<2>) -> Tensor<2> {
    match activation {
        Activation::Gelu => gelu(x),
        Activation::GeluTanh => gelu_tanh(x),
        Activation::QuickGelu => quick_gelu(x),
        Activation::Silu => silu(x),
    }
}

/// Rows, inputs and outputs around those of tiles, of parts of the inner axis, of panels, and of groups of them.
const SIZES: [[usize; 3]; 12] = [
    [1, 5, 3],
    [1, 600, 900],
    [3, 40, 70],
    [13, 513, 33],
    [24, 512, 129],
    [30, 1030, 64],
    [60, 384, 300],
    [250, 100, 1000],
    [401, 1500, 40],
    [700, 700, 170],
    [2, 0, 4],
    [0, 3, 4],
];

/// The bits are those of the product and the activation one after the other, however the weight is stored.
#[test]
fn activated_linear_layers_have_the_bits_of_separate_operations() {
    let device = Device::flex();
    for [rows, inputs, outputs] in SIZES {
        let x: Tensor<2> = tensor([rows, inputs], 1, &device);
        let weight: Tensor<2> = tensor([inputs, outputs], 2, &device);
        let bias: Tensor<1> = tensor([outputs], 3, &device);
        for (activation, bias) in ALL.into_iter().zip([None, Some(bias.clone()), Some(bias), None]) {
            let what = format!("{activation:?} of {rows} x {inputs} x {outputs}");
            let apart = activate(activation, linear_of(x.clone(), weight.clone(), bias.clone()));
            let fused = activated_linear_of(x.clone(), weight.clone(), bias.clone(), activation);
            assert_eq!(apart.into_data(), fused.into_data(), "{what}");
            // Columns of a transposed matrix are read as they are.
            let turned = weight.clone().transpose().clone() * 1.0;
            let apart = activate(activation, linear_of(x.clone(), turned.clone().transpose(), bias.clone()));
            let fused = activated_linear_of(x.clone(), turned.transpose(), bias.clone(), activation);
            assert_eq!(apart.into_data(), fused.into_data(), "{what}, transposed");
            if inputs == 0 {
                continue;
            }
            let numbers: Vec<f32> = weight.clone().into_data().try_into_vec().unwrap();
            for of in [WeightType::F32, WeightType::Bf16, WeightType::Int8, WeightType::Int4] {
                let packed = Packed::weight(&numbers, inputs, outputs, of);
                let apart = activate(activation, packed.apply(x.clone(), bias.clone()));
                let fused = packed.apply_activated(x.clone(), bias.clone(), activation);
                assert_eq!(apart.into_data(), fused.into_data(), "{what}, {of:?}");
            }
        }
    }
}

/// With a gradient, the activation is an operation of its own, whose input is kept.
#[test]
fn gradients_of_activated_linear_layers_have_the_bits_of_separate_operations() {
    let device = device().autodiff();
    for (activation, [rows, inputs, outputs]) in
        ALL.into_iter().zip([[1, 5, 3], [13, 30, 33], [40, 64, 50], [70, 9, 2]])
    {
        let x = tensor([rows, inputs], 1, &device).require_grad();
        let weight = tensor([inputs, outputs], 2, &device).require_grad();
        let bias = tensor::<1>([outputs], 3, &device).require_grad();
        let bits = |y: Tensor<2>| {
            let gradients = (y.clone() * y.clone()).sum().backward();
            let of_bias = bias.grad(&gradients).unwrap().into_data();
            let [of_x, of_weight] = [&x, &weight].map(|x| x.grad(&gradients).unwrap().into_data());
            (y.inner().into_data(), of_x, of_weight, of_bias)
        };
        let linear = linear_of(x.clone(), weight.clone(), Some(bias.clone()));
        let fused = activated_linear_of(x.clone(), weight.clone(), Some(bias.clone()), activation);
        assert_eq!(bits(activate(activation, linear)), bits(fused), "{activation:?}");
    }
}
