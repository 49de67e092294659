//! Tensors whose element type and rank are known only when a graph is run.
//!
//! Burn's tensors have both in their type, while a register of the interpreter can contain any of them. Ranks
//! are 1 to 4. Matching on the rank takes nanoseconds, compared with microseconds for an operation.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::kind::Basic;

use super::Fault;

/// A tensor of rank 1 to 4.
#[derive(Clone, Debug)]
pub enum Ranked<K: Basic> {
    /// A vector `[n]`, such as a bias.
    R1(Tensor<1, K>),
    /// A matrix `[n, m]`, such as a projection's weight or token ids `[B, T]`.
    R2(Tensor<2, K>),
    /// A tensor `[n, m, o]`, such as logits `[B, T, V]`.
    R3(Tensor<3, K>),
    /// A tensor `[n, m, o, p]`, such as queries by heads `[B, H, T, D]`.
    R4(Tensor<4, K>),
}

/// The content of a register.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value: an optional input that was not given, or a register that is free.
    #[default]
    Absent,
    /// Hidden states, logits, parameters and the like, in the element type of the device.
    Float(Ranked<Float>),
    /// Ids, positions, and the padding masks of inputs.
    Int(Ranked<Int>),
    /// Attention masks, true = hidden.
    Bool(Ranked<Bool>),
}

/// Applies an expression to a tensor of any rank and wraps the result, which has the same rank.
// A macro, because a closure cannot be generic in the rank.
macro_rules! map {
    ($ranked:expr, $t:ident => $body:expr) => {
        match $ranked {
            Ranked::R1($t) => Ranked::R1($body),
            Ranked::R2($t) => Ranked::R2($body),
            Ranked::R3($t) => Ranked::R3($body),
            Ranked::R4($t) => Ranked::R4($body),
        }
    };
}

/// Applies an expression to a tensor of any rank; the result has the same type for every rank.
macro_rules! with {
    ($ranked:expr, $t:ident => $body:expr) => {
        match $ranked {
            Ranked::R1($t) => $body,
            Ranked::R2($t) => $body,
            Ranked::R3($t) => $body,
            Ranked::R4($t) => $body,
        }
    };
}

pub(super) use {map, with};

impl<K: Basic> Ranked<K> {
    /// Sizes of the axes, outermost first.
    pub fn dims(&self) -> Vec<usize> {
        with!(self, t => t.dims().to_vec())
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        with!(self, t => t.dims().len())
    }

    /// A tensor from host data of rank 1 to 4.
    pub fn from_data(data: TensorData, device: &Device) -> Result<Self, Fault> {
        Ok(match data.shape().num_dims() {
            1 => Ranked::R1(Tensor::from_data(data, device)),
            2 => Ranked::R2(Tensor::from_data(data, device)),
            3 => Ranked::R3(Tensor::from_data(data, device)),
            4 => Ranked::R4(Tensor::from_data(data, device)),
            n => return Err(Fault::rank(n)),
        })
    }

    /// The same tensor with leading axes of size 1, so that it has this rank.
    pub(super) fn lift(self, rank: usize) -> Self {
        // Burn's ranks are constants of the type, so each pair is a case.
        match (self, rank) {
            (Ranked::R1(t), 2) => Ranked::R2(t.unsqueeze()),
            (Ranked::R1(t), 3) => Ranked::R3(t.unsqueeze()),
            (Ranked::R1(t), 4) => Ranked::R4(t.unsqueeze()),
            (Ranked::R2(t), 3) => Ranked::R3(t.unsqueeze()),
            (Ranked::R2(t), 4) => Ranked::R4(t.unsqueeze()),
            (Ranked::R3(t), 4) => Ranked::R4(t.unsqueeze()),
            (same, _) => same,
        }
    }

    /// The tensor, if it has rank 1.
    pub(super) fn r1(self) -> Result<Tensor<1, K>, Fault> {
        match self {
            Ranked::R1(t) => Ok(t),
            other => Err(Fault::rank(other.rank())),
        }
    }

