//! Functions that are computed element by element.

use super::code::Code;
use crate::emit::program::operands::Operands;
use crate::ir::Op;
use crate::ir::op::{Activation, Elementary};
use crate::lower::Bug;

/// Burn's activations, except for those that are kernels of their own.
pub(super) fn activate(activation: Activation, x: Code) -> Code {
    let burn = |path: &'static str, x: Code| Code::call(Code::import(path), [x]);
    match activation {
        Activation::Relu => burn("burn::tensor::activation::relu", x),
        Activation::Relu2 => burn("burn::tensor::activation::relu", x).method("square", []),
        Activation::Gelu => Code::call(Code::kernel("gelu"), [x]),
        Activation::GeluTanh => Code::call(Code::kernel("gelu_tanh"), [x]),
        Activation::QuickGelu => Code::call(Code::kernel("quick_gelu"), [x]),
        Activation::Silu => Code::call(Code::kernel("silu"), [x]),
        Activation::Tanh => burn("burn::tensor::activation::tanh", x),
        Activation::Sigmoid => burn("burn::tensor::activation::sigmoid", x),
    }
}

/// A gated product, which is a kernel for the activations that are kernels.
pub(super) fn gated(activation: Activation, gate: Code, x: Code) -> Code {
    let kernel = match activation {
        Activation::Gelu => "gelu_gate",
        Activation::GeluTanh => "gelu_tanh_gate",
        Activation::QuickGelu => "quick_gelu_gate",
        Activation::Silu => "silu_gate",
        Activation::Relu | Activation::Relu2 | Activation::Tanh | Activation::Sigmoid => {
            return activate(activation, gate).times(x);
        }
    };
    Code::call(Code::kernel(kernel), [gate, x])
}

/// Burn's elementary functions.
pub(super) fn elementary(function: Elementary, x: Code) -> Code {
    match function {
        Elementary::Exp => x.method("exp", []),
        Elementary::Log => x.method("log", []),
        Elementary::Sqrt => x.method("sqrt", []),
        Elementary::Square => x.method("square", []),
        Elementary::Abs => x.method("abs", []),
        Elementary::Sign => x.method("sign", []),
        Elementary::Sin => x.method("sin", []),
        Elementary::Cos => x.method("cos", []),
        Elementary::Softplus => {
            Code::call(Code::import("burn::tensor::activation::softplus"), [x, Code::text("1.0")])
        }
        Elementary::Reciprocal => x.method("recip", []),
        Elementary::Floor => x.method("floor", []),
    }
}

/// `self.dropout`, or the field of another name that the op applies
pub(super) fn dropout_of(wanted: &Operands<'_>, op: &Op) -> Result<Code, Bug> {
    Ok(Code::text(format!("self.{}", wanted.dropout(op)?)))
}
