//! Packed weights: how they are rounded, and their products; and those of weights that are not packed.

use burn::tensor::DType;
use trafoc::interp::Captures;
use trafoc::interp::pack::{Packs, Placement};
use trafoc_kernels::{Packed, WeightType, linear_of, unembed};

use super::kernels::tensor;
use super::*;
use crate::compiled::repository;
use crate::front::Front;

/// The numbers of rows, inputs and outputs of products: around the sizes of vectors, of blocks of inputs, of
/// panels of outputs, of what is worth several threads, of rows that are multiplied at once, and of what is
/// multiplied with the weights as they are.
const SIZES: [[usize; 3]; 15] = [
    [1, 1, 1],
    [1, 3, 2],
    [2, 5, 7],
    [3, 16, 16],
    [1, 31, 33],
    [4, 32, 64],
    [5, 33, 65],
    [8, 97, 63],
    [9, 97, 64],
    [13, 200, 17],
    [1, 1030, 300],
    [29, 100, 130],
    [1, 64, 5000],
    [7, 300, 700],
    [9, 2100, 1300],
];

/// The types that packed weights can have, and how far one of their numbers may be from the one that was
/// rounded: as a part of that number, or of the largest one of its block.
const TYPES: [(WeightType, f64); 4] = [
    // Nothing is rounded.
    (WeightType::F32, 0.0),
    // Eight bits, rounded to the nearest.
    (WeightType::Bf16, 1.0 / 256.0),
    // Half a step; a scale may be larger than needed by one part in 128.
    (WeightType::Int8, 0.5 / 127.0 * (1.0 + 1.0 / 128.0)),
    // A whole step, if a number has the size of the largest one and another sign.
    (WeightType::Int4, 1.0 / 8.0 * (1.0 + 1.0 / 128.0)),
];

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn singles<const D: usize>(shape: [usize; D], seed: u64) -> Vec<f32> {
    tensor(shape, seed, &Device::flex()).into_data().iter().collect()
}

/// The numbers of the packed weight as a tensor in double precision.
fn exact(packed: &Packed, shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(packed.unpacked(), shape), (&Device::flex(), DType::F64))
}

/// Whether a sum of `k` products, each of at most 9, is right. A product that is no number decides the sum.
fn is_product(got: f64, wanted: f64, k: usize) -> bool {
    if wanted.is_finite() {
        (got - wanted).abs() <= 1e-6 * 9.0 * (k as f64).sqrt() + 1e-6 * wanted.abs()
    } else {
        got.is_nan() == wanted.is_nan() && (got.is_nan() || got == wanted)
    }
}

#[test]
fn weights_are_rounded_to_their_type() {
    for [_, k, n] in SIZES {
        let weight = singles([k, n], 5);
        for (of, most) in TYPES {
            let rounded = Packed::weight(&weight, k, n, of).unpacked();
            assert_eq!(rounded.len(), k * n);
            let mut off = 0.0_f64;
            for (i, (rounded, x)) in rounded.iter().zip(&weight).enumerate() {
                let block = i / n / 32 * 32;
                let of_block = (block..(block + 32).min(k)).map(|k| weight[k * n + i % n].abs());
                let largest = if matches!(of, WeightType::F32 | WeightType::Bf16) {
                    x.abs()
                } else {
                    of_block.fold(0.0, f32::max)
                };
                let part = f64::from((rounded - x).abs()) / f64::from(largest);
                assert!(part <= most + 1e-6, "{of:?}: {rounded}, not {x}, in a block up to {largest}");
                off = off.max(part);
            }
            // A few numbers may all be numbers that the type has.
            assert!(off > 0.0 || most == 0.0 || k * n < 20, "{of:?} rounds nothing");
            let table = Packed::table(weight.clone(), k, n, of);
            let transposed: Vec<f32> =
                (0..n).flat_map(|j| (0..k).map(move |i| (i, j))).map(|(i, j)| weight[i * n + j]).collect();
            assert_eq!(table.unpacked(), Packed::weight(&transposed, n, k, of).unpacked());
        }
    }
}

#[test]
fn numbers_that_a_type_has_are_kept() {
    for (of, _) in TYPES {
        // In the second block all numbers are zero, in the third one as small as can be.
        let steps = if of == WeightType::Int4 { 8 } else { 127 };
        let number = |k: usize| match k / 32 {
            0 => 0.25 * if k == 0 { -(steps as f32) } else { (k % 8) as f32 },
            1 => 0.0,
            _ => 0.0_f32.next_up() * 65536.0 * if k == 64 { -(steps as f32) } else { (k % 4) as f32 },
        };
        let weight: Vec<f32> = (0..96).map(number).collect();
        assert_eq!(Packed::weight(&weight, 96, 1, of).unpacked(), weight, "{of:?}");
    }
}