    /// The tensor, if it has rank 2.
    pub(super) fn r2(self) -> Result<Tensor<2, K>, Fault> {
        match self {
            Ranked::R2(t) => Ok(t),
            other => Err(Fault::rank(other.rank())),
        }
    }

    /// The tensor, if it has rank 3.
    pub(super) fn r3(self) -> Result<Tensor<3, K>, Fault> {
        match self {
            Ranked::R3(t) => Ok(t),
            other => Err(Fault::rank(other.rank())),
        }
    }

    /// The tensor, if it has rank 4.
    pub(super) fn r4(self) -> Result<Tensor<4, K>, Fault> {
        match self {
            Ranked::R4(t) => Ok(t),
            other => Err(Fault::rank(other.rank())),
        }
    }

    /// The slice `start..start + len` of one axis.
    pub(super) fn narrow(self, axis: usize, start: usize, len: usize) -> Self {
        map!(self, t => t.narrow(axis, start, len))
    }

    /// The rows of the first axis with these indices, in their order.
    pub(super) fn rows(self, indices: &Tensor<1, Int>) -> Self {
        map!(self, t => t.select(0, indices.clone()))
    }

    /// Joins tensors of equal rank along an axis.
    pub(super) fn concat(parts: Vec<Self>, axis: usize) -> Result<Self, Fault> {
        let rank = parts.first().map_or(0, Self::rank);
        Ok(match rank {
            1 => Ranked::R1(Tensor::cat(all(parts, Self::r1)?, axis)),
            2 => Ranked::R2(Tensor::cat(all(parts, Self::r2)?, axis)),
            3 => Ranked::R3(Tensor::cat(all(parts, Self::r3)?, axis)),
            4 => Ranked::R4(Tensor::cat(all(parts, Self::r4)?, axis)),
            n => return Err(Fault::rank(n)),
        })
    }
}

fn all<T, U>(parts: Vec<T>, f: impl Fn(T) -> Result<U, Fault>) -> Result<Vec<U>, Fault> {
    parts.into_iter().map(f).collect()
}

impl Value {
    /// Sizes of the axes, outermost first; `None` if the value is absent.
    pub fn dims(&self) -> Option<Vec<usize>> {
        match self {
            Value::Absent => None,
            Value::Float(t) => Some(t.dims()),
            Value::Int(t) => Some(t.dims()),
            Value::Bool(t) => Some(t.dims()),
        }
    }

    /// Whether the register is empty: it has no value.
    pub fn is_absent(&self) -> bool {
        matches!(self, Value::Absent)
    }

    /// The slice `start..start + len` of one axis.
    pub(super) fn narrow(self, axis: usize, start: usize, len: usize) -> Self {
        match self {
            Value::Absent => Value::Absent,
            Value::Float(t) => Value::Float(t.narrow(axis, start, len)),
            Value::Int(t) => Value::Int(t.narrow(axis, start, len)),
            Value::Bool(t) => Value::Bool(t.narrow(axis, start, len)),
        }
    }

    /// The values on the host, in the device's element type.
    ///
    /// # Errors
    /// The value is absent, or the device failed; the message is the device's.
    pub fn to_data(&self) -> Result<TensorData, String> {
        match self {
            Value::Absent => Err("there is no such value".to_owned()),
            // Burn's `into_data` would panic if the device has failed.
            Value::Float(t) => with!(t, t => t.clone().try_into_data().map_err(|e| e.to_string())),
            Value::Int(t) => with!(t, t => t.clone().try_into_data().map_err(|e| e.to_string())),
            Value::Bool(t) => with!(t, t => t.clone().try_into_data().map_err(|e| e.to_string())),
        }
    }

    /// Floating-point numbers on the host, in row-major order; `None` for other element types.
    pub fn to_floats(&self) -> Option<Vec<f32>> {
        match self {
            Value::Float(_) => self.to_data().ok().map(|data| data.iter::<f32>().collect()),
            Value::Absent | Value::Int(_) | Value::Bool(_) => None,
        }
    }

