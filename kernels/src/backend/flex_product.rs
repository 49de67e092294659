//! Products with weights on burn's own CPU backend.

use burn::backend::Flex;
use burn::backend::ops::FloatTensorOps;
use burn::prelude::Shape;
use burn_flex::FlexTensor;

use super::flex_tensor::{contiguous, last, numbers, retire, rows, unset, with_features};
use super::{Activation, Bias};
use crate::cpu::gemm::{After, Left, Right, Sizes, gemm};

/// `x weight + bias`, of which an activation may be taken, with all rows of `x` as one matrix: `[.., K]`, `[K, N]` → `[.., N]`
pub fn product(x: FlexTensor, weight: FlexTensor, bias: Bias<Flex>, then: Option<Activation>) -> FlexTensor {
    let columns = last(&weight);
    // A transposed matrix is read as it is in memory.
    let transposed = Flex::float_transpose(weight.clone());
    if !weight.is_contiguous() && transposed.is_contiguous() {
        return product_with(x, Right::Columns(numbers(&transposed)), columns, bias, then);
    }
    product_with(x, Right::Rows(numbers(&contiguous(weight))), columns, bias, then)
}

/// `x weight^T`, with all rows of `x` as one matrix: `[.., K]`, `[N, K]` → `[.., N]`
pub fn product_with_transpose(x: FlexTensor, weight: FlexTensor) -> FlexTensor {
    product(x, Flex::float_transpose(weight), Bias::Nothing, None)
}

/// `x right + bias`, of which an activation may be taken, with all rows of `x` as one matrix: `[.., K]` → `[.., N]`
pub fn product_with(
    x: FlexTensor,
    right: Right<'_>,
    columns: usize,
    bias: Bias<Flex>,
    then: Option<Activation>,
) -> FlexTensor {
    let sizes = Sizes { rows: rows(&x), depth: last(&x), columns };
    let bias = bias.contiguous();
    let mut y = with_features(&x, columns);
    let x = contiguous(x);
    let after = After { bias: bias.as_ref().map(numbers), then };
    gemm(Left::Rows(numbers(&x)), right, sizes, after, y.storage_mut());
    retire(x);
    y
}

/// `x^T y`, where the rows of both are summed over: `[.., M]`, `[.., N]` → `[M, N]`
pub fn product_of_transpose(x: FlexTensor, y: FlexTensor) -> FlexTensor {
    let (x, y) = (contiguous(x), contiguous(y));
    let sizes = Sizes { rows: last(&x), depth: rows(&x), columns: last(&y) };
    let mut found = unset(Shape::from([sizes.rows, sizes.columns]));
    gemm(Left::Columns(numbers(&x)), Right::Rows(numbers(&y)), sizes, After::default(), found.storage_mut());
    retire(x);
    retire(y);
    found
}

impl Bias<Flex> {
    /// The bias with its numbers one after the other.
    pub fn contiguous(self) -> Option<FlexTensor> {
        match self {
            Self::Nothing => None,
            Self::Added(bias) => Some(contiguous(bias)),
        }
    }
}