#[test]
fn products_are_those_of_double_precision() {
    let device = Device::flex();
    for [m, k, n] in SIZES {
        let x = tensor([m, k], 1, &device);
        let (weight, bias): (_, Tensor<1>) = (singles([k, n], 2), tensor([n], 4, &device));
        for (of, _) in TYPES {
            let packed = Packed::weight(&weight, k, n, of);
            let wanted = x.clone().cast(DType::F64).matmul(exact(&packed, [k, n]));
            let biased = wanted.clone() + bias.clone().cast(DType::F64).unsqueeze();
            for (got, wanted) in [
                (packed.apply(x.clone(), None), wanted),
                (packed.apply(x.clone(), Some(bias.clone())), biased),
            ] {
                assert_eq!(got.dims(), [m, n]);
                for (got, wanted) in numbers(got).into_iter().zip(numbers(wanted)) {
                    assert!(is_product(got, wanted, k), "{of:?}, {m} x {k} x {n}: {got}, not {wanted}");
                }
            }
            // The bits of a row do not depend on a few other rows, nor on the order of the numbers in memory.
            let bits = |x: Tensor<2>| x.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<u32>>();
            let all = bits(packed.apply(x.clone(), Some(bias.clone())));
            let turned = x.clone().transpose().reshape([k * m]).reshape([k, m]).transpose();
            assert_eq!(bits(packed.apply(turned, Some(bias.clone()))), all, "{of:?} transposed");
            if m <= 8 {
                let alone = (0..m).map(|i| packed.apply(x.clone().narrow(0, i, 1), Some(bias.clone())));
                assert_eq!(alone.flat_map(bits).collect::<Vec<_>>(), all, "{of:?}, row by row");
            }
        }
    }
}

