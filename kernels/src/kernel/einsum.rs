//! Products of two tensors over axes that letters name, `bhtd,hde->bhte`.

use burn::prelude::*;

/// How a product of two tensors becomes one of matrices: `[shared, rows, summed]` times `[shared, summed, columns]`.
pub struct EinsumPlan {
    left: Vec<char>,
    right: Vec<char>,
    result: Vec<char>,
}

impl EinsumPlan {
    /// Of axes such as `bhtd,hde->bhte`.
    pub fn of(axes: &str) -> Self {
        let (given, result) = axes.split_once("->").unwrap_or((axes, ""));
        let (left, right) = given.split_once(',').unwrap_or((given, ""));
        let letters = |text: &str| text.chars().collect();
        Self { left: letters(left), right: letters(right), result: letters(result) }
    }

    /// The axes of both tensors and the result, those of the first and the result, of the second and the result, and
    /// those that are added up.
    fn groups(&self) -> [Vec<char>; 4] {
        let of = |from: &[char], other: &[char], shared: bool, kept: bool| {
            let is_one = |c: &&char| other.contains(c) == shared && self.result.contains(c) == kept;
            from.iter().filter(is_one).copied().collect::<Vec<char>>()
        };
        [
            of(&self.left, &self.right, true, true),
            of(&self.left, &self.right, false, true),
            of(&self.right, &self.left, false, true),
            of(&self.left, &self.right, true, false),
        ]
    }

    /// The tensor summed over the axes that only it has, which stay with size 1, and those axes.
    fn reduced<const D: usize>(&self, x: Tensor<D>, own: &[char], other: &[char]) -> (Tensor<D>, Vec<char>) {
        let alone: Vec<char> =
            own.iter().filter(|c| !other.contains(c) && !self.result.contains(c)).copied().collect();
        let axis = |c: &char| own.iter().position(|own| own == c).unwrap_or(0);
        (alone.iter().fold(x, |x, c| x.sum_dim(axis(c))), alone)
    }

    /// The first tensor as `[shared, rows, summed]`, and the sizes of its shared axes and its rows.
    pub fn left<const D: usize>(&self, x: Tensor<D>) -> (Tensor<3>, Vec<usize>) {
        let [shared, rows, _, summed] = self.groups();
        let (x, alone) = self.reduced(x, &self.left, &self.right);
        matrices(x, &self.left, [&shared, &rows, &[summed, alone].concat()])
    }

    /// The second tensor as `[shared, summed, columns]`, and the sizes of its columns.
    pub fn right<const D: usize>(&self, x: Tensor<D>) -> (Tensor<3>, Vec<usize>) {
        let [shared, _, columns, summed] = self.groups();
        let (x, alone) = self.reduced(x, &self.right, &self.left);
        let summed = [summed, alone].concat();
        let (x, sizes) = matrices(x, &self.right, [&shared, &summed, &columns]);
        (x, sizes[shared.len() + summed.len()..].to_vec())
    }

    /// The result, `[shared, rows, columns]`, with its axes in their order.
    pub fn result<const D: usize>(&self, x: Tensor<3>, left: &[usize], right: &[usize]) -> Tensor<D> {
        let [shared, rows, columns, _] = self.groups();
        let sizes: Vec<usize> = left[..shared.len() + rows.len()].iter().chain(right).copied().collect();
        let letters: Vec<char> = [shared, rows, columns].concat();
        let x = x.reshape::<D, _>(std::array::from_fn::<usize, D, _>(|i| sizes[i]));
        x.permute(order(&letters, &self.result))
    }
}

/// Where each of these axes is among the letters.
fn order<const D: usize>(letters: &[char], axes: &[char]) -> [usize; D] {
    std::array::from_fn(|i| letters.iter().position(|c| *c == axes[i]).unwrap_or(i))
}

/// A tensor with three groups of axes as three axes, and the sizes of all axes in this order.
fn matrices<const D: usize>(x: Tensor<D>, letters: &[char], groups: [&[char]; 3]) -> (Tensor<3>, Vec<usize>) {
    let x = x.permute(order::<D>(letters, &groups.concat()));
    let sizes = x.dims().to_vec();
    let (first, rest) = sizes.split_at(groups[0].len());
    let (second, third) = rest.split_at(groups[1].len());
    let of = |sizes: &[usize]| sizes.iter().product::<usize>();
    (x.reshape([of(first), of(second), of(third)]), sizes.clone())
}

/// The products of two tensors, added up over the axes that the result does not have: `bhtd,hde->bhte`.
pub fn einsum<const A: usize, const B: usize, const D: usize>(
    axes: &str,
    a: Tensor<A>,
    b: Tensor<B>,
) -> Tensor<D> {
    let plan = EinsumPlan::of(axes);
    let (a, left) = plan.left(a);
    let (b, right) = plan.right(b);
    plan.result(a.matmul(b), &left, &right)
}