    /// The tensor, if it contains floating-point numbers and has this rank.
    pub fn float<const D: usize>(&self) -> Option<Tensor<D>> {
        match self {
            // The ranks are equal, so nothing is unsqueezed; the call gives the tensor the type that has `D`.
            Value::Float(t) if t.rank() == D => Some(with!(t.clone(), t => t.unsqueeze::<D>())),
            Value::Float(_) | Value::Absent | Value::Int(_) | Value::Bool(_) => None,
        }
    }

    /// The element type on the device; `None` if the value is absent.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Value::Absent => None,
            Value::Float(t) => Some(with!(t, t => t.dtype())),
            Value::Int(t) => Some(with!(t, t => t.dtype())),
            Value::Bool(t) => Some(with!(t, t => t.dtype())),
        }
    }

    /// The rows of the first axis with these indices, in their order.
    pub(super) fn rows(self, indices: &Tensor<1, Int>) -> Self {
        match self {
            Value::Absent => Value::Absent,
            Value::Float(t) => Value::Float(t.rows(indices)),
            Value::Int(t) => Value::Int(t.rows(indices)),
            Value::Bool(t) => Value::Bool(t.rows(indices)),
        }
    }
}

macro_rules! from_tensor {
    ($($rank:literal $variant:ident),*) => {$(
        impl From<Tensor<$rank>> for Value {
            fn from(t: Tensor<$rank>) -> Self { Value::Float(Ranked::$variant(t)) }
        }
        impl From<Tensor<$rank, Int>> for Value {
            fn from(t: Tensor<$rank, Int>) -> Self { Value::Int(Ranked::$variant(t)) }
        }
        impl From<Tensor<$rank, Bool>> for Value {
            fn from(t: Tensor<$rank, Bool>) -> Self { Value::Bool(Ranked::$variant(t)) }
        }
    )*};
}

from_tensor!(1 R1, 2 R2, 3 R3, 4 R4);

/// With an axis of length 1 at the end.
pub(super) fn unsqueeze<K: burn::tensor::kind::Basic>(x: Ranked<K>) -> Result<Ranked<K>, Fault> {
    Ok(match x {
        Ranked::R1(t) => Ranked::R2(t.unsqueeze_dim(1)),
        Ranked::R2(t) => Ranked::R3(t.unsqueeze_dim(2)),
        Ranked::R3(t) => Ranked::R4(t.unsqueeze_dim(3)),
        Ranked::R4(_) => return Err(Fault::rank(4)),
    })
}

/// Without the last axis, which has length 1.
pub(super) fn squeeze<K: burn::tensor::kind::Basic>(x: Ranked<K>) -> Result<Ranked<K>, Fault> {
    Ok(match x {
        Ranked::R1(_) => return Err(Fault::rank(1)),
        Ranked::R2(t) => Ranked::R1(t.squeeze_dim(1)),
        Ranked::R3(t) => Ranked::R2(t.squeeze_dim(2)),
        Ranked::R4(t) => Ranked::R3(t.squeeze_dim(3)),
    })
}

/// The index of an axis that is counted from the last one, which is number 0.
pub(super) fn axis(rank: usize, from_last: usize) -> Result<usize, Fault> {
    rank.checked_sub(1 + from_last).ok_or_else(|| Fault::rank(rank))
}

/// Joins values of one type along an axis, counted from the last one.
pub(super) fn concat(values: impl Iterator<Item = Value>, from_last: usize) -> Result<Value, Fault> {
    // All inputs have one element type, which `infer` has checked, so two of the lists stay empty.
    let (mut floats, mut ints, mut bools) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        match value {
            Value::Float(t) => floats.push(t),
            Value::Int(t) => ints.push(t),
            Value::Bool(t) => bools.push(t),
            Value::Absent => return Err(Fault("nothing where a tensor is expected".into())),
        }
    }
    let rank = floats.first().map(Ranked::rank).or(ints.first().map(Ranked::rank));
    let axis = axis(rank.or(bools.first().map(Ranked::rank)).unwrap_or(0), from_last)?;
    Ok(if !floats.is_empty() {
        Value::Float(Ranked::concat(floats, axis)?)
    } else if !ints.is_empty() {
        Value::Int(Ranked::concat(ints, axis)?)
    } else {
        Value::Bool(Ranked::concat(bools, axis)?)
    })
}