#[test]
fn products_of_hostile_numbers_are_those_of_double_precision() {
    let device = Device::flex();
    let special = [0.0, -0.0, 1e-45, -1e-38, 1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let (k, n) = (100, 40);
    for (at, special) in special.into_iter().enumerate() {
        for (of, m) in TYPES.iter().flat_map(|(of, _)| [(*of, 1), (*of, 3), (*of, 9)]) {
            let (mut x, mut weight) = (singles([m, k], 1), singles([k, n], 2));
            weight[(50 + at) * n + at] = special;
            let packed = Packed::weight(&weight, k, n, of);
            // A block with a number that is not finite says so, and no other one does.
            let is_hit = |i: usize| match of {
                WeightType::F32 | WeightType::Bf16 => special.is_nan() && i == (50 + at) * n + at,
                WeightType::Int8 | WeightType::Int4 => {
                    !special.is_finite() && i % n == at && i / n / 32 == (50 + at) / 32
                }
            };
            let rounded = packed.unpacked();
            assert!((0..k * n).all(|i| rounded[i].is_nan() == is_hit(i)), "{of:?} with {special}");
            x[at] = special;
            let tensor = |dtype| Tensor::<2>::from_data(TensorData::new(x.clone(), [m, k]), (&device, dtype));
            let wanted = numbers(tensor(DType::F64).matmul(exact(&packed, [k, n])));
            let got = numbers(packed.apply(tensor(DType::F32), None));
            for (got, wanted) in got.into_iter().zip(wanted) {
                // Products with a weight of zero decide whether infinity gives a number.
                let is_near = (got - wanted).abs() <= 1e-6 * wanted.abs().max(1e3);
                assert!(is_near || is_product(got, wanted, k), "{of:?}, {special}: {got}, not {wanted}");
            }
        }
    }
}

#[test]
fn rows_of_a_packed_table_are_looked_up() {
    let device = Device::flex();
    let table = singles([70, 40], 3);
    for (of, _) in TYPES {
        let packed = Packed::table(table.clone(), 70, 40, of);
        let ids = [[0_i64, 69, 5], [64, 63, 5]];
        let found = packed.look_up(Tensor::from_data(ids, &device));
        assert_eq!(found.dims(), [2, 3, 40]);
        let (rows, found) = (packed.unpacked(), numbers(found));
        for (i, id) in ids.iter().flatten().enumerate() {
            let row: Vec<f64> = (0..40).map(|k| f64::from(rows[k * 70 + *id as usize])).collect();
            assert_eq!(found[i * 40..(i + 1) * 40], row);
        }
    }
}

/// A weight may be given by rows, transposed or packed, and the bits of its products are the same, for any number of
/// rows. So emitted Rust, which does not pack, computes what the interpreter does.
#[test]
fn products_have_the_same_bits_however_a_weight_is_stored() {
    let device = Device::flex();
    let bits = |x: Tensor<2>| x.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<u32>>();
    for [m, k, n] in SIZES.into_iter().chain([[30, 1100, 70], [12, 512, 32], [1, 513, 1030], [26, 7, 600]]) {
        let (x, bias) = (tensor([m, k], 1, &device), tensor::<1>([n], 4, &device));
        let weight = tensor::<2>([k, n], 2, &device);
        let table = weight.clone().transpose().reshape([k * n]).reshape([n, k]);
        let by_rows = bits(linear_of(x.clone(), weight.clone(), Some(bias.clone())));
        let what = format!("{m} x {k} x {n}");
        let transposed = linear_of(x.clone(), table.clone().transpose(), Some(bias.clone()));
        assert_eq!(bits(transposed), by_rows, "{what}, transposed");
        let plain = bits(linear_of(x.clone(), weight, None));
        assert_eq!(bits(unembed(x.clone(), table.clone())), plain, "{what}, as logits");
        let numbers: Vec<f32> = table.clone().into_data().iter().collect();
        let packed = Packed::table(numbers, n, k, WeightType::F32);
        assert_eq!(bits(packed.apply(x.clone(), Some(bias.clone()))), by_rows, "{what}, packed");
        let alone = (0..m).map(|i| packed.apply(x.clone().narrow(0, i, 1), None));
        assert_eq!(alone.flat_map(bits).collect::<Vec<_>>(), plain, "{what}, row by row");
    }
}

#[test]
fn gradients_of_products_are_those_of_double_precision() {
    let device = Device::flex().autodiff();
    for [m, k, n] in SIZES.into_iter().chain([[300, 40, 50], [600, 3, 20]]) {
        let x = tensor::<2>([m, k], 1, &device).reshape([1, m, k]).require_grad();
        let [weight, table] =
            [tensor::<2>([k, n], 2, &device), tensor([n, k], 5, &device)].map(Tensor::require_grad);
        let bias = tensor::<1>([n], 4, &device).require_grad();
        let of = tensor::<3>([1, m, n], 6, &device);
        let all = (linear_of(x.clone(), weight.clone(), Some(bias.clone())) * of.clone()).sum().backward();
        let double = |x: Tensor<2>| x.inner().cast(DType::F64);
        let (x64, of64) = (double(x.clone().reshape([m, k])), double(of.clone().reshape([m, n])));
        let near = |got: Option<Tensor<2>>, wanted: Tensor<2>, depth: usize, what: &str| {
            for (got, wanted) in numbers(got.unwrap()).into_iter().zip(numbers(wanted)) {
                assert!(is_product(got, wanted, depth), "{what} of {m} x {k} x {n}: {got}, not {wanted}");
            }
        };
        let rows = |x: Option<Tensor<3>>| x.map(|x| x.reshape([m, k]));
        near(rows(x.grad(&all)), of64.clone().matmul(double(weight.clone()).transpose()), n, "input");
        near(weight.grad(&all), x64.clone().transpose().matmul(of64.clone()), m, "weight");
        near(bias.grad(&all).map(|b| b.reshape([1, n])), of64.clone().sum_dim(0), m, "bias");
        let all = (unembed(x.clone(), table.clone()) * of).sum().backward();
        near(rows(x.grad(&all)), of64.clone().matmul(double(table.clone())), n, "input of logits");
        near(table.grad(&all), of64.transpose().matmul(x64), m, "table of logits");
        // A frozen input needs no gradient, and what the others have does not change.
        let frozen = tensor::<2>([m, k], 1, &device);
        let of = tensor::<2>([m, n], 6, &device);
        let all = (linear_of(frozen, weight.clone(), None) * of).sum().backward();
        assert!(weight.grad(&all).is_some() && bias.grad(&all).is_none());
    }
}

/// Weights that are packed one by one while they are made are those that are packed as a whole.
#[test]
fn weights_are_packed_alike_while_they_are_made_and_afterwards() {
    // Other devices have no packed weights.
    if crate::backend::name() != "flex" {
        return;
    }
    let device = super::device();
    for name in
        ["tests/memory/llama.yaml", "tests/memory/mixtral.yaml", "specs/gbt-mulm.yaml", "specs/d2l-nmt.yaml"]
    {
        let graph = Front::of_file(&repository(name)).compilation.graph.unwrap();
        let plan = Plan::new(&graph, &Captures::none()).unwrap();
        for (of, _) in TYPES {
            let packs = Packs::new(&plan, of);
            let placement = Placement { device: &device, packs: Some(&packs) };
            let mut made = Weights::init(&graph, placement, 3).unwrap();
            let mut packed = Weights::init(&graph, &device, 3).unwrap();
            let packing = packed.pack(&plan, of).unwrap();
            assert_eq!(made.pack(&plan, of).unwrap(), packing, "{name}, {of:?}");
            for path in packed.layout().keys() {
                let bits = |weights: &Weights| {
                    weights.values(path).unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
                };
                assert_eq!(bits(&made), bits(&packed), "{name}, {of:?}, {path}");
            }
            // What is said before they are read is never too little.
            let all: usize =
                packed.layout().values().map(|slot| 4 * slot.shape.iter().product::<usize>()).sum();
            let kept = all - packing.before + packing.after;
            assert!(placement.memory(&graph).unwrap() >= kept as u128, "{name}, {of:?}");
        }
    }
}
